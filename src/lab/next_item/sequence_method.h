#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/result.h"
#include "base/worker_pool.h"
#include "lab/next_item/ranked_constants.h"
#include "lab/next_item/trained_constants.h"
#include "model/histories.h"
#include "model/transitions/options.h"
#include "model/transitions/public_items.h"
#include "noise/noise.h"

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
// The epsilon of that spending at the promise's delta.
double EpsilonOf(double mu_squared, const EpsilonDelta& privacy);

// A way to recommend the next item: the interface of `tacit evaluate sequence`.
class SequenceMethod {
 public:
  virtual ~SequenceMethod() = default;

  // Learns from all histories, once. Returns the epsilon of the actual releases, certified and at
  // most the promised one; infinite without a promise. `noise` is used on this thread. `progress`
  // may be called with a share of the work; `workers` must outlive the method.
  virtual Result<double> Fit(const model::Histories& train, const EpsilonDelta& privacy,
                             noise::NoiseSource& noise, WorkerPool& workers,
                             const std::function<void(double share)>& progress) = 0;
  // Call before Fit: during Fit, look(epochs) is called every `epochs` epochs and at the end, on
  // Fit's thread, and Score then uses the model learnt so far. Counting methods never call it. A
  // step that takes all users is an epoch.
  virtual void Watch(double epochs, std::function<void(double epochs)> look) {
    static_cast<void>(epochs), static_cast<void>(look);
  }
  // Scores every item of the catalogue as the next one after this history. Callable from any
  // thread.
  virtual void Score(std::span<const uint32_t> history, std::span<float> scores) const = 0;
};

// Public knowledge for methods. The catalogue must outlive every method made with it.
struct SequenceSetting {
  const model::transitions::PublicItems* catalogue = nullptr;  // with or without item descriptions
  model::transitions::Options transitions;
  TrainedConstants trained;
  RankedConstants ranked;
};

}  // namespace tacit::lab
