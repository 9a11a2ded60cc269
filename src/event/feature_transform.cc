#include "event/feature_transform.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace tacit::event {
namespace {

constexpr int64_t kSmallIntegers = 1024;

// A number that is there is never kMissingNumber: -0 + 0 is +0.
float NeverMissing(float x) { return x + 0.0f; }

// Computed in double and rounded once.
float SignedLog1p(double x) {
  return NeverMissing(static_cast<float>(x < 0 ? -std::log1p(-x) : std::log1p(x)));
}

// A double beyond the range of floats becomes the largest float, not infinity.
float Identity(double x) {
  constexpr double kMax = std::numeric_limits<float>::max();
  return NeverMissing(static_cast<float>(std::clamp(x, -kMax, kMax)));
}

}  // namespace

FeatureTransform::FeatureTransform(FeatureSchema schema)
    : schema_(std::move(schema)), row_space_(schema_.MakeRowSpace()) {
  TACIT_CHECK(schema_.Validate().has_value(), "an invalid schema");
  for (const CategoricalFeature& feature : schema_.categorical)
    seeds_.push_back(BucketHash(feature.name, 0));
  for (int64_t i = 0; i < kSmallIntegers; ++i)
    small_log1p_.push_back(SignedLog1p(static_cast<double>(i)));
}

float FeatureTransform::Dense(size_t feature, std::optional<double> value) const {
  if (!value || !std::isfinite(*value)) return kMissingNumber;
  switch (schema_.dense[feature].transform) {
    case DenseTransform::kIdentity:
      return Identity(*value);
    case DenseTransform::kSignedLog1p: {
      // Most numbers are small counts, which are tabulated.
      const double magnitude = std::abs(*value);
      if (magnitude < 1 || magnitude >= kSmallIntegers || magnitude != std::trunc(magnitude))
        return SignedLog1p(*value);
      const float small = small_log1p_[static_cast<size_t>(magnitude)];
      return *value < 0 ? -small : small;
    }
  }
  CheckFailed(__FILE__, __LINE__, "transform", "an unknown dense transform");
}

float FeatureTransform::DenseInteger(size_t feature, int64_t value) const {
  const bool small = value > -kSmallIntegers && value < kSmallIntegers;
  if (!small || schema_.dense[feature].transform != DenseTransform::kSignedLog1p)
    return Dense(feature, static_cast<double>(value));
  return value < 0 ? -small_log1p_[static_cast<size_t>(-value)]
                   : small_log1p_[static_cast<size_t>(value)];
}

void FeatureTransform::AppendRows(size_t feature, std::span<const std::string_view> values,
                                  std::vector<uint64_t>* rows) const {
  const auto begin = static_cast<ptrdiff_t>(rows->size());
  const size_t full = rows->size() + schema_.categorical[feature].max_values;
  for (const std::string_view value : values) {
    if (rows->size() == full) return;
    if (value.empty()) continue;
    const uint64_t row = Row(feature, value);
    if (std::find(rows->begin() + begin, rows->end(), row) == rows->end()) rows->push_back(row);
  }
  if (rows->size() == static_cast<size_t>(begin)) rows->push_back(Row(feature, {}));
}

void FeatureTransform::StartBatch(Batch* batch) const {
  batch->Clear();
  batch->dense_width = schema_.dense.size();
  batch->slots = schema_.categorical.size();
}

}  // namespace tacit::event
