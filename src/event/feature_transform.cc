#include "event/feature_transform.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/distinct_rows.h"
#include "base/hash.h"

namespace tacit::event {
namespace {

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

float InputOf(DenseTransform transform, double x) {
  switch (transform) {
    case DenseTransform::kIdentity:
      return Identity(x);
    case DenseTransform::kSignedLog1p:
      return SignedLog1p(x);
  }
  CheckFailed(__FILE__, __LINE__, "transform", "an unknown dense transform");
}

// The inputs of the integers [-small, small), in a table of the process.
const float* InputsOfIntegers(DenseTransform transform, int64_t small) {
  const auto make = [small](DenseTransform of) {
    std::vector<float> inputs;
    for (int64_t i = -small; i < small; ++i) inputs.push_back(InputOf(of, static_cast<double>(i)));
    return inputs;
  };
  static const std::vector<float> plain = make(DenseTransform::kIdentity),
                                  logarithms = make(DenseTransform::kSignedLog1p);
  return (transform == DenseTransform::kIdentity ? plain : logarithms).data();
}

}  // namespace

FeatureTransform::FeatureTransform(FeatureSchema schema)
    : schema_(std::move(schema)), row_space_(schema_.MakeRowSpace()) {
  TACIT_CHECK(schema_.Validate().has_value(), "an invalid schema");
  for (const RowSpace::Table& table : row_space_.tables()) {
    buckets_.missing.push_back(table.first);
    buckets_.count.push_back(table.rows - 1);
    buckets_.seed.push_back(BucketHash(table.name, 0));
  }
  for (const DenseFeature& feature : schema_.dense)
    integers_.push_back(InputsOfIntegers(feature.transform, kSmallIntegers));
}

float FeatureTransform::Dense(size_t feature, std::optional<double> value) const {
  if (!value || !std::isfinite(*value)) return kMissingNumber;
  if (std::abs(*value) < kSmallIntegers && *value == std::trunc(*value))
    return DenseInteger(feature, static_cast<int64_t>(*value));
  return Computed(feature, *value);
}

float FeatureTransform::Computed(size_t feature, double value) const {
  return InputOf(schema_.dense[feature].transform, value);
}

void FeatureTransform::AppendRows(size_t feature, std::span<const std::string_view> values,
                                  std::vector<uint64_t>* rows) const {
  const size_t begin = rows->size();
  DistinctRows distinct;
  distinct.Begin(begin, schema_.categorical[feature].max_values);
  for (const std::string_view value : values) {
    if (distinct.IsFull(*rows)) return;
    if (!value.empty()) distinct.Add(Row(feature, value), rows);
  }
  if (rows->size() == begin) rows->push_back(Row(feature, {}));
}

void FeatureTransform::StartBatch(Batch* batch) const {
  batch->Clear();
  batch->dense_width = schema_.dense.size();
  batch->slots = schema_.categorical.size();
}

}  // namespace tacit::event
