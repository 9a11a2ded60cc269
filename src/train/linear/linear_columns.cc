#include "train/linear/linear_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "model/linear/row.h"

namespace tacit::train {
namespace {

namespace linear = model::linear;

// A cross has at most this many values: noise alone releases one in 5e7 of them with each period.
constexpr double kCrossMost = 0x1p32;

tl::unexpected<Error> RefuseCross(const std::string& name, const std::string& why) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("model.crosses: '{}' {}", name, why));
}

// The columns of a schema as a cross names them.
struct NamedColumn {
  std::string_view name;
  uint64_t values = 0;
  bool set = false;
};
std::vector<NamedColumn> NamedColumns(const event::FeatureSchema& schema) {
  std::vector<NamedColumn> columns;
  for (const event::CategoricalFeature& feature : schema.categorical)
    columns.push_back({feature.name, feature.buckets, feature.multi_hot});
  for (const event::DenseFeature& feature : schema.dense)
    columns.push_back({feature.name, linear::Bins().values()});
  return columns;
}

// Reads "A*B". A feature's name may have a star of its own, so each star is tried.
Result<linear::CrossColumn> CrossNamed(const event::FeatureSchema& schema,
                                       const std::string& name) {
  const std::vector<NamedColumn> columns = NamedColumns(schema);
  const auto find = [&](std::string_view of) {
    return static_cast<size_t>(std::ranges::find(columns, of, &NamedColumn::name) -
                               columns.begin());
  };
  if (find(name) < columns.size()) return RefuseCross(name, "is a feature of that name already");
  for (size_t star = name.find('*'); star != std::string::npos; star = name.find('*', star + 1)) {
    const size_t first = find(std::string_view(name).substr(0, star));
    const size_t second = find(std::string_view(name).substr(star + 1));
    if (first == columns.size() || second == columns.size()) continue;
    if (first == second) return RefuseCross(name, "crosses a feature with itself");
    if (columns[first].set || columns[second].set)
      return RefuseCross(name, "crosses a multi-hot feature; only features of one value can be");
    const double values =
        static_cast<double>(columns[first].values) * static_cast<double>(columns[second].values);
    if (values > kCrossMost)
      return RefuseCross(name, fmt::format("has {:.3g} values, and 2^32 is the most", values));
    return linear::CrossColumn{name, first, second};
  }
  return RefuseCross(name, "is not two features of the schema with a star between them, as in A*B");
}

}  // namespace

Result<std::vector<linear::CrossColumn>> LinearCrosses(const event::FeatureSchema& schema,
                                                       std::span<const std::string> names) {
  std::vector<linear::CrossColumn> crosses;
  std::set<std::pair<size_t, size_t>> known;
  for (const std::string& name : names) {
    auto cross = CrossNamed(schema, name);
    if (!cross) return Fail(std::move(cross.error()));
    if (!known.insert(std::minmax(cross->first, cross->second)).second)
      return RefuseCross(name, "is there twice");
    crosses.push_back(std::move(*cross));
  }
  return crosses;
}

linear::Columns LinearColumns(const event::FeatureSchema& schema,
                              std::vector<linear::CrossColumn> crosses) {
  std::vector<linear::CategoryColumn> categories;
  for (const event::CategoricalFeature& feature : schema.categorical)
    categories.push_back({feature.name, feature.buckets, feature.multi_hot});
  std::vector<linear::NumberColumn> numbers;
  for (const event::DenseFeature& feature : schema.dense)
    numbers.push_back({feature.name, feature.transform == event::DenseTransform::kIdentity});
  return {std::move(categories), std::move(numbers), linear::Bins(), std::move(crosses)};
}

store::RowLayout LinearRowLayout(const linear::Columns& columns) {
  store::RowLayout layout;
  layout.space = columns.space();
  layout.state_floats.assign(columns.size(), linear::kRowFloats - 1);
  layout.initial_scale.assign(columns.size(), 0);
  return layout;
}

}  // namespace tacit::train
