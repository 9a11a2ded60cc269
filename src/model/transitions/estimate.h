#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/worker_pool.h"
#include "model/transitions/cells.h"
#include "model/transitions/posterior.h"
#include "model/transitions/prior.h"

namespace tacit::model::transitions {

// How often b follows a, for every ordered pair, out of a prior and the measurements of listed
// cells. In units of the first measurement. Made of released numbers alone. The prior must outlive
// it. Not thread-safe while it is measured.
class Estimate {
 public:
  // Nothing is measured yet: kappa is 1. `cells` are all that will be.
  Estimate(const Prior& prior, Cells cells, const Options& options, WorkerPool& workers);

  const Cells& cells() const { return cells_; }
  const Prior& prior() const { return prior_; }
  // Per cell: its weight; and kappa times the prior where it is not measured.
  std::span<const float> weights() const { return weights_; }
  double kappa() const { return kappa_; }
  float Of(uint32_t a, uint32_t b) const;
  // kappa times the prior.
  float Unmeasured(uint32_t a, uint32_t b) const {
    return static_cast<float>(kappa_) * prior_.Of(a, b);
  }

  // The first: `sums` are of all cells, with noise of this standard deviation, 0 for none. Sets
  // kappa to the sum of them over the sum of the prior.
  void MeasureAll(std::span<const float> sums, double deviation);
  // Another: of `places` in the cells, ascending. Its sums are in units of their own, which least
  // squares on the weights so far turns into ours; then what was measured of a cell is combined by
  // inverse variance.
  void MeasureMore(std::span<const uint32_t> places, std::span<const float> sums, double deviation);

  // The `count` cells with the largest weight / (p_a^from p_b^to), ascending; of equals the
  // earlier.
  std::vector<uint32_t> Top(uint64_t count) const;

 private:
  template <class Visit>
  void ForCells(const Visit& visit) const;
  void Update(uint32_t place);

  const Prior& prior_;
  const Cells cells_;
  const Options options_;
  WorkerPool& workers_;
  const Posterior posterior_;
  double kappa_ = 1;
  bool noiseless_ = false;
  std::vector<float> expected_;  // per cell: the prior
  std::vector<float> weights_;
  std::vector<float> mean_, precision_;  // per cell: of its measurements
};

}  // namespace tacit::model::transitions
