#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "event/schema.h"

namespace tacit::event {

// I1, I2, ... and C1, C2, ... with these table sizes.
inline FeatureSchema CriteoSchema(size_t dense, std::span<const uint64_t> buckets) {
  FeatureSchema schema;
  for (size_t i = 0; i < dense; ++i)
    schema.dense.push_back({"I" + std::to_string(i + 1), DenseTransform::kSignedLog1p});
  for (size_t i = 0; i < buckets.size(); ++i) {
    CategoricalFeature feature;
    feature.name = "C" + std::to_string(i + 1);
    feature.buckets = buckets[i];
    feature.dim = DefaultEmbeddingDim(buckets[i]);
    schema.categorical.push_back(feature);
  }
  return schema;
}

}  // namespace tacit::event
