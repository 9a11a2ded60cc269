#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "lab/next_item/stream_method.h"
#include "model/sequence/logit_prior.h"
#include "noise/noise.h"

namespace tacit::lab {

// The release that each period of a trained stream makes before its steps. Every later step may use
// it at no further cost.
class StreamStart {
 public:
  virtual ~StreamStart() = default;

  // The largest share of a period's mu^2 that Learn spends. Between 0 and 1.
  virtual double share() const = 0;
  // Releases. `mu` is the period's whole allowance per user, infinite for no noise; `users` is
  // their number, or a public number in its place. Returns the spending as mu^2.
  virtual Result<double> Learn(const StreamPeriod& period, double mu, double users,
                               noise::NoiseSource& noise, WorkerPool& workers) = 0;
  // The logits that are added to the model's; only Learn changes them. Null: nothing is added.
  virtual const model::LogitPrior* prior() const = 0;
  // The chance that a user has each item, for Re-Attention; empty if unknown.
  virtual std::vector<float> ItemShares() const { return {}; }
};

// The start for a learner of trained_model.h. It releases counts for a learner that begins with
// them; else a histogram of items, if logits begin with popularity or Re-Attention needs it against
// noise; null if the learner needs neither. kInvalidArgument, naming it, for an invalid constant.
Result<std::unique_ptr<StreamStart>> MakeStreamStart(std::string_view name,
                                                     const SequenceSetting& setting,
                                                     bool is_private, WorkerPool& workers);

}  // namespace tacit::lab
