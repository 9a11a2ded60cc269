#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/sequence/logit_prior.h"
#include "model/sequence/options.h"
#include "model/sequence/variance.h"
#include "model/transitions/options.h"
#include "model/transitions/public_items.h"
#include "model/transitions/scorer.h"
#include "store/types/snapshot.h"

// The interface between recommending and the kinds of model that can do it. All scores are finite;
// only their order within one answer has a meaning.
namespace tacit::serve {

// The state that recommendations are made from: built once from a learner's releases as of a
// commit, then shared by all threads. Immutable.
class ItemState {
 public:
  virtual ~ItemState() = default;
  // A score for every item, for a request without a known history.
  std::span<const float> cold_start() const { return cold_start_; }

 protected:
  std::vector<float> cold_start_;
};

using model::transitions::ScoredItem;

// The item of a history that most of a score comes from, and its share of the score, in (0, 1].
struct ItemReason {
  uint32_t item = 0;
  float share = 0;
};

// Scores items with states of one model. Owns its working memory; not thread-safe, one per thread.
class ItemScorer {
 public:
  virtual ~ItemScorer() = default;
  // Scores every item as the next one after a history of items of the catalogue, oldest first.
  // REQUIRES a nonempty history, a state of the same model, and room for a score per item.
  // kCorruption: the state gives scores that are not finite numbers.
  virtual Status Score(const ItemState& state, std::span<const uint32_t> history,
                       std::span<float> scores) = 0;
  // Sets `top` to the best `count` items by these scores, best first, without those marked in
  // `left_out`, where that takes less work than all scores; returns false where it does not. Only
  // the order of scores is that of Score. REQUIRES what Score does, a mark for each item, and
  // marks on those of the history.
  virtual Result<bool> Top(const ItemState& /*state*/, std::span<const uint32_t> /*history*/,
                           std::span<const uint8_t> /*left_out*/, uint32_t /*count*/,
                           std::vector<ScoredItem>* /*top*/) {
    return false;
  }
  // Tells why an item comes after this history; nothing where the model cannot, or knows of no
  // reason. REQUIRES a state of the same model and items of the catalogue.
  virtual std::optional<ItemReason> ReasonOf(const ItemState& /*state*/,
                                             std::span<const uint32_t> /*history*/,
                                             uint32_t /*item*/) {
    return std::nullopt;
  }
};

// A learner's kind of model and its options. Immutable; thread-safe.
class ItemModel {
 public:
  virtual ~ItemModel() = default;
  // model.kind of the configuration; "" where it has no such name.
  virtual std::string_view kind() const { return ""; }
  virtual uint32_t items() const = 0;
  // Builds the state as of the snapshot: null before the first release, and `last` itself if the
  // release is unchanged. Slow; keeps nothing of the snapshot. kCorruption, kInvalidArgument: the
  // release does not fit this model.
  virtual Result<std::shared_ptr<const ItemState>> Build(
      const store::Snapshot& snapshot, const std::shared_ptr<const ItemState>& last) const = 0;
  virtual std::unique_ptr<ItemScorer> MakeScorer() const = 0;
};

// The shaped count model, from the bytes of model::transitions::ReleasedModel (Snapshot::Released).
// Cold start: the released popularity. A state has items^2 floats if the catalogue is small enough,
// and twice that while it is built (model::transitions::Scorer); else the measured cells, and an
// answer takes the work of the history's.
std::shared_ptr<const ItemModel> MakeTransitionsItems(
    LearnerIndex learner, std::shared_ptr<const model::transitions::PublicItems> catalogue,
    const model::transitions::Options& options);

// The same counts with a ranker, from the bytes of model::ranking::ReleasedRanker. It puts the
// `candidates` likeliest items in order. A state has two tables of items^2 floats if the catalogue
// is small enough, else the measured cells twice. Reasons are those of the counts.
std::shared_ptr<const ItemModel> MakeRankedItems(
    LearnerIndex learner, std::shared_ptr<const model::transitions::PublicItems> catalogue,
    const model::transitions::Options& options, size_t candidates);

// The release of a sequence model's start, in the form that scoring needs.
struct ReleasedStart {
  std::shared_ptr<const model::LogitPrior> prior;  // null where nothing is added to logits
  model::KeptNoise noise;
};
// Reads a start from Snapshot::Released, as the learner does. kCorruption, kInvalidArgument: the
// bytes are damaged, or of another start. Thread-safe.
using ReadStart = std::function<Result<ReleasedStart>(std::string_view released)>;

// The trained sequence model; a state is a copy of Snapshot::ServedDense, with what `start` makes
// of the release beside it. An empty `start`: there is none. Cold start: the mean of its scores
// after single items. It uses all items, or evenly spaced ones, so that at most 2^24 scores are
// computed.
std::shared_ptr<const ItemModel> MakeSequenceItems(LearnerIndex learner,
                                                   const model::SequenceOptions& options,
                                                   model::KeptNoise noise = {},
                                                   ReadStart start = {});

}  // namespace tacit::serve
