#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/examples.h"
#include "model/linear/columns.h"
#include "model/linear/state.h"
#include "serve/scoring/row_scorer.h"
#include "serve/scoring/weight_memo.h"

namespace tacit::serve {

// The linear click model (docs/internals/model.md, linear): a bias from the snapshot's released
// state, and the weights of an example's values from its rows, of which those of late requests are
// remembered as long as their release answers. Working memory grows to one chunk of rows.
class LinearScorer final : public RowScorer {
 public:
  // `learner` is its name, for messages; batches are those of `transform`.
  LinearScorer(LearnerIndex index, std::string learner, const event::FeatureTransform& transform,
               std::shared_ptr<const model::linear::Columns> columns);

  Status Score(const store::Snapshot& snapshot, const event::Batch& batch,
               std::span<float> scores) override;

 private:
  Status ReadState(const store::Snapshot& snapshot);
  Status ScoreChunk(const store::Snapshot& snapshot, std::span<float> scores);
  Status ReadWeights(const store::Snapshot& snapshot, std::span<const uint64_t> rows);

  const LearnerIndex index_;
  const std::string learner_;
  const std::shared_ptr<const model::linear::Columns> columns_;
  // The knowledge of one release. A scorer keeps some, as versions may answer in turn.
  struct Known {
    std::shared_ptr<const std::string> released;
    model::linear::State state;
    WeightMemo memo;
    uint64_t used = 0;  // the number of the request that used it last
  };
  static constexpr size_t kKnownMost = 4;

  std::vector<std::unique_ptr<Known>> known_;
  Known* now_ = nullptr;  // that of the request
  uint64_t requests_ = 0;
  event::Batch chunk_;
  model::linear::ValueRuns runs_;
  std::vector<float> weights_;    // of each value of the chunk
  std::vector<uint32_t> places_;  // 0, 1, 2, ...
  // Values whose weights are not remembered: their places in the chunk, their rows, the distinct
  // ones among these, and the weights of those.
  std::vector<uint32_t> missed_;
  std::vector<uint64_t> missed_rows_;
  model::ActivationIndexer indexer_;
  model::Activations distinct_;
  std::vector<float> missed_weights_;
};

// The kind of model whose scorer that is.
std::shared_ptr<const RowModel> MakeLinearModel(
    LearnerIndex index, std::string learner,
    std::shared_ptr<const event::FeatureTransform> transform,
    std::shared_ptr<const model::linear::Columns> columns);

}  // namespace tacit::serve
