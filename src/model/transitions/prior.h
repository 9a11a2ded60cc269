#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/threads/worker_pool.h"
#include "model/transitions/buckets.h"
#include "model/transitions/options.h"

namespace tacit::model::transitions {

// A released table: the noisy sum of each bucket, and the noise's standard deviation.
struct ReleasedTable {
  std::vector<float> sums;
  double deviation = 0;
};

// The expected weight of every ordered pair of items before pairs are measured: p_a p_b times a
// factor for its bucket in each table, 0 for an item and itself. Never a matrix: a cell is computed
// when a caller asks for it. Made of released numbers alone. The buckets must outlive it.
class Prior {
 public:
  // A prior without tables: p_a p_b.
  Prior(const Buckets& buckets, std::vector<double> popularity);
  // A prior that was fitted before. REQUIRES a factor for each bucket of each table.
  Prior(const Buckets& buckets, std::vector<double> popularity,
        std::vector<std::vector<float>> factors);

  // Fits the factors by iterative proportional fitting: in each round, each table in turn, finest
  // first, has its factors multiplied by the ratio of a bucket's released sum to the prior's sum
  // there, both with the same total; the ratio is clipped, and shrunk towards 1 by BucketTrusts. If
  // the cells are too many to go over, the prior's sum is estimated from 2^22 pairs spread evenly
  // over p x p. REQUIRES a table for each of the buckets' tables.
  void Fit(std::span<const ReleasedTable> tables, const Options& options, WorkerPool& workers);

  float Of(uint32_t a, uint32_t b) const {
    return a == b ? 0 : static_cast<float>(popularity_[a] * popularity_[b]) * Factor(a, b);
  }
  // The factor of all tables together.
  float Factor(uint32_t a, uint32_t b) const {
    return BinFactor(buckets_.bins(a), buckets_.bins(b)) * KinshipFactor(a, b);
  }
  // The factor of all tables but kKinship, and that of kKinship.
  float BinFactor(const Buckets::Bins& a, const Buckets::Bins& b) const;
  float KinshipFactor(uint32_t a, uint32_t b) const {
    return has_kinship() ? factors_[Buckets::kKinship][KinshipOf(a, b)] : 1;
  }

  // The factors of a table, per bucket.
  std::span<const float> factors(size_t table) const { return factors_[table]; }

  bool has_kinship() const { return buckets_.tables() > Buckets::kKinship; }
  const Buckets& buckets() const { return buckets_; }
  std::span<const double> popularity() const { return popularity_; }
  uint32_t items() const { return static_cast<uint32_t>(popularity_.size()); }

 private:
  uint32_t KinshipOf(uint32_t a, uint32_t b) const { return buckets_.Of(Buckets::kKinship, a, b); }
  // Kinship's bucket of every cell, row by row: worth its memory while a fit goes over all cells
  // again and again. Empty without descriptions.
  std::vector<uint16_t> Kinships(WorkerPool& workers) const;
  // The bucket of a pair in every table.
  using PairBuckets = std::array<uint16_t, Buckets::kTablesMost>;
  // Returns the buckets of pairs that are spread evenly over p x p, in a fixed order. They are the
  // same at every step of a fit, and dear to find.
  std::vector<PairBuckets> SamplePairs(WorkerPool& workers) const;
  // Sets row[b] to the prior of b after a; `kinships` are those of the row.
  void FillRow(uint32_t a, std::span<const uint16_t> kinships, std::span<float> row) const;
  // Returns the prior's sum in each bucket of a table; SampledSums estimates the same.
  std::vector<double> Sums(size_t table, std::span<const uint16_t> kinships,
                           WorkerPool& workers) const;
  std::vector<double> SampledSums(size_t table, std::span<const PairBuckets> samples,
                                  WorkerPool& workers) const;

  const Buckets& buckets_;
  std::vector<double> popularity_;
  std::array<std::vector<float>, Buckets::kTablesMost> factors_;
};

}  // namespace tacit::model::transitions
