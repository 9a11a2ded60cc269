#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "app/evaluate/sequence_data.h"
#include "app/evaluate/sequence_results.h"
#include "app/evaluate/stream_method.h"
#include "base/result.h"
#include "base/worker_pool.h"
#include "noise/noise.h"

namespace tacit::app {

inline constexpr size_t kTenths = 10;

// How a stream is gone through. The numbers are public.
struct StreamPlan {
  uint64_t period_events = 0;  // records of a period; the last may have fewer
  uint32_t user_periods = 0;   // that a user is learnt from at most
  double mu = 0;               // that each of them may spend on a user; infinite: no noise
  uint32_t context = 0;        // earlier items of a user that a period has with what is new
};

struct StreamOutcome {
  SequenceTenth all;
  std::vector<SequenceTenth> tenths;  // of the stream's events, in order
  double mu_squared = 0;              // the most that was spent on any user
  uint64_t user_periods_most = 0;     // the most periods that any user was learnt from
  double learn_seconds = 0, ask_seconds = 0;
};

// Predict, then learn. A period's events are asked about one by one, each given what its user did
// before it, of a method that has learnt from the periods before; then the period is learnt from.
// Not asked about: events of the first period, a user's first event, and items that the user has
// had before. A user's records count in the first `user_periods` of the periods that he has records
// in, and in no other. Where periods end is decided by the number of everybody's records, and goes
// for public; within that it is his own alone that decide. The last period is learnt by nobody. A
// period that spends more than it may is refused. REQUIRES period_events and user_periods above 0.
Result<StreamOutcome> ReplayStream(const SequenceStream& stream, const StreamPlan& plan,
                                   StreamMethod& method, noise::NoiseSource& noise,
                                   WorkerPool& workers,
                                   const std::function<void(double share)>& tell);

}  // namespace tacit::app
