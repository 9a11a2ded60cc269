#include <fmt/format.h>

#include <set>

#include "config/sections.h"

namespace tacit::config {

void DescribeFeature(Fields& fields, Feature& feature) {
  static constexpr std::array<std::string_view, 3> kKinds = {"dense", "categorical", "multi_hot"};
  static constexpr std::array<std::string_view, 2> kTransforms = {"signed_log1p", "identity"};
  fields.Text("name", &feature.name, Use::kRequired);
  fields.Enum("kind", &feature.kind, kKinds, Use::kRequired);
  const bool dense = feature.kind == Feature::Kind::kDense;
  const bool multi_hot = feature.kind == Feature::Kind::kMultiHot;
  const Use table = dense ? Use::kRefused : Use::kOptional;
  fields.OneOf("transform", &feature.transform, kTransforms,
               dense ? Use::kOptional : Use::kRefused);
  fields.Integer("buckets", &feature.buckets, 2, 1ull << 36, dense ? table : Use::kRequired);
  fields.Integer("dim", &feature.dim, 0, 4096, table);
  fields.Integer("max_values", &feature.max_values, 1, 4096,
                 multi_hot ? Use::kOptional : Use::kRefused);
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
