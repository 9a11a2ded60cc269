#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "base/worker_pool.h"
#include "lab/next_item/sequence_method.h"
#include "model/histories.h"
#include "noise/noise.h"

namespace tacit::lab {

// Users' events in one period of a stream. The views' targets must outlive it.
struct StreamPeriod {
  // For each user, the known items, then the new ones; and an id that does not depend on the other
  // users of the period or the stream, since public coins are derived from it.
  const model::Histories& histories;
  // For each history, the number of its items from before the period, at most a method's context().
  // They serve only to predict new ones.
  std::span<const uint32_t> known;
};

// The caller's wishes while a method learns all histories as its only period.
struct LearnHooks {
  bool at_once = false;  // that is so, and the number of users is public
  std::function<void(double share)> progress = [](double) {};
  // Called every `look_every` steps and at the end, on Learn's thread; Score then uses what was
  // learnt so far. Empty: never.
  double look_every = 0;
  std::function<void(double steps)> look = {};
};

// A way to recommend the next item that learns during a stream: the interface of `tacit evaluate
// sequence --stream`.
class StreamMethod {
 public:
  virtual ~StreamMethod() = default;

  // The number of a user's items from before a period that help to learn from it.
  virtual uint32_t context() const { return 0; }
  // Call before the first period. Methods that learn in an instant take no notice.
  virtual void SetHooks(LearnHooks hooks) { static_cast<void>(hooks); }
  // Learns from a period, spending at most `mu` on each user in it, infinite for no noise. Returns
  // the actual spending as mu^2. `noise` is used on this thread.
  virtual Result<double> Learn(const StreamPeriod& period, double mu, noise::NoiseSource& noise,
                               WorkerPool& workers) = 0;
  // Scores every item of the catalogue as the next one after this history. Callable from any
  // thread. REQUIRES that a period was learnt.
  virtual void Score(std::span<const uint32_t> history, std::span<float> scores) const = 0;
};

}  // namespace tacit::lab
