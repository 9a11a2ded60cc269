#include "serve/scoring/click_scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace tacit::serve {
namespace {

// Scores rows in chunks of this size, so that activations stay in the cache and a request's memory
// is bounded.
constexpr size_t kChunkRows = 256;

class ClickModel final : public RowModel {
 public:
  ClickModel(LearnerIndex index, std::string learner,
             std::shared_ptr<const event::FeatureTransform> transform,
             const model::PctrOptions& options)
      : index_(index),
        learner_(std::move(learner)),
        transform_(std::move(transform)),
        options_(options) {}
  std::string_view kind() const override { return "pctr"; }
  std::unique_ptr<RowScorer> MakeScorer() const override {
    return std::make_unique<ClickScorer>(index_, learner_, *transform_, options_);
  }
  uint32_t RowWidth(size_t feature) const override {
    const auto tables = options_.space.tables();
    return tables.empty() ? 0 : tables[feature].dim;
  }

 private:
  const LearnerIndex index_;
  const std::string learner_;
  const std::shared_ptr<const event::FeatureTransform> transform_;
  const model::PctrOptions options_;
};

}  // namespace

ClickScorer::ClickScorer(LearnerIndex index, std::string learner,
                         const event::FeatureTransform& transform, const model::PctrOptions& model)
    : index_(index),
      learner_(std::move(learner)),
      space_(model.space),
      workers_(WorkerPool::Options{.workers = 1}),
      backend_(ops::MakeCpuBackend(workers_)),
      pctr_(model, *backend_) {
  unit_of_.resize(kChunkRows);
  std::iota(unit_of_.begin(), unit_of_.end(), 0u);
  transform.StartBatch(&chunk_);
}

Result<std::span<const float>> ClickScorer::ParametersOf(const store::Snapshot& snapshot) const {
  if (snapshot.Dense(index_) == nullptr) return Fail(NotYetCommitted(learner_));
  const std::span<const float> dense = snapshot.ServedDense(index_);
  if (dense.size() != pctr_.dense_size())
    return Fail(ErrorCode::kCorruption,
                fmt::format("learner '{}': version {} has {} dense parameters, the model {}",
                            learner_, snapshot.version().value, dense.size(), pctr_.dense_size()));
  return dense;
}

Status ClickScorer::Score(const store::Snapshot& snapshot, const event::Batch& batch,
                          std::span<float> scores) {
  TACIT_CHECK(scores.size() == batch.size());
  TACIT_ASSIGN(const std::span<const float> dense, ParametersOf(snapshot));
  for (size_t begin = 0; begin < batch.size(); begin += kChunkRows) {
    const size_t end = std::min(batch.size(), begin + kChunkRows);
    chunk_.Clear();
    chunk_.AppendRange(batch, begin, end);
    TACIT_RETURN_IF_ERROR(ScoreChunk(snapshot, dense, chunk_, scores.subspan(begin, end - begin)));
  }
  return {};
}

Status ClickScorer::ScoreChunk(const store::Snapshot& snapshot, std::span<const float> dense,
                               const event::Batch& chunk, std::span<float> scores) {
  const size_t n = chunk.size();
  const std::span<const uint32_t> unit_of(unit_of_.data(), n);
  // A model without tables uses only the dense numbers.
  const bool embeds = !space_.tables().empty();
  const std::span<const uint64_t> rows(chunk.row.data(), embeds ? chunk.row.size() : 0);
  const std::span<const uint32_t> slot_end(chunk.slot_end.data(),
                                           embeds ? chunk.slot_end.size() : 0);
  indexer_.Index(rows, slot_end, embeds ? chunk.slots : 0, unit_of, n, &activations_);
  TACIT_RETURN_IF_ERROR(FetchRows(snapshot));
  const model::Examples examples{.size = n,
                                 .units = n,
                                 .unit_of = unit_of,
                                 .label = chunk.label,
                                 .dense = chunk.dense,
                                 .slot_end = slot_end,
                                 .slot_row = activations_.slot_row};
  TACIT_RETURN_IF_ERROR(pctr_.Forward(examples, dense, rows_, scores));
  return MakeProbabilities(learner_, snapshot, scores);
}

// Fetches the embeddings of the chunk's distinct rows and sets where each begins.
Status ClickScorer::FetchRows(const store::Snapshot& snapshot) {
  const auto tables = space_.tables();
  const auto& ids = activations_.rows;
  row_values_.resize(ids.size() * space_.max_dim());
  rows_.resize(ids.size());
  size_t table = 0, at = 0;
  for (size_t i = 0; i < ids.size(); ++i) {  // ascending, so the table only moves forward
    while (ids[i] >= tables[table].first + tables[table].rows) ++table;
    rows_[i] = row_values_.data() + at;
    at += tables[table].dim;
  }
  return snapshot.Rows(index_, ids, std::span(row_values_).first(at));
}

std::shared_ptr<const RowModel> MakeClickModel(
    LearnerIndex index, std::string learner,
    std::shared_ptr<const event::FeatureTransform> transform, const model::PctrOptions& options) {
  return std::make_shared<ClickModel>(index, std::move(learner), std::move(transform), options);
}

}  // namespace tacit::serve
