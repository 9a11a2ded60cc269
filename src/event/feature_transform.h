#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/row_space.h"
#include "event/batch.h"
#include "event/schema.h"

namespace tacit::event {

// Stands in a batch for a number that is missing: -0. A network reads it as the 0 that it is, and a
// model that treats missing numbers apart tells it from +0 by its sign.
inline constexpr float kMissingNumber = -0.0f;

// Turns raw values into model inputs. Training and serving share this implementation, so that the
// two cannot drift apart. Immutable; thread-safe.
class FeatureTransform {
 public:
  // REQUIRES schema.Validate().
  explicit FeatureTransform(FeatureSchema schema);

  // By categorical feature: the row of a missing value, how many rows others have behind it, and
  // the seed of the hash that chooses one.
  struct Buckets {
    std::vector<uint64_t> missing, count, seed;
  };

  const FeatureSchema& schema() const { return schema_; }
  const RowSpace& row_space() const { return row_space_; }
  const Buckets& buckets() const { return buckets_; }

  // Returns the model's input for a number; nullopt means a missing value (kMissingNumber). A
  // number that is not finite counts as missing: one such input would turn every parameter into
  // NaN.
  float Dense(size_t feature, std::optional<double> value) const;
  // Equals Dense(feature, double(value)) to the last bit; faster for small integers.
  float DenseInteger(size_t feature, int64_t value) const {
    if (value < -kSmallIntegers || value >= kSmallIntegers) [[unlikely]]
      return Computed(feature, static_cast<double>(value));
    return integers_[feature][value + kSmallIntegers];
  }
  // Returns the row, in the one id space, of a categorical value; an empty value counts as missing.
  uint64_t Row(size_t feature, std::string_view value) const {
    const uint64_t missing = buckets_.missing[feature];
    if (value.empty()) return missing;
    return missing + 1 + BucketOf(value, buckets_.seed[feature], buckets_.count[feature]);
  }

  // Appends the rows of a multi-hot feature's values in order, without empty and repeated ones, at
  // most max_values; if none is left, the row of the missing value. So a slot always has a row, and
  // one event reaches a bounded number of rows.
  void AppendRows(size_t feature, std::span<const std::string_view> values,
                  std::vector<uint64_t>* rows) const;

  // Prepares an empty batch of this shape.
  void StartBatch(Batch* batch) const;

 private:
  // The input of any number, computed.
  float Computed(size_t feature, double value) const;

  FeatureSchema schema_;
  RowSpace row_space_;
  // Most numbers are small counts, which are tabulated.
  static constexpr int64_t kSmallIntegers = 8192;

  Buckets buckets_;
  // Per number: the inputs of -kSmallIntegers, ..., kSmallIntegers - 1. Tables of the process.
  std::vector<const float*> integers_;
};

}  // namespace tacit::event
