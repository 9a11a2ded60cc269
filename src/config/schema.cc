#include <fmt/format.h>

#include <set>

#include "config/sections.h"

namespace tacit::config {

void DescribeFeature(Fields& fields, Feature& feature) {
  static constexpr std::array<std::string_view, 3> kKinds = {"dense", "categorical", "multi_hot"};
  static constexpr std::array<std::string_view, 2> kTransforms = {"signed_log1p", "identity"};
  fields.Text(
      {"name", "A distinct name. Rows of `/v1/score` use it, and it salts the bucket hash."},
      &feature.name, Use::kRequired);
  fields.Enum({"kind",
               "`dense`: a number.\n`categorical`: one hashed value.\n`multi_hot`: a set of hashed "
               "values, summed."},
              &feature.kind, kKinds, Use::kRequired);
  const bool dense = feature.kind == Feature::Kind::kDense;
  const bool multi_hot = feature.kind == Feature::Kind::kMultiHot;
  const Use table = dense ? Use::kRefused : Use::kOptional;
  fields.OneOf({"transform",
                "The transform of a `dense` feature; `signed_log1p` is for counts. A missing "
                "number becomes 0."},
               &feature.transform, kTransforms, dense ? Use::kOptional : Use::kRefused);
  fields.Integer(
      {"buckets",
       "Rows of the table of a feature with hashed values; bucket 0 is for a missing value. Values "
       "that meet in a row are learnt as one: give a table twice as many rows as it has values, "
       "and 256 at least. Each row costs 4 * dim bytes on disk, three times that with `adam`. A "
       "row that no event touches costs a private step only its chance of a false positive."},
      &feature.buckets, 2, 1ull << 36, dense ? table : Use::kRequired);
  fields.Integer({"dim", "Floats in a row. 0 stands for int(2 * buckets^0.25)."}, &feature.dim, 0,
                 4096, table);
  fields.Integer({"max_values",
                  "Values of a `multi_hot` feature that count at most. Further values are dropped, "
                  "so that one event's reach into the table is bounded."},
                 &feature.max_values, 1, 4096, multi_hot ? Use::kOptional : Use::kRefused);
}

Status CheckFeatures(const Place& place, const std::vector<Feature>& features) {
  std::set<std::string> names;
  for (size_t i = 0; i < features.size(); ++i) {
    const Place name = place.Item(i).Key("name");
    if (features[i].name.empty()) return name.Fail("must not be empty");
    if (!names.insert(features[i].name).second) {
      return name.Fail(fmt::format("another feature is called '{}' too", features[i].name));
    }
  }
  return {};
}

}  // namespace tacit::config
