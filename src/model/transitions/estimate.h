#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/threads/worker_pool.h"
#include "model/transitions/cells.h"
#include "model/transitions/posterior.h"
#include "model/transitions/prior.h"

namespace tacit::model::transitions {

// The measurements so far: for each cell the mean of its measurements and their precision (1 over
// the variance; 0: not measured yet), all in units of the first measurement. A value.
struct Measured {
  Cells cells;
  std::vector<float> mean, precision;
  double kappa = 1;        // the factor that brings the prior to these units
  bool noiseless = false;  // means are sums, and cells that are not listed are empty
};

// Estimates how often b follows a, for every ordered pair, from a prior and the measurements of
// listed cells, in units of the first measurement. Made of released numbers alone. The prior must
// outlive it. Not thread-safe while it is measured.
class Estimate {
 public:
  // Nothing is measured yet: kappa is 1.
  Estimate(const Prior& prior, Cells cells, const Options& options, WorkerPool& workers);
  // Resumes from earlier measurements.
  Estimate(const Prior& prior, Measured measured, const Options& options, WorkerPool& workers);

  const Cells& cells() const { return measured_.cells; }
  const Measured& measured() const { return measured_; }
  const Prior& prior() const { return *prior_; }
  // Per cell: its weight, or kappa times the prior if it is not measured.
  std::span<const float> weights() const { return weights_; }
  double kappa() const { return measured_.kappa; }
  float Of(uint32_t a, uint32_t b) const;
  // kappa times the prior.
  float Unmeasured(uint32_t a, uint32_t b) const {
    return static_cast<float>(kappa()) * prior_->Of(a, b);
  }

  // Takes the first measurement: `sums` are of all cells, with noise of this standard deviation, 0
  // for none. Sets kappa to the sum of them over the sum of the prior.
  void MeasureAll(std::span<const float> sums, double deviation);
  // Takes another measurement: of `places` in the cells, ascending. Its sums are in units of their
  // own, which least squares on the weights so far turns into the estimate's; then a cell's
  // measurements are combined by inverse variance. Sums without noise are added up.
  void MeasureMore(std::span<const uint32_t> places, std::span<const float> sums, double deviation);

  // Begins a new period: measurements so far count for `share` of what they did, and `prior`, which
  // must outlive this too, replaces the one before.
  void Renew(const Prior& prior, double share);
  // Sets kappa to the sum of the weights over the sum of the prior, both of the measured cells: the
  // prior's units may have changed, and more is known of them.
  void FitKappa();
  // Adds cells that may be measured.
  void Widen(const Cells& more);
  // Removes the cells that are neither measured nor at these places, ascending; beyond
  // Options::cells_most also the measured cells that come last in Top. Returns the places that the
  // given cells have now.
  std::vector<uint32_t> Narrow(std::span<const uint32_t> places);

  // Returns the `count` cells with the largest weight / (p_a^from p_b^to), ascending; of equals the
  // earlier.
  std::vector<uint32_t> Top(uint64_t count) const;

 private:
  template <class Visit>
  void ForCells(const Visit& visit) const;
  void Update(uint32_t place);
  void UpdateAll();
  // Sets expected_ to the prior of every cell.
  void Expect();
  void Add(std::span<const uint32_t> places, std::span<const float> sums);

  const Prior* prior_;
  const Options options_;
  WorkerPool& workers_;
  const Posterior posterior_;
  Measured measured_;
  std::vector<float> expected_;  // per cell: the prior
  std::vector<float> weights_;
};

}  // namespace tacit::model::transitions
