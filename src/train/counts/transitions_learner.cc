#include "train/counts/transitions_learner.h"

#include <limits>
#include <utility>

#include "base/check.h"

namespace tacit::train {

privacy::Charge TransitionsPeriodCharge(double noise_multiplier) {
  if (noise_multiplier == 0) return {};
  return {.mechanism = privacy::MechanismKind::kCounts,
          .noise_multiplier = noise_multiplier,
          .sigma_selection = noise_multiplier,
          .clip_selection = 1};
}

TransitionsLearner::TransitionsLearner(TransitionsLearnerOptions options,
                                       RecentHistories::Reader reader,
                                       std::unique_ptr<noise::NoiseSource> noise,
                                       WorkerPool& workers)
    : Learner(options.id, options.index),
      options_(std::move(options)),
      charge_(TransitionsPeriodCharge(options_.noise_multiplier)),
      recent_(options_.histories, std::move(reader)),
      noise_(std::move(noise)),
      workers_(workers),
      model_(*options_.catalogue, options_.model, workers),
      exam_(options_.catalogue->items(), options_.asked_most) {}

Status TransitionsLearner::Preview(const stream::StepBatch& batch, StepReport* report) {
  *report = {.examples = batch.examples.size()};
  TACIT_ASSIGN(const bool held_out, recent_.Preview(batch, &step_));
  return held_out ? exam_.AskHeldOut(step_, Answers(), report) : Status{};
}

// The model released before the step; null if nothing was.
NextItemExam::Model TransitionsLearner::Answers() {
  if (model_.periods() == 0) return nullptr;
  return [this](NextItemExam::Histories histories, const NextItemExam::Take& take) {
    if (scorer_ == nullptr)
      scorer_ = std::make_unique<model::transitions::Scorer>(model_.estimate(), model_.options(),
                                                             workers_);
    return ScoreByWorkers(
        workers_, scorer_->items(), histories,
        [this](auto history, auto scores) { scorer_->Score(history, scores); }, take);
  };
}

Result<bool> TransitionsLearner::TakeStep(const stream::StepBatch& step,
                                          const std::atomic<bool>& abandon, StepReport* report) {
  TACIT_RETURN_IF_ERROR(recent_.Gather(step, &step_));
  *report = {.examples = step.examples.size()};
  if (!abandon) TACIT_RETURN_IF_ERROR(exam_.Ask(step_, Answers(), report));
  // From here on the period is released, and charged.
  if (abandon) return false;
  const double mu =
      charge_.Bounded() ? 1 / options_.noise_multiplier : std::numeric_limits<double>::infinity();
  TACIT_ASSIGN(const TransitionsCharge paid,
               ReleaseTransitionsPeriod({.histories = step_.histories, .known = step_.before}, mu,
                                        *noise_, workers_, &model_, options_.progress));
  TACIT_CHECK(!charge_.Bounded() || paid.MuSquared() <= charge_.MuSquared() * (1 + 1e-9),
              "a period released more than it is charged for");
  recent_.Taken(step);
  scorer_.reset();
  changed_ = true;
  return true;
}

std::shared_ptr<const std::string> TransitionsLearner::TakeReleased() {
  if (!std::exchange(changed_, false)) return nullptr;
  return std::make_shared<const std::string>(model_.Encode());
}

Status TransitionsLearner::LoadReleased(std::string_view bytes) {
  auto model = model::transitions::ReleasedModel::Decode(bytes, *options_.catalogue, options_.model,
                                                         workers_);
  if (!model)
    return Fail(std::move(model.error())
                    .Context("learner '" + id() + "': the stored state of its mechanism"));
  model_ = std::move(*model);
  scorer_.reset();
  return {};
}

}  // namespace tacit::train
