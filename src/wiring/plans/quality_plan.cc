#include "wiring/plans/quality_plan.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "noise/noise.h"
#include "privacy/gaussian.h"
#include "train/learner/position.h"
#include "wiring/plans/noise_plan.h"

namespace tacit::wiring {

Result<std::vector<QualityPlan>> PlanQualities(const std::vector<config::Learner>& learners) {
  std::vector<QualityPlan> plans;
  for (size_t i = 0; i < learners.size(); ++i) {
    const config::Quality& quality = learners[i].quality;
    if (!quality.given()) continue;
    QualityPlan plan;
    plan.learner = learners[i].id;
    plan.learner_index = LearnerIndex(static_cast<uint16_t>(i));
    plan.index = LearnerIndex(static_cast<uint16_t>(learners.size() + plans.size()));
    plan.steps = quality.steps;
    plan.bins = quality.bins;
    plan.passes_most = learners[i].participation.max_participations;
    const double noise = privacy::CalibrateGaussian(Epsilon(*quality.epsilon),
                                                    Delta(*quality.delta), plan.passes_most)
                             .value;
    if (noise > kNoiseMost)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("learner '{}': quality: epsilon {} at delta {} is noise of {:.3g} on "
                              "each count, and {:.0f} is the most: raise quality.epsilon",
                              plan.learner, *quality.epsilon, *quality.delta, noise, kNoiseMost));
    plan.charge = train::ReleaseAccount::ChargeOf(privacy::MechanismKind::kQuality, noise);
    plan.promise = {.learner = train::QualityAccount(plan.learner),
                    .unit = privacy::Unit::kEvent,
                    .adjacency = privacy::Adjacency::kZeroOut,
                    .participation = privacy::ParticipationMode::kOnce,
                    .epsilon = *quality.epsilon,
                    .delta = *quality.delta,
                    .model_fingerprint = Sha256().Update("tacit.quality.v1").Finish()};
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::string QualityText(const QualityPlan& plan) {
  return fmt::format(
      "shows how well '{}' predicts, every {} with noise of {:.1f} on each of {} counts: epsilon "
      "{} at delta {} per event",
      plan.learner, Counted(plan.steps, "step"), plan.charge.noise_multiplier, 2 * plan.bins,
      plan.promise.epsilon, plan.promise.delta);
}

store::LearnerLayout QualityLayout(const QualityPlan& plan) {
  return {.name = plan.promise.learner, .rows = store::RowLayout(), .promise = plan.promise};
}

Result<std::vector<std::unique_ptr<train::PrivateQuality>>> MakeQualities(
    const std::vector<QualityPlan>& plans, size_t learners, const store::Store& store,
    const std::string& topic) {
  std::vector<std::unique_ptr<train::PrivateQuality>> qualities(plans.empty() ? 0 : learners);
  for (const QualityPlan& plan : plans) {
    const store::LearnerState state = store.State(plan.index);
    TACIT_ASSIGN(auto position, train::DecodePosition(state.position));
    std::optional<ReleasedScores> released;
    if (state.released != nullptr) {
      TACIT_ASSIGN(released, ReleasedScores::Decode(*state.released));
    }
    qualities[plan.learner_index.value] = std::make_unique<train::PrivateQuality>(
        train::QualityOptions{.learner = plan.learner,
                              .index = plan.index,
                              .topic = topic,
                              .steps = plan.steps,
                              .bins = plan.bins,
                              .noise_multiplier = plan.charge.noise_multiplier,
                              .epsilon = plan.promise.epsilon,
                              .delta = plan.promise.delta,
                              .position = std::move(position),
                              .released = std::move(released)},
        noise::MakeNoiseSource());
  }
  return qualities;
}

}  // namespace tacit::wiring
