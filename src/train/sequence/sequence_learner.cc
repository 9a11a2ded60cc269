#include "train/sequence/sequence_learner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace tacit::train {
namespace {

SequenceTrainingOptions WithPrior(SequenceTrainingOptions training, const SequenceStart* start) {
  if (start != nullptr) training.prior = start->prior();
  return training;
}

}  // namespace

Status CheckOptions(const SequenceLearnerOptions& options) {
  TACIT_RETURN_IF_ERROR(CheckOptions(options.training));
  const SequenceStartOptions& start = options.start;
  const model::SequenceOptions& model = options.training.model;
  TACIT_RETURN_IF_ERROR(CheckOptions(start, model.catalogue));
  if (start.kind == SequenceStartOptions::Kind::kNone) return {};
  const bool is_prior =
      start.kind != SequenceStartOptions::Kind::kPopularity || start.popularity_is_prior;
  if (is_prior && (model.negatives > 0 || model.label_smoothing > 0))
    return Fail(ErrorCode::kInvalidArgument,
                "sequence start: released logits are for a softmax over the whole catalogue: set "
                "negatives and label_smoothing to 0");
  if (options.training.privacy.on == (start.noise_multiplier > 0)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              "sequence start: the release of a period and its steps are both noised, or neither");
}

SequenceStepSizes PlannedStep(const SequenceLearnerOptions& options) {
  using Kind = SequenceStartOptions::Kind;
  return {.units = options.planned_users,
          .prior_has_each = options.start.kind == Kind::kPopularity,
          .prior_has_table = options.start.kind == Kind::kCounts};
}

SequenceLearner::SequenceLearner(SequenceLearnerOptions options, RecentHistories::Reader reader,
                                 std::unique_ptr<noise::NoiseSource> noise, ops::Backend& backend,
                                 const store::DenseState* resume, uint64_t steps_taken)
    : Learner(options.id, options.index),
      options_(std::move(options)),
      recent_(options_.histories, std::move(reader)),
      start_(
          MakeSequenceStart(options_.start, options_.training.model.catalogue, backend.workers())),
      stepper_(WithPrior(options_.training, start_.get()), options_.draw, backend,
               std::move(noise)),
      exam_(options_.training.model.catalogue, options_.asked_most) {
  TACIT_CHECK(start_ == nullptr || stepper_.noise() != nullptr, "a start draws noise");
  if (resume != nullptr) stepper_.Resume(resume->parameters, resume->optimizer, steps_taken);
}

Status SequenceLearner::UseGpu(Gpu& gpu) {
  TACIT_CHECK(stepper_.noise() != nullptr, "a GPU takes private steps");
  SequenceEngineOptions options = stepper_.EngineOptions();
  options.prior_has_no_table = HasNoTable(options_.start);
  options.planned = PlannedStep(options_);
  TACIT_ASSIGN(auto engine, gpu.MakeSequenceEngine(options, *stepper_.noise()));
  stepper_.UseEngine(std::move(engine));
  return {};
}

Status SequenceLearner::Preview(const stream::StepBatch& batch, StepReport* report) {
  *report = {.examples = batch.examples.size()};
  TACIT_ASSIGN(const bool held_out, recent_.Preview(batch, &step_));
  if (held_out) return exam_.AskHeldOut(step_, Answers(), report);
  if (batch.kind == stream::StepBatch::Kind::kPreviewAgain) return {};
  TACIT_RETURN_IF_ERROR(recent_.Gather(batch, &step_));
  return exam_.Ask(step_, Answers(), report);
}

// The model as it was before the step.
NextItemExam::Model SequenceLearner::Answers() {
  return [this](NextItemExam::Histories histories, const NextItemExam::Take& take) -> Status {
    TACIT_RETURN_IF_ERROR(stepper_.Settle());
    return stepper_.model().Score(
        stepper_.Weights(), stepper_.parameter_noise(), histories,
        [&take](size_t i, std::span<float> scores, size_t) { take(i, scores); });
  };
}

std::optional<privacy::Charge> SequenceLearner::opening_charge() const {
  if (start_ == nullptr) return std::nullopt;
  return OpeningCharge(options_.start);
}

// Crops depend on public coins and the user's own history alone.
model::HistoryUnits SequenceLearner::StepUnits() {
  everybody_.resize(step_.units());
  std::iota(everybody_.begin(), everybody_.end(), uint64_t{0});
  return {stepper_.model().layout().options(), step_.histories, everybody_, step_.before};
}

// Makes the release of the held period's opening, on all its users.
Status SequenceLearner::Open() {
  StepHistories period;
  TACIT_RETURN_IF_ERROR(recent_.GatherPeriod(&period));
  // With privacy the divisor stands for the number of users, which is private.
  const double users = options_.training.privacy.on
                           ? options_.training.expected_batch / options_.draw.rate
                           : static_cast<double>(period.units());
  TACIT_RETURN_IF_ERROR(start_->Release(period, users, *stepper_.noise()));
  released_ = true;
  CorrectAttention();
  return {};
}

void SequenceLearner::CorrectAttention() {
  if (const auto shares = start_->ItemShares(); !shares.empty()) stepper_.SetItemShare(shares);
}

