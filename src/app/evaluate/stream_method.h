#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "app/evaluate/sequence_method.h"
#include "base/result.h"
#include "base/worker_pool.h"
#include "noise/noise.h"
#include "train/transitions_release.h"

namespace tacit::app {

// A way to recommend the next item that learns as it goes on: the seam of `tacit evaluate sequence
// --stream`.
class StreamMethod {
 public:
  virtual ~StreamMethod() = default;

  // Learns from a period, spending at most `mu` on each user who is in it, infinite for no noise.
  // What was really spent, as mu^2. `noise` is used on this thread.
  virtual Result<double> Learn(const train::TransitionsPeriod& period, double mu,
                               noise::NoiseSource& noise, WorkerPool& workers) = 0;
  // A score for every item of the catalogue, of what may follow this history. From any thread.
  // REQUIRES a period that was learnt.
  virtual void Score(std::span<const uint32_t> history, std::span<float> scores) const = 0;
};

// kInvalidArgument for a learner that learns from whole histories at once, or for none at all.
Status CheckStreamMethod(std::string_view name);
// REQUIRES a name that was checked. `setting`'s catalogue and `workers` must outlive it.
std::unique_ptr<StreamMethod> MakeStreamMethod(std::string_view name,
                                               const SequenceSetting& setting, WorkerPool& workers);

}  // namespace tacit::app
