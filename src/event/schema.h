#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"

namespace tacit::event {

// How a number becomes a model input. The names are part of the store's format.
enum class DenseTransform {
  kIdentity,
  kSignedLog1p,  // x >= 0: log(1 + x);  x < 0: -log(1 - x)
};

// One number an example. A missing value becomes 0.
struct DenseFeature {
  std::string name;
  DenseTransform transform = DenseTransform::kSignedLog1p;
};

// A value out of a vocabulary, or with multi_hot a set of them, hashed into a table of fixed size.
// Bucket 0 stands for a missing value; value v has bucket 1 + BucketOf(v, XXH64(name), buckets -
// 1).
struct CategoricalFeature {
  std::string name;
  uint64_t buckets = 0;    // table rows, missing included; at least 2
  uint32_t dim = 0;        // embedding width
  bool multi_hot = false;  // embeddings of the values are summed
  uint32_t max_values =
      1;  // multi-hot: what exceeds it is dropped, so that a row's reach is bounded
};

// What an example consists of, in the order of the columns. Criteo's 39 columns are one such
// schema. A value; fixed for the life of a store.
struct FeatureSchema {
  std::vector<DenseFeature> dense;
  std::vector<CategoricalFeature> categorical;

  // One table per categorical feature, in order.
  RowSpace MakeRowSpace() const;
  // Names are distinct and not empty, buckets and dims sensible; the error names the feature.
  Status Validate() const;
};

// int(2 * vocabulary^0.25), the width paper 003 uses.
uint32_t DefaultEmbeddingDim(uint64_t buckets);

}  // namespace tacit::event
