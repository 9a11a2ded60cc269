#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "event/batch.h"
#include "event/codec.h"
#include "event/feature_transform.h"
#include "privacy/ledger.h"
#include "serve/scoring/linear_weights.h"
#include "store/types/snapshot.h"

// The interface between scoring rows and the kinds of model that can do it.
namespace tacit::serve {

// Computes probabilities of the label from snapshots of one learner. Owns its working memory; not
// thread-safe, one per thread.
class RowScorer {
 public:
  virtual ~RowScorer() = default;
  // Computes the probability of every example; `scores` is as long as the batch. kUnavailable: the
  // learner has no commit in this snapshot. kCorruption: its state does not fit this model, or
  // gives a score that is not finite.
  virtual Status Score(const store::Snapshot& snapshot, const event::Batch& batch,
                       std::span<float> scores) = 0;
};

// A learner's kind of model and its options. Immutable; thread-safe.
class RowModel {
 public:
  virtual ~RowModel() = default;
  // model.kind of the configuration; "" where it has no such name.
  virtual std::string_view kind() const { return ""; }
  virtual std::unique_ptr<RowScorer> MakeScorer() const = 0;
  // The numbers in a row of a categorical feature's table; 0: the model has no tables.
  virtual uint32_t RowWidth(size_t /*feature*/) const { return 0; }
  // Appends "bias":..,"periods":..,"weights":[..] to a JSON object. kInvalidArgument: a weight of
  // this kind of model means nothing by itself.
  virtual Status AppendWeights(const store::Snapshot& snapshot, const WeightsAsked& asked,
                               std::string* out) const;
};

// A learner that can score rows. A value type.
struct ScoringModel {
  LearnerIndex index;
  privacy::Promise promise;  // name, unit, participation, budget
  std::shared_ptr<const event::FeatureTransform> transform;
  std::shared_ptr<const RowModel> model;
  // Reads records of the stream's own form, with their labels passed over; null where a record is
  // not a line of text.
  std::shared_ptr<const event::Codec> lines = nullptr;
  std::string predicts = {};  // the label's name, in the operator's words
};

// Returns 1 / (1 + e^-x), without overflow.
float Sigmoid(float logit);

// Sets `scores`, of logits, to probabilities. kCorruption, naming learner and version, for one that
// is not finite.
Status MakeProbabilities(std::string_view learner, const store::Snapshot& snapshot,
                         std::span<float> scores);

// The failure of a learner without a commit.
Error NotYetCommitted(std::string_view learner);

}  // namespace tacit::serve
