#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "app/evaluate/stream_method.h"
#include "base/result.h"
#include "base/worker_pool.h"
#include "model/sequence/logit_prior.h"
#include "noise/noise.h"

namespace tacit::app {

// What each period of a trained stream releases before its steps, and what that makes known: it is
// paid for, and free to be used in every step from then on.
class StreamStart {
 public:
  virtual ~StreamStart() = default;

  // Of the mu^2 of a period, what Learn spends at most. Between 0 and 1.
  virtual double share() const = 0;
  // `mu` is all that the period may spend on a user, infinite for no noise. What was spent, as
  // mu^2. `users`: how many there are, or a public number in their place.
  virtual Result<double> Learn(const StreamPeriod& period, double mu, double users,
                               noise::NoiseSource& noise, WorkerPool& workers) = 0;
  // What the model's logits are added to; changed by Learn alone. Null: nothing.
  virtual const model::LogitPrior* prior() const = 0;
  // The chance that a user has each item, for Re-Attention; empty: nothing is said of it.
  virtual std::vector<float> ItemShares() const { return {}; }
};

// For a learner of trained_model.h: counts for one that begins with them; else a histogram of
// items, where logits begin with what is popular, or Re-Attention needs it against noise. Null for
// one that needs nothing. kInvalidArgument, naming it, for a constant that makes no sense.
Result<std::unique_ptr<StreamStart>> MakeStreamStart(std::string_view name,
                                                     const SequenceSetting& setting,
                                                     bool is_private, WorkerPool& workers);

}  // namespace tacit::app
