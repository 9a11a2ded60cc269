#include "event/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace tacit::event {
namespace {

constexpr uint64_t kBucketsMax = uint64_t{1} << 40;  // any number of features fits the id space
constexpr uint32_t kDimMax = 4096;
constexpr uint32_t kValuesMax = 4096;
constexpr size_t kFeaturesMax = 4096;

Status CheckName(const std::string& name, std::string_view kind, size_t index,
                 std::set<std::string_view>* seen) {
  if (name.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} feature {} has no name", kind, index + 1));
  if (!seen->insert(name).second)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("feature '{}' is there twice", name));
  return {};
}

Status CheckCategorical(const CategoricalFeature& feature) {
  const auto fail = [&](std::string what) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("feature '{}': {}", feature.name, what));
  };
  if (feature.buckets < 2 || feature.buckets > kBucketsMax)
    return fail(fmt::format("buckets is {}, must be from 2 to 2^40", feature.buckets));
  if (feature.dim < 1 || feature.dim > kDimMax)
    return fail(fmt::format("dim is {}, must be from 1 to {}", feature.dim, kDimMax));
  if (feature.multi_hot && (feature.max_values < 1 || feature.max_values > kValuesMax))
    return fail(
        fmt::format("max_values is {}, must be from 1 to {}", feature.max_values, kValuesMax));
  return {};
}

}  // namespace

RowSpace FeatureSchema::MakeRowSpace() const {
  RowSpace space;
  for (const CategoricalFeature& feature : categorical)
    space.AddTable(feature.name, feature.buckets, feature.dim);
  return space;
}

Status FeatureSchema::Validate() const {
  if (dense.empty() && categorical.empty())
    return Fail(ErrorCode::kInvalidArgument, "the schema has no features");
  if (dense.size() + categorical.size() > kFeaturesMax)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the schema has more than {} features", kFeaturesMax));
  std::set<std::string_view> seen;
  for (size_t i = 0; i < dense.size(); ++i)
    TACIT_RETURN_IF_ERROR(CheckName(dense[i].name, "dense", i, &seen));
  for (size_t i = 0; i < categorical.size(); ++i) {
    TACIT_RETURN_IF_ERROR(CheckName(categorical[i].name, "categorical", i, &seen));
    TACIT_RETURN_IF_ERROR(CheckCategorical(categorical[i]));
  }
  return {};
}

uint32_t DefaultEmbeddingDim(uint64_t buckets) {
  const double dim = 2 * std::pow(static_cast<double>(buckets), 0.25);
  return std::max<uint32_t>(1, static_cast<uint32_t>(dim));
}

}  // namespace tacit::event
