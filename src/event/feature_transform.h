#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "event/batch.h"
#include "event/schema.h"

namespace tacit::event {

// From raw values to model inputs: one implementation for training and for serving, so that the two
// cannot drift apart. Immutable; thread-safe.
class FeatureTransform {
 public:
  // REQUIRES schema.Validate().
  explicit FeatureTransform(FeatureSchema schema);

  const FeatureSchema& schema() const { return schema_; }
  const RowSpace& row_space() const { return row_space_; }

  // The model's input for a number; nothing: the value is missing. What is not finite counts as
  // missing: one such input would turn every parameter into NaN.
  float Dense(size_t feature, std::optional<double> value) const;
  // The same as Dense(feature, double(value)), to the last bit; faster for small integers.
  float DenseInteger(size_t feature, int64_t value) const;
  // The row, in the one id space, of a categorical value; an empty value is a missing one.
  uint64_t Row(size_t feature, std::string_view value) const;

  // Appends the rows of a multi-hot feature: those of its values in order, empty and repeated ones
  // left out, at most max_values; the row of the missing value when none is left. So a slot always
  // has a row, and one event reaches a bounded number of them.
  void AppendRows(size_t feature, std::span<const std::string_view> values,
                  std::vector<uint64_t>* rows) const;

  // Prepares an empty batch of this shape.
  void StartBatch(Batch* batch) const;

 private:
  FeatureSchema schema_;
  RowSpace row_space_;
  std::vector<uint64_t> seeds_;     // one per categorical feature
  std::vector<float> small_log1p_;  // log1p of 0, 1, 2, ...
};

}  // namespace tacit::event
