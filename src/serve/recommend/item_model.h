#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/sequence/options.h"
#include "model/transitions/catalogue.h"
#include "model/transitions/options.h"
#include "store/snapshot.h"

// The seam between recommending and the kinds of model that can. All scores are finite; only their
// order within one answer means anything.
namespace tacit::serve {

// What recommendations are made from: made once of what a learner had released as of a commit, then
// shared by all threads. Immutable.
class ItemState {
 public:
  virtual ~ItemState() = default;
  // A score for every item where nothing is known of who asks.
  std::span<const float> cold_start() const { return cold_start_; }

 protected:
  std::vector<float> cold_start_;
};

// Scores out of states of one model. Owns its working memory; not thread-safe, one per thread.
class ItemScorer {
 public:
  virtual ~ItemScorer() = default;
  // A score for every item to come behind a history of items of the catalogue, oldest first.
  // REQUIRES a history, a state of the same model, and a score per item. kCorruption: the state
  // gives scores that are not numbers.
  virtual Status Score(const ItemState& state, std::span<const uint32_t> history,
                       std::span<float> scores) = 0;
};

// A learner's kind of model and its options. Immutable; thread-safe.
class ItemModel {
 public:
  virtual ~ItemModel() = default;
  virtual uint32_t items() const = 0;
  // The state as of the snapshot: null where nothing was released yet, and `last` itself where that
  // was made of the same. Takes long; keeps nothing of the snapshot. kCorruption, kInvalidArgument:
  // what was released is not this model's.
  virtual Result<std::shared_ptr<const ItemState>> Build(
      const store::Snapshot& snapshot, const std::shared_ptr<const ItemState>& last) const = 0;
  virtual std::unique_ptr<ItemScorer> MakeScorer() const = 0;
};

// The shaped count model, of model::transitions::ReleasedModel's bytes (Snapshot::Released). Cold
// start: the released popularity. A state has items^2 floats where those are few enough, and twice
// that while it is built (model::transitions::Scorer).
std::shared_ptr<const ItemModel> MakeTransitionsItems(
    LearnerIndex learner, std::shared_ptr<const model::transitions::Catalogue> catalogue,
    const model::transitions::Options& options);

// What parameters' noise is to Re-Attention (model::ParameterNoise), with numbers of its own.
struct SequenceNoise {
  float weight_variance = 0;
  std::vector<float> item_variance;  // empty: attention is not corrected
};
// The trained sequence model, of Snapshot::ServedDense, of which a state is a copy. Cold start: the
// mean of what it says behind single items, of all, or of so many, spread evenly over the
// catalogue, that they take 2^24 scores.
std::shared_ptr<const ItemModel> MakeSequenceItems(LearnerIndex learner,
                                                   const model::SequenceOptions& options,
                                                   SequenceNoise noise = {});

}  // namespace tacit::serve