Result<bool> SequenceLearner::TakeStep(const stream::StepBatch& step,
                                       const std::atomic<bool>& abandon, StepReport* report) {
  PhaseTimer timer;
  timer.Enter(StepPhase::kGather);
  TACIT_RETURN_IF_ERROR(recent_.Gather(step, &step_));
  timer.Stop();
  *report = {.examples = step.examples.size()};
  if (!step.whole_period() && !abandon) TACIT_RETURN_IF_ERROR(exam_.Ask(step_, Answers(), report));
  if (abandon) return false;
  const bool opens = start_ != nullptr && step.kind == stream::StepBatch::Kind::kPeriodFirst;
  if (opens) TACIT_RETURN_IF_ERROR(Open());
  timer.Enter(StepPhase::kGradients);
  TACIT_RETURN_IF_ERROR(stepper_.GradientOf(StepUnits()));
  timer.Enter(StepPhase::kRelease);
  // Nothing outside has seen the sum. From here on it is released, and charged. An opening was
  // released before, and its step cannot be abandoned any more.
  if (abandon && !opens) return false;
  TACIT_ASSIGN(const SequenceStepReport done, stepper_.Release());
  recent_.Taken(step);
  report->losses = done.units;
  report->loss_sum = done.loss * static_cast<double>(done.units);
  report->units_clipped = done.units_clipped;
  report->phases = timer.Take();
  return true;
}

void SequenceLearner::Publish(model::TrainedScorer* scorer) {
  scorer->Publish(stepper_.model().layout(), stepper_.Weights(), stepper_.parameter_noise(),
                  stepper_.options().prior);
}

// Scores for a history of just the catalogue's first item.
Result<bool> SequenceLearner::GivesNumbers() {
  constexpr uint32_t kFirst = 0;
  const std::span<const uint32_t> history(&kFirst, 1);
  bool numbers = true;
  TACIT_RETURN_IF_ERROR(stepper_.Settle());
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

std::shared_ptr<const std::string> SequenceLearner::TakeReleased() {
  if (!std::exchange(released_, false)) return nullptr;
  return std::make_shared<const std::string>(start_->Encode());
}

Status SequenceLearner::LoadReleased(std::string_view bytes) {
  if (start_ == nullptr)
    return Fail(ErrorCode::kCorruption, "learner '" + id() +
                                            "': a sequence model has no mechanism state, but one "
                                            "is stored");
  if (Status status = start_->Load(bytes); !status)
    return Fail(
        std::move(status.error()).Context("learner '" + id() + "': the stored state of its start"));
  CorrectAttention();
  return {};
}

privacy::Charge ChargeOf(const SequenceLearnerOptions& options) {
  return StepCharge(options.training.privacy, options.draw);
}

namespace {

// A new item between others must not begin as the item did whose place it has now.
void DrawNewItems(const model::SequenceLayout& layout, uint64_t seed,
                  std::span<const uint32_t> places, std::span<float> parameters) {
  const uint32_t items = layout.options().catalogue;
  std::vector<uint8_t> known(items);
  for (const uint32_t place : places) known[place] = 1;
  for (const model::ParameterTable* table : {&layout.items(), &layout.output()})
    for (uint32_t item = 0; item < items; ++item)
      if (!known[item])
        InitialRow(seed,
                   uint64_t{1} << 62 | uint64_t{table->group} << 60 | uint64_t{items} << 30 | item,
                   model::SequenceLayout::kInitialItemScale,
                   parameters.subspan(table->offset + item * table->cols, table->cols));
}

}  // namespace

// Tables of items have as many numbers for each; biases are a table of one.
Result<store::DenseState> GrownDense(const SequenceTrainingOptions& options, uint32_t items_before,
                                     const store::DenseState& was,
                                     std::span<const uint32_t> places) {
  model::SequenceOptions of_before = options.model;
  of_before.catalogue = items_before;
  const model::SequenceLayout before(of_before), after(options.model);
  const Optimizer optimizer(options.optimizer);
  if (was.parameters.size() != before.size() ||
      was.optimizer.size() != optimizer.DenseStateFloats(before.size()))
    return Fail(ErrorCode::kRefused, "its layers are other ones");
  TACIT_CHECK(places.empty() || places.size() == items_before, "a place for each item");
  store::DenseState grown;
  grown.parameters = after.Initial(options.seed);
  if (!places.empty()) DrawNewItems(after, options.seed, places, grown.parameters);
  options.described.MixIn(after, options.seed, grown.parameters);
  std::vector<size_t> origin(after.size(), Optimizer::kNew);
  for (size_t g = 0; g < after.groups().size(); ++g) {
    const model::ParameterGroup &to = after.groups()[g], &from = before.groups()[g];
    TACIT_CHECK(to.name == from.name && to.size >= from.size);
    const bool of_items = to.name == "items" || to.name == "output" || to.name == "item_bias";
    const size_t width = of_items ? to.size / options.model.catalogue : 0;
    for (size_t i = 0; i < from.size; ++i) {
      const size_t at = of_items && !places.empty() ? places[i / width] * width + i % width : i;
      origin[to.offset + at] = from.offset + i;
      grown.parameters[to.offset + at] = was.parameters[from.offset + i];
    }
  }
  grown.optimizer =
      optimizer.MovedDenseState(was.optimizer, before.size(), origin, grown.parameters);
  return grown;
}

store::RowLayout MakeRowLayout(const SequenceTrainingOptions& options) {
  store::RowLayout layout;
  layout.seed = options.seed;
  layout.average = MovingAverage(options.optimizer.average_decay);
  return layout;
}

}  // namespace tacit::train
