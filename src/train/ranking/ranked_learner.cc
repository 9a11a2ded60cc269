#include "train/ranking/ranked_learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "model/ranking/released_ranker.h"
#include "privacy/bill.h"
#include "privacy/mu.h"

namespace tacit::train {
namespace {

using model::ranking::kRankerParameters;

tl::unexpected<Error> RefuseRanked(std::string why) {
  return Fail(ErrorCode::kInvalidArgument, std::move(why));
}

double MuOfPeriod(const RankedLearnerOptions& options) {
  return options.noise_multiplier > 0 ? 1 / options.noise_multiplier
                                      : std::numeric_limits<double>::infinity();
}

// The noise of the counts, which open a period, and of each of the ranker's steps.
privacy::PeriodNoise NoiseOf(const RankedLearnerOptions& options) {
  return privacy::DividePeriod(MuOfPeriod(options), 1 - options.ranker.share, options.ranker.steps);
}

// The memory that the questions to this many units take.
double QuestionBytes(const RankedLearnerOptions& options) {
  const RankerOptions& r = options.ranker;
  return options.expected_units * static_cast<double>(r.last_items) *
         static_cast<double>(*r.candidates * model::ranking::kFeatures);
}

}  // namespace

RankerOptions WithCandidates(const RankerOptions& options, bool described) {
  RankerOptions filled = options;
  if (!filled.candidates)
    filled.candidates = described ? tuned::kRankerCandidates : tuned::kRankerCandidatesUndescribed;
  if (!filled.orders)
    filled.orders = described ? tuned::kRankerOrders : tuned::kRankerCandidatesUndescribed;
  return filled;
}

// Tables and ranker say the same thing twice where the signal is of middle size, and the ranker
// needs cells. MovieLens-1M at epsilon 1, the last items: 8.45 with .08 of mu for a table, 8.46
// with this, 8.01 with the rule of counts alone. The generated log of 1,000 items, those before the
// last: 1.7 and 2.6 at .1, 7.7 and 10.3 at .3.
model::transitions::Options CountsBesideRanker(model::transitions::Options counts) {
  counts.tables_signal = tuned::kRankerTablesSignal;
  return counts;
}

Status CheckOptions(const RankedLearnerOptions& options) {
  constexpr double kShareLeast = 1e-6, kBytesMost = 0x1p34;
  const RankerOptions& r = options.ranker;
  if (options.catalogue == nullptr) return RefuseRanked("a ranker needs a catalogue");
  TACIT_CHECK(r.candidates && r.orders, "WithCandidates comes before a ranker is made");
  if (!(r.share >= kShareLeast && r.share <= 1 - kShareLeast))
    return RefuseRanked(
        fmt::format("ranker_share {}: counts and ranker both need some of mu", r.share));
  if (*r.orders == 0)
    return RefuseRanked("ranker_candidates_asked 0: there is nothing to put in order");
  if (const double bytes = QuestionBytes(options); !(bytes <= kBytesMost))
    return RefuseRanked(
        fmt::format("the questions to {} users take {:.0f} GiB: ranker_last_items {} or "
                    "ranker_candidates {} are too many",
                    options.expected_units, bytes / 0x1p30, r.last_items, *r.candidates));
  TACIT_RETURN_IF_ERROR(privacy::CheckMu(MuOfPeriod(options)));
  return CheckOptions(RankerTraining{.steps = r.steps,
                                     .candidates = *r.candidates,
                                     .last_items = r.last_items,
                                     .focus = r.focus,
                                     .expected_units = options.expected_units,
                                     .learning_rate = r.learning_rate});
}

privacy::Charge RankedPeriodCharge(const RankedLearnerOptions& options) {
  if (options.noise_multiplier == 0) return {};
  const privacy::PeriodNoise noise = NoiseOf(options);
  return {.mechanism = privacy::MechanismKind::kCounts,
          .noise_multiplier = options.noise_multiplier,
          .sigma_selection = noise.opening,
          .sigma_gradient = noise.step / std::sqrt(static_cast<double>(options.ranker.steps)),
          .clip_selection = 1,
          .clip_gradient = 1};
}

RankedLearner::RankedLearner(RankedLearnerOptions options, RecentHistories::Reader reader,
                             std::unique_ptr<noise::NoiseSource> noise, WorkerPool& workers)
    : Learner(options.id, options.index),
      options_(std::move(options)),
      charge_(RankedPeriodCharge(options_)),
      recent_(options_.histories, std::move(reader)),
      noise_(std::move(noise)),
      workers_(workers),
      model_(*options_.catalogue, options_.model, workers),
      parameters_(model::ranking::InitialRanker(options_.seed)),
      exam_(options_.catalogue->items(), options_.asked_most) {
  TACIT_CHECK(CheckOptions(options_).has_value(), "options are checked before a learner is made");
}

Status RankedLearner::Preview(const stream::StepBatch& batch, StepReport* report) {
  *report = {.examples = batch.examples.size()};
  TACIT_ASSIGN(const bool held_out, recent_.Preview(batch, &step_));
  return held_out ? exam_.AskHeldOut(step_, Answers(), report) : Status{};
}

// The model released before the step; null if nothing was.
NextItemExam::Model RankedLearner::Answers() {
  if (!source_) return nullptr;
  return [this](NextItemExam::Histories histories, const NextItemExam::Take& take) {
    return ScoreByWorkers(
        workers_, options_.catalogue->items(), histories,
        [this](auto history, auto scores) { Score(history, scores); }, take);
  };
}

// Adam's steps have one length, for any gradient. Where a step's noise is longer than the
// gradient of all users together could be, the rate is lowered by that ratio: with few users, the
// order of the counts remains. A user whose next item is not among the candidates has no gradient;
// where items are not described, and the candidates few, those are nearly all.
RankerTraining RankedLearner::PlanOf(double sigma) const {
  constexpr double kAnsweredUndescribed = 0.05;
  const RankerOptions& r = options_.ranker;
  const double noise = sigma * std::sqrt(static_cast<double>(kRankerParameters));
  const double longest =
      options_.expected_units * (options_.catalogue->described() ? 1 : kAnsweredUndescribed);
  const double sure = noise > longest ? longest / noise : 1;
  return {.seed = options_.seed,
          .steps = r.steps,
          .sigma = sigma,
          .candidates = *r.candidates,
          .last_items = r.last_items,
          .focus = r.focus,
          .expected_units = options_.expected_units,
          .learning_rate = r.learning_rate * sure};
}

void RankedLearner::MakeSource() {
  source_.emplace(model_.estimate(), *options_.catalogue, model_.options(), workers_);
}

// Releases the counts of the period at hand, then what the ranker learns on them.
Status RankedLearner::Learn() {
  const privacy::PeriodNoise noise = NoiseOf(options_);
  const double mu = charge_.Bounded() ? 1 / noise.opening : std::numeric_limits<double>::infinity();
  TACIT_ASSIGN(const TransitionsCharge counts,
               ReleaseTransitionsPeriod({.histories = step_.histories, .known = step_.before}, mu,
                                        *noise_, workers_, &model_, options_.progress));
  MakeSource();
  RankerTrainer trainer(PlanOf(noise.step), step_.histories, *source_, *noise_, workers_,
                        step_.before);
  trainer.SetInitial(parameters_);
  while (!trainer.done()) {
    trainer.Step();
    parameters_ = trainer.Average();
    if (options_.after_step) options_.after_step(trainer.steps_taken());
  }
  const double steps = static_cast<double>(trainer.steps_taken());
  TACIT_CHECK(!charge_.Bounded() || counts.MuSquared() + steps * trainer.charge().MuSquared() <=
                                        charge_.MuSquared() * (1 + 1e-9),
              "a period released more than it is charged for");
  return {};
}

Result<bool> RankedLearner::TakeStep(const stream::StepBatch& step,
                                     const std::atomic<bool>& abandon, StepReport* report) {
  TACIT_RETURN_IF_ERROR(recent_.Gather(step, &step_));
  *report = {.examples = step.examples.size()};
  if (!abandon) TACIT_RETURN_IF_ERROR(exam_.Ask(step_, Answers(), report));
  // From here on the period is released, and charged.
  if (abandon) return false;
  TACIT_RETURN_IF_ERROR(Learn());
  recent_.Taken(step);
  changed_ = true;
  return true;
}

void RankedLearner::Score(std::span<const uint32_t> history, std::span<float> scores) const {
  TACIT_CHECK(source_.has_value(), "a period is released before anything is scored");
  model::ranking::ScoreRanked(*source_, parameters_, *options_.ranker.orders, history, scores);
}

bool RankedLearner::AreNumbers() const {
  return std::ranges::all_of(parameters_, [](float x) { return std::isfinite(x); });
}

Result<bool> RankedLearner::GivesNumbers() { return AreNumbers(); }

std::shared_ptr<const std::string> RankedLearner::TakeReleased() {
  if (!std::exchange(changed_, false) || !AreNumbers()) return nullptr;
  return std::make_shared<const std::string>(model::ranking::EncodeRanker(model_, parameters_));
}

Status RankedLearner::LoadReleased(std::string_view bytes) {
  auto released =
      model::ranking::DecodeRanker(bytes, *options_.catalogue, options_.model, workers_);
  if (!released)
    return Fail(std::move(released.error())
                    .Context("learner '" + id() + "': the stored state of its mechanism"));
  model_ = std::move(released->counts);
  parameters_ = std::move(released->parameters);
  if (model_.periods() > 0) MakeSource();
  return {};
}

}  // namespace tacit::train
