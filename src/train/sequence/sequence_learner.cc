#include "train/sequence/sequence_learner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "train/hit_at_10.h"

namespace tacit::train {
namespace {

// The users of a step. Crops depend on public coins and the user's own history alone.
class StepUnits final : public model::SequenceUnits {
 public:
  StepUnits(const model::SequenceOptions& options, const StepHistories& step)
      : options_(options), step_(step) {}

  size_t units() const override { return step_.id.size(); }
  uint64_t Id(size_t unit) const override { return step_.id[unit]; }
  size_t Cost(size_t unit) const override {
    return std::min<size_t>(step_.histories.Of(unit).size(),
                            size_t{options_.length} * options_.crops) +
           1;
  }
  void Rows(size_t unit, uint64_t coins, model::UnitRows* rows) const override {
    model::CutCrops(options_, step_.histories.Of(unit), coins, rows);
  }

 private:
  const model::SequenceOptions& options_;
  const StepHistories& step_;
};

}  // namespace

SequenceLearner::SequenceLearner(SequenceLearnerOptions options, RecentHistories::Reader reader,
                                 std::unique_ptr<noise::NoiseSource> noise, ops::Backend& backend,
                                 const store::DenseState* resume, uint64_t steps_taken)
    : Learner(options.id, options.index),
      options_(std::move(options)),
      recent_(options_.histories, std::move(reader)),
      stepper_(options_.training, options_.sampling_rate, backend, std::move(noise)) {
  if (resume != nullptr) stepper_.Resume(resume->parameters, resume->optimizer, steps_taken);
}

Status SequenceLearner::Preview(const stream::StepBatch& batch, StepReport* report) {
  recent_.Preview(batch);
  *report = {.examples = batch.examples.size()};
  if (batch.kind == stream::StepBatch::Kind::kPreviewAgain) return {};
  TACIT_RETURN_IF_ERROR(recent_.Gather(batch, &step_));
  return AskForNext(report);
}

// Asks with the model as it was before the step.
Status SequenceLearner::AskForNext(StepReport* report) {
  std::vector<std::span<const uint32_t>> histories;
  std::vector<uint32_t> answers;
  for (size_t u = 0; u < step_.id.size() && histories.size() < options_.asked_most; ++u) {
    const auto before = step_.Before(u);
    const auto answer = FirstUnseen(before, step_.New(u));
    if (before.empty() || !answer) continue;
    histories.push_back(before);
    answers.push_back(*answer);
  }
  std::vector<uint8_t> hit(histories.size());
  TACIT_RETURN_IF_ERROR(
      stepper_.model().Score(stepper_.Weights(), stepper_.parameter_noise(), histories,
                             [&](size_t i, std::span<float> scores, size_t) {
                               hit[i] = IsAmongBest(scores, histories[i], answers[i]);
                             }));
  report->asked = histories.size();
  report->hits = std::accumulate(hit.begin(), hit.end(), uint64_t{0});
  return {};
}

Result<bool> SequenceLearner::TakeStep(const stream::StepBatch& step,
                                       const std::atomic<bool>& abandon, StepReport* report) {
  TACIT_RETURN_IF_ERROR(recent_.Gather(step, &step_));
  *report = {.examples = step.examples.size()};
  if (!step.whole_period() && !abandon) TACIT_RETURN_IF_ERROR(AskForNext(report));
  if (abandon) return false;
  TACIT_RETURN_IF_ERROR(stepper_.GradientOf(StepUnits(stepper_.model().layout().options(), step_)));
  // Nothing outside has seen the sum. From here on it is released, and charged.
  if (abandon) return false;
  const SequenceStepReport done = stepper_.Release();
  recent_.Taken(step);
  report->losses = done.units;
  report->loss_sum = done.loss * static_cast<double>(done.units);
  report->units_clipped = done.units_clipped;
  return true;
}

// Scores for a history of just the catalogue's first item.
Result<bool> SequenceLearner::GivesNumbers() {
  constexpr uint32_t kFirst = 0;
  const std::span<const uint32_t> history(&kFirst, 1);
  bool numbers = true;
  TACIT_RETURN_IF_ERROR(stepper_.model().Score(
      stepper_.Weights(), stepper_.parameter_noise(), std::vector{history},
      [&](size_t, std::span<float> scores, size_t) {
        numbers = std::ranges::all_of(scores, [](float score) { return std::isfinite(score); });
      }));
  return numbers;
}

std::shared_ptr<const store::DenseState> SequenceLearner::CopyDense() const {
  auto dense = std::make_shared<store::DenseState>();
  dense->parameters.assign(stepper_.parameters().begin(), stepper_.parameters().end());
  dense->optimizer.assign(stepper_.optimizer_state().begin(), stepper_.optimizer_state().end());
  return dense;
}

Status SequenceLearner::LoadReleased(std::string_view) {
  return Fail(ErrorCode::kCorruption,
              "learner '" + id() + "': a sequence model has no mechanism state, but one is stored");
}

privacy::Charge ChargeOf(const SequenceLearnerOptions& options) {
  return StepCharge(options.training.privacy, options.sampling_rate);
}

store::RowLayout MakeRowLayout(const SequenceTrainingOptions& options) {
  store::RowLayout layout;
  layout.seed = options.seed;
  layout.average = MovingAverage(options.optimizer.average_decay);
  return layout;
}

}  // namespace tacit::train
