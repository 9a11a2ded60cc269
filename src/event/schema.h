#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"

namespace tacit::event {

// The function that turns a number into a model input. The names are part of the store's format.
enum class DenseTransform {
  kIdentity,
  kSignedLog1p,  // x >= 0: log(1 + x);  x < 0: -log(1 - x)
};

// A feature with one number per example. A missing value becomes 0, with the sign of
// kMissingNumber.
struct DenseFeature {
  std::string name;
  DenseTransform transform = DenseTransform::kSignedLog1p;
};

// A feature with a value from a vocabulary, or with multi_hot a set of them, hashed into a table of
// fixed size. Bucket 0 stands for a missing value; value v has bucket 1 + BucketOf(v, XXH64(name),
// buckets - 1).
struct CategoricalFeature {
  std::string name;
  uint64_t buckets = 0;    // table rows, missing included; at least 2
  uint32_t dim = 0;        // embedding width
  bool multi_hot = false;  // embeddings of the values are summed
  uint32_t max_values =
      1;  // multi-hot: more values are dropped, so that the rows an example reaches are bounded
};

// The features of an example, in the order of the columns. Criteo's 39 columns are one such schema.
// A value; fixed for the life of a store.
struct FeatureSchema {
  std::vector<DenseFeature> dense;
  std::vector<CategoricalFeature> categorical;

  // Makes one table per categorical feature, in order.
  RowSpace MakeRowSpace() const;
  // Checks that names are distinct and not empty, and buckets and dims sensible; the error names
  // the feature.
  Status Validate() const;
};

// Returns int(2 * vocabulary^0.25), the width paper 003 uses.
uint32_t DefaultEmbeddingDim(uint64_t buckets);

}  // namespace tacit::event
