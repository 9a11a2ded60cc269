#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/evaluate/ranked_constants.h"
#include "app/evaluate/trained_constants.h"
#include "base/result.h"
#include "base/worker_pool.h"
#include "model/histories.h"
#include "model/transitions/catalogue.h"
#include "model/transitions/options.h"
#include "noise/noise.h"

namespace tacit::app {

// What is promised to every user; an infinite epsilon promises nothing and asks for no noise.
struct SequencePrivacy {
  double epsilon = 0;
  double delta = 0;
};

// kInvalidArgument, naming --epsilon, where the noise that it asks for is so small or so large that
// no grid holds it: then it promises nothing, or leaves nothing.
Status CheckSequencePrivacy(const SequencePrivacy& privacy);

// All that a promise lets Gaussian queries on a user spend together; infinite where nothing is
// promised.
double MuOf(const SequencePrivacy& privacy);
// What epsilon they spent, at the promise's delta.
double EpsilonOf(double mu_squared, const SequencePrivacy& privacy);

// A way to recommend the next item: the seam of `tacit evaluate sequence`.
class SequenceMethod {
 public:
  virtual ~SequenceMethod() = default;

  // Learns from all histories, once, and says what epsilon that cost by what was really released:
  // at most the promised one, certified; infinite where nothing is promised. `noise` is used on
  // this thread. `progress` may be called with a share of the work; `workers` must outlive the
  // method.
  virtual Result<double> Fit(const model::Histories& train, const SequencePrivacy& privacy,
                             noise::NoiseSource& noise, WorkerPool& workers,
                             const std::function<void(double share)>& progress) = 0;
  // Before Fit: look(epochs) is to be called every so many epochs and at the end, from Fit's
  // thread, while Score goes by what was learnt so far. Learners that count never call it; a step
  // that takes everybody is an epoch.
  virtual void Watch(double epochs, std::function<void(double epochs)> look) {
    static_cast<void>(epochs), static_cast<void>(look);
  }
  // A score for every item of the catalogue, of what may follow this history. From any thread.
  virtual void Score(std::span<const uint32_t> history, std::span<float> scores) const = 0;
};

// What methods may know beforehand. The catalogue must outlive what is made of it.
struct SequenceSetting {
  const model::transitions::Catalogue* catalogue = nullptr;  // described or not
  model::transitions::Options transitions;
  TrainedConstants trained;
  RankedConstants ranked;
};

// Their names: transitions (the shaped count model), transitions-no-items (the same without what is
// known of items), popularity (one histogram, the same answer for everybody), transitions+ranker
// (ranked_method.h), and those of trained_model.h.
std::span<const std::string_view> SequenceMethodNames();
// kInvalidArgument, with the nearest name, for one that is none.
Status CheckSequenceMethod(std::string_view name);
// Whether a method counts, and so has no epochs. REQUIRES a name of these.
bool LearnsAtOnce(std::string_view name);
// What runs of a method are known by: its name and all its constants.
std::string SequenceMethodIdentity(std::string_view name, const SequenceSetting& setting);
// REQUIRES a name of these.
std::unique_ptr<SequenceMethod> MakeSequenceMethod(std::string_view name,
                                                   const SequenceSetting& setting);

}  // namespace tacit::app
