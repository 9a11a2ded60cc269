#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "lab/next_item/method.h"
#include "lab/next_item/sequence_data.h"
#include "lab/next_item/sequence_results.h"
#include "noise/noise.h"

namespace tacit::lab {

inline constexpr size_t kTenths = 10;

// The parameters of a replay. They are public.
struct StreamPlan {
  uint64_t period_events = 0;  // records of a period; the last may have fewer
  uint32_t user_periods = 0;   // most periods that a user is learnt from
  double mu = 0;               // spending per period and user; infinite: no noise
  uint32_t context = 0;        // earlier items of a user given with a period's new ones
};

struct StreamOutcome {
  SequenceTenth all;
  std::vector<SequenceTenth> tenths;  // tenths of the stream's events, in order
  SequenceTenth cold;                 // events with items that first appear in the last tenth
  double mu_squared = 0;              // the largest spending on any user
  uint64_t user_periods_most = 0;     // the most periods that any user was learnt from
  double learn_seconds = 0, ask_seconds = 0;
};

// Predicts, then learns. Asks about a period's events one by one, each with the user's items before
// it, of a method that has learnt from the earlier periods; then learns from the period. Does not
// ask about events of the first period, a user's first event, or items that the user already had. A
// user's records count in the first `user_periods` of the periods that have records of his, and in
// no other. The ends of periods depend on the number of all users' records, which counts as public;
// apart from that, only his own records decide where they count. The last period is not learnt
// from. A period that spends more than it may is refused. REQUIRES period_events and user_periods
// above 0.
Result<StreamOutcome> ReplayStream(const SequenceStream& stream, const StreamPlan& plan,
                                   StreamMethod& method, noise::NoiseSource& noise,
                                   WorkerPool& workers,
                                   const std::function<void(double share)>& tell);

}  // namespace tacit::lab
