#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "model/histories.h"
#include "noise/noise.h"
#include "privacy/spending.h"
#include "train/learner/learner.h"

namespace tacit::lab {

// The promise to every user; an infinite epsilon promises nothing and needs no noise.
struct EpsilonDelta {
  double epsilon = 0;
  double delta = 0;
};

// kInvalidArgument, naming --epsilon, where the noise it needs is too small or too large for a
// grid: then it would promise nothing, or leave nothing to learn.
Status CheckEpsilonDelta(const EpsilonDelta& privacy);

// The most that Gaussian queries on a user may spend together under a promise; infinite without
// one.
double MuOf(const EpsilonDelta& privacy);
// The epsilon of that spending at the promise's delta, certified as the ledger does it.
double EpsilonOf(const privacy::Spending& spending, const EpsilonDelta& privacy);

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
  // That is so, under this promise, and the number of users is public.
  std::optional<EpsilonDelta> at_once = {};
  std::function<void(double share)> progress = [](double) {};
  // Called every `look_every` epochs, or steps of a ranker, and at the end, on Learn's thread;
  // Score then uses what was learnt so far. A step of all users is an epoch. If empty, never.
  double look_every = 0;
  std::function<void(double epochs)> look = {};
};

// The answers of a method.
class ItemScores {
 public:
  virtual ~ItemScores() = default;
  // Scores every item of the catalogue as the next one after this history. Callable from any
  // thread. REQUIRES that something was learnt.
  virtual void Score(std::span<const uint32_t> history, std::span<float> scores) const = 0;
};

// A way to recommend the next item that learns period by period: the interface of `tacit evaluate
// sequence`.
class StreamMethod : public ItemScores {
 public:
  // The number of a user's items from before a period that help to learn from it.
  virtual uint32_t context() const { return 0; }
  // Call before the first period. Methods that learn in an instant take no notice of `look`.
  virtual void SetHooks(LearnHooks hooks) { static_cast<void>(hooks); }
  // Learns from a period, spending at most `mu` on each user in it, infinite for no noise. Returns
  // the spending of what was released. `noise` is used on this thread.
  virtual Result<privacy::Spending> Learn(const StreamPeriod& period, double mu,
                                          noise::NoiseSource& noise, WorkerPool& workers) = 0;
  // The daemon's learner that learns here; null before the first period, and for popularity, which
  // no daemon learns.
  virtual train::Learner* learner() { return nullptr; }
};

}  // namespace tacit::lab
