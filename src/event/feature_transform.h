#pragma once

#include <cstdint>
#include <optional>
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

  // The model's input for a number; nothing: the value is missing.
  float Dense(size_t feature, std::optional<double> value) const;
  // The row, in the one id space, of a categorical value; an empty value is a missing one.
  uint64_t Row(size_t feature, std::string_view value) const;

  // Prepares an empty batch of this shape.
  void StartBatch(Batch* batch) const;

 private:
  FeatureSchema schema_;
  RowSpace row_space_;
  std::vector<uint64_t> seeds_;  // one per categorical feature
};

}  // namespace tacit::event
