#include "serve/scoring/linear_scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "http/http.h"
#include "model/linear/predict.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
namespace {

namespace linear = model::linear;

// Rows scored at a time, so that a request's memory is bounded.
constexpr size_t kLinearChunk = 256;

class LinearModel final : public RowModel {
 public:
  LinearModel(LearnerIndex index, std::string learner,
              std::shared_ptr<const event::FeatureTransform> transform,
              std::shared_ptr<const linear::Columns> columns)
      : index_(index),
        learner_(std::move(learner)),
        transform_(std::move(transform)),
        columns_(std::move(columns)) {}
  std::string_view kind() const override { return "linear"; }
  std::unique_ptr<RowScorer> MakeScorer() const override {
    return std::make_unique<LinearScorer>(index_, learner_, *transform_, columns_);
  }
  uint32_t RowWidth(size_t feature) const override {
    return columns_->space().tables()[feature].dim;
  }
  Status AppendWeights(const store::Snapshot& snapshot, const WeightsAsked& asked,
                       std::string* out) const override;

 private:
  const LearnerIndex index_;
  const std::string learner_;
  const std::shared_ptr<const event::FeatureTransform> transform_;
  const std::shared_ptr<const linear::Columns> columns_;
};

// Appends the name of a value, without the brace that closes it: the number of its category, the
// least number of its bin, or both values of a cross.
void AppendValue(const linear::Columns& columns, size_t column, uint64_t value, std::string* out) {
  *out += R"({"column":)";
  http::AppendJsonString(columns.space().tables()[column].name, out);
  fmt::format_to(std::back_inserter(*out), R"(,"value":{})", value);
  if (const linear::Columns::Cross* cross = columns.CrossOf(column)) {
    *out += R"(,"of":[)";
    AppendValue(columns, cross->first, value / cross->second_rows, out);
    *out += "},";
    AppendValue(columns, cross->second, value % cross->second_rows, out);
    *out += "}]";
    return;
  }
  if (!columns.IsNumber(column)) return;
  if (value == 0) {
    *out += R"(,"missing":true)";
    return;
  }
  *out += R"(,"at_least":)";
  AppendNumber(columns.bins().LeastOf(static_cast<uint32_t>(value)), out);
}

Status LinearModel::AppendWeights(const store::Snapshot& snapshot, const WeightsAsked& asked,
                                  std::string* out) const {
  const auto released = snapshot.Released(index_);
  if (released == nullptr) return Fail(NotYetCommitted(learner_));
  TACIT_ASSIGN(const linear::State state, linear::State::Decode(*released, *columns_));
  TACIT_ASSIGN(const auto weights, LargestWeights(snapshot, index_, *columns_, asked));
  fmt::format_to(std::back_inserter(*out), R"("bias":{},"periods":{},"weights":[)", state.bias,
                 state.periods);
  for (const LinearWeight& weight : weights) {
    if (&weight != &weights.front()) *out += ',';
    AppendValue(*columns_, weight.column,
                weight.row - columns_->space().tables()[weight.column].first, out);
    fmt::format_to(std::back_inserter(*out),
                   R"(,"weight":{:.6g},"deviation":{:.6g},"events":{:.6g},"period":{}}})",
                   weight.weight, weight.deviation, weight.events, weight.period);
  }
  *out += ']';
  return {};
}

}  // namespace

LinearScorer::LinearScorer(LearnerIndex index, std::string learner,
                           const event::FeatureTransform& transform,
                           std::shared_ptr<const linear::Columns> columns)
    : index_(index), learner_(std::move(learner)), columns_(std::move(columns)) {
  transform.StartBatch(&chunk_);
}

