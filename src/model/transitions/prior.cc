#include "model/transitions/prior.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "model/transitions/trust.h"

namespace tacit::model::transitions {
namespace {

constexpr uint64_t kSamples = uint64_t{1} << 22;
// In the place of a sample's first bucket: an item and itself, which is no pair.
constexpr uint16_t kNoPair = std::numeric_limits<uint16_t>::max();

// Returns `size` sums of what add(begin, end, sums) adds, each worker to sums of its own.
template <class AddPart>
std::vector<double> SumParts(size_t n, size_t size, WorkerPool& workers, const AddPart& add) {
  std::vector<std::vector<double>> parts(workers.workers(), std::vector<double>(size));
  workers.Run(n, [&](size_t begin, size_t end, size_t worker) { add(begin, end, parts[worker]); });
  for (size_t w = 1; w < parts.size(); ++w)
    for (size_t i = 0; i < size; ++i) parts[0][i] += parts[w][i];
  return std::move(parts[0]);
}

// Points that fill the unit square evenly (Roberts's R2 sequence): one coordinate each.
double FirstCoordinate(uint64_t i) {
  const double x = 0.5 + 0.75487766624669276 * static_cast<double>(i);
  return x - std::floor(x);
}
double SecondCoordinate(uint64_t i) {
  const double x = 0.5 + 0.56984029099805327 * static_cast<double>(i);
  return x - std::floor(x);
}

}  // namespace

Prior::Prior(const Buckets& buckets, std::vector<double> popularity)
    : buckets_(buckets), popularity_(std::move(popularity)) {
  TACIT_CHECK(popularity_.size() == buckets_.items());
  for (size_t table = 0; table < buckets_.tables(); ++table)
    factors_[table].assign(buckets_.size(table), 1);
}

Prior::Prior(const Buckets& buckets, std::vector<double> popularity,
             std::vector<std::vector<float>> factors)
    : Prior(buckets, std::move(popularity)) {
  TACIT_CHECK(factors.size() == buckets_.tables());
  for (size_t table = 0; table < factors.size(); ++table) {
    TACIT_CHECK(factors[table].size() == buckets_.size(table));
    factors_[table] = std::move(factors[table]);
  }
}

float Prior::BinFactor(const Buckets::Bins& a, const Buckets::Bins& b) const {
  float factor = 1;
  for (size_t table = 0; table < std::min(buckets_.tables(), a.size()); ++table)
    factor *= factors_[table][buckets_.BinBucket(table, a, b)];
  return factor;
}

std::vector<uint16_t> Prior::Kinships(WorkerPool& workers) const {
  if (!has_kinship()) return {};
  TACIT_CHECK(buckets_.size(Buckets::kKinship) <= std::numeric_limits<uint16_t>::max());
  std::vector<uint16_t> kinships(size_t{items()} * items());
  workers.Run(items(), [&](size_t begin, size_t end, size_t) {
    for (auto a = static_cast<uint32_t>(begin); a < end; ++a)
      for (uint32_t b = 0; b < items(); ++b)
        kinships[size_t{a} * items() + b] = static_cast<uint16_t>(KinshipOf(a, b));
  });
  return kinships;
}

void Prior::FillRow(uint32_t a, std::span<const uint16_t> kinships, std::span<float> row) const {
  // The part of each table that a's bin selects; a table that is missing has the one factor 1.
  static constexpr float kOne = 1;
  std::array<const float*, Buckets::Bins().size()> factors = {&kOne, &kOne, &kOne};
  for (size_t t = 0; t < std::min(buckets_.tables(), factors.size()); ++t)
    factors[t] = &factors_[t][buckets_.BinBucket(t, buckets_.bins(a), {})];
  const auto own = static_cast<float>(popularity_[a]);
  for (uint32_t b = 0; b < items(); ++b) {
    const Buckets::Bins& bins = buckets_.bins(b);
    row[b] = own * static_cast<float>(popularity_[b]) * factors[0][bins[0]] * factors[1][bins[1]] *
             factors[2][bins[2]];
  }
  if (!kinships.empty()) {
    const float* kinship = factors_[Buckets::kKinship].data();
    for (uint32_t b = 0; b < items(); ++b) row[b] *= kinship[kinships[b]];
  }
  row[a] = 0;
}

std::vector<double> Prior::Sums(size_t table, std::span<const uint16_t> kinships,
                                WorkerPool& workers) const {
  return SumParts(items(), buckets_.size(table), workers,
                  [&](size_t begin, size_t end, std::vector<double>& sums) {
                    std::vector<float> row(items());
                    for (auto a = static_cast<uint32_t>(begin); a < end; ++a) {
                      const auto own = kinships.empty()
                                           ? kinships
                                           : kinships.subspan(size_t{a} * items(), items());
                      FillRow(a, own, row);
                      for (uint32_t b = 0; b < items(); ++b) {
                        const uint32_t bucket =
                            table == Buckets::kKinship
                                ? own[b]
                                : buckets_.BinBucket(table, buckets_.bins(a), buckets_.bins(b));
                        sums[bucket] += row[b];
                      }
                    }
                  });
}

std::vector<Prior::PairBuckets> Prior::SamplePairs(WorkerPool& workers) const {
  for (size_t table = 0; table < buckets_.tables(); ++table)
    TACIT_CHECK(buckets_.size(table) <= kNoPair, "a bucket's number has 16 bits");
  std::vector<double> upto(items());
  std::partial_sum(popularity_.begin(), popularity_.end(), upto.begin());
  const double total = upto.back();
  const auto item_at = [&](double share) {
    const auto at = std::upper_bound(upto.begin(), upto.end(), share * total) - upto.begin();
    return std::min(static_cast<uint32_t>(at), items() - 1);
  };
  std::vector<PairBuckets> samples(kSamples);
  workers.Run(kSamples, [&](size_t begin, size_t end, size_t) {
    for (uint64_t i = begin; i < end; ++i) {
      const uint32_t a = item_at(FirstCoordinate(i)), b = item_at(SecondCoordinate(i));
      if (a == b) samples[i][0] = kNoPair;
      if (a == b) continue;
      for (size_t table = 0; table < buckets_.tables(); ++table)
        samples[i][table] = static_cast<uint16_t>(buckets_.Of(table, a, b));
    }
  });
  return samples;
}

std::vector<double> Prior::SampledSums(size_t table, std::span<const PairBuckets> samples,
                                       WorkerPool& workers) const {
  const double total = std::accumulate(popularity_.begin(), popularity_.end(), 0.0);
  const double weight = total * total / static_cast<double>(kSamples);
  return SumParts(samples.size(), buckets_.size(table), workers,
                  [&](size_t begin, size_t end, std::vector<double>& sums) {
                    for (const PairBuckets& pair : samples.subspan(begin, end - begin)) {
                      if (pair[0] == kNoPair) continue;
                      float factor = 1;
                      for (size_t t = 0; t < buckets_.tables(); ++t) factor *= factors_[t][pair[t]];
                      sums[pair[table]] += weight * factor;
                    }
                  });
}

void Prior::Fit(std::span<const ReleasedTable> tables, const Options& options,
                WorkerPool& workers) {
  TACIT_CHECK(tables.size() == buckets_.tables());
  const bool dense = options.IsDense(items());
  const std::vector<uint16_t> kinships = dense ? Kinships(workers) : std::vector<uint16_t>();
  const auto samples = dense ? std::vector<PairBuckets>() : SamplePairs(workers);
  for (uint32_t round = 0; round < options.fitting_rounds; ++round) {
    for (size_t table = tables.size(); table-- > 0;) {
      const ReleasedTable& released = tables[table];
      const std::vector<double> sums =
          dense ? Sums(table, kinships, workers) : SampledSums(table, samples, workers);
      const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
      const double released_total =
          std::accumulate(released.sums.begin(), released.sums.end(), 0.0);
      // Noise has drowned the sums: nothing is known.
      if (!(released_total > 0 && total > 0)) continue;
      std::vector<double> expected = sums;
      for (double& sum : expected) sum = sum * released_total / total;
      const std::vector<double> trusts = BucketTrusts(released.sums, expected, released.deviation);
      for (size_t k = 0; k < expected.size(); ++k) {
        if (!(expected[k] > 0)) continue;
        const double ratio =
            std::clamp(released.sums[k] / expected[k], options.ratio_least, options.ratio_most);
        factors_[table][k] *= static_cast<float>(1 + trusts[k] * (ratio - 1));
      }
    }
  }
}

}  // namespace tacit::model::transitions