Status LinearScorer::ReadState(const store::Snapshot& snapshot) {
  auto released = snapshot.Released(index_);
  if (released == nullptr) return Fail(NotYetCommitted(learner_));
  ++requests_;
  const auto known = std::ranges::find(known_, released, &Known::released);
  if (known != known_.end()) {
    now_ = known->get();
    now_->used = requests_;
    return {};
  }
  auto state = linear::State::Decode(*released, *columns_);
  if (!state)
    return Fail(
        std::move(state.error())
            .Context(fmt::format("learner '{}': version {}", learner_, snapshot.version().value)));
  if (known_.size() < kKnownMost) {
    now_ = known_.emplace_back(std::make_unique<Known>()).get();
  } else {
    now_ = std::ranges::min_element(known_, {}, [](const auto& one) { return one->used; })->get();
    now_->memo.Clear();
  }
  now_->state = std::move(*state);
  now_->released = std::move(released);
  now_->used = requests_;
  return {};
}

Status LinearScorer::Score(const store::Snapshot& snapshot, const event::Batch& batch,
                           std::span<float> scores) {
  TACIT_CHECK(scores.size() == batch.size());
  TACIT_RETURN_IF_ERROR(ReadState(snapshot));
  for (size_t begin = 0; begin < batch.size(); begin += kLinearChunk) {
    const size_t end = std::min(batch.size(), begin + kLinearChunk);
    chunk_.Clear();
    chunk_.AppendRange(batch, begin, end);
    TACIT_RETURN_IF_ERROR(ScoreChunk(snapshot, scores.subspan(begin, end - begin)));
  }
  return {};
}

// Sets weights_, one for each of `rows`, which may repeat. A release changes weights and state
// together, in one commit.
Status LinearScorer::ReadWeights(const store::Snapshot& snapshot, std::span<const uint64_t> rows) {
  weights_.resize(rows.size());
  missed_.clear();
  missed_rows_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (now_->memo.Find(rows[i], &weights_[i])) continue;
    missed_.push_back(static_cast<uint32_t>(i));
    missed_rows_.push_back(rows[i]);
  }
  if (missed_.empty()) return {};
  // The store takes each row once, in ascending order. Only few are missed as a rule, so that few
  // are sorted.
  const auto end = static_cast<uint32_t>(missed_.size());
  constexpr uint32_t kOneUnit = 0;
  indexer_.Index(missed_rows_, {&end, 1}, 1, {&kOneUnit, 1}, 1, &distinct_);
  missed_weights_.resize(distinct_.rows.size());
  TACIT_RETURN_IF_ERROR(snapshot.Rows(index_, distinct_.rows, missed_weights_));
  for (size_t k = 0; k < missed_.size(); ++k)
    weights_[missed_[k]] = missed_weights_[distinct_.slot_row[k]];
  for (size_t k = 0; k < distinct_.rows.size(); ++k)  // a damaged weight is read again
    if (std::isfinite(missed_weights_[k])) now_->memo.Keep(distinct_.rows[k], missed_weights_[k]);
  return {};
}

Status LinearScorer::ScoreChunk(const store::Snapshot& snapshot, std::span<float> scores) {
  const size_t n = chunk_.size();
  columns_->Read(
      {.examples = n, .numbers = chunk_.dense, .slot_end = chunk_.slot_end, .row = chunk_.row},
      &runs_);
  TACIT_RETURN_IF_ERROR(ReadWeights(snapshot, runs_.row));
  for (size_t i = places_.size(); i < runs_.row.size(); ++i)
    places_.push_back(static_cast<uint32_t>(i));
  linear::AddUp({.columns = runs_.columns,
                 .place = std::span(places_).first(runs_.row.size()),
                 .end = runs_.end,
                 .one_each = runs_.one_each},
                0, n, weights_, scores);
  for (float& score : scores) score += static_cast<float>(now_->state.bias);
  return MakeProbabilities(learner_, snapshot, scores);
}

std::shared_ptr<const RowModel> MakeLinearModel(
    LearnerIndex index, std::string learner,
    std::shared_ptr<const event::FeatureTransform> transform,
    std::shared_ptr<const linear::Columns> columns) {
  return std::make_shared<LinearModel>(index, std::move(learner), std::move(transform),
                                       std::move(columns));
}

}  // namespace tacit::serve
