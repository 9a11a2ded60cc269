#include "app/mechanism_factory.h"

#include <utility>

#include "app/noise_plan.h"
#include "mechanism/sigma_split.h"

namespace tacit::app {

Result<std::unique_ptr<mechanism::Mechanism>> MakeMechanism(const config::Config& config,
                                                            size_t index, const RowSpace& space) {
  const config::Learner& learner = config.learners[index];
  const auto batch = static_cast<double>(learner.participation.batch);
  if (learner.mechanism.kind == config::Mechanism::Kind::kNone)
    return mechanism::MakeNonPrivate(batch);
  TACIT_ASSIGN(const double noise, StepNoise(learner, config.source));
  const mechanism::SigmaSplit split = mechanism::SplitSigma(noise, learner.mechanism.sigma_ratio);
  return mechanism::MakeAdaFest(space, {.sigma_selection = split.selection,
                                        .sigma_gradient = split.gradient,
                                        .clip_selection = learner.mechanism.selection_clip,
                                        .clip_gradient = learner.mechanism.gradient_clip,
                                        .threshold = learner.mechanism.threshold,
                                        .expected_batch = batch,
                                        .sampling_rate = ExposureOf(learner, config.source).rate});
}

train::FeedOptions::Learner::MakeParticipation MakeParticipationOf(const config::Participation& p) {
  if (p.mode == config::Participation::Mode::kOnce)
    return [batch = p.batch](stream::Position start) {
      return stream::MakeOnceParticipation({.offsets_per_step = batch, .start = std::move(start)});
    };
  return [p](stream::Position start) {
    return stream::MakePoissonParticipation({.offsets_per_period = p.period,
                                             .steps_per_period = p.steps_per_period,
                                             .sampling_rate = p.sampling_rate,
                                             .start = std::move(start)},
                                            noise::MakeNoiseSource());
  };
}

train::OptimizerOptions MakeOptimizer(const config::Optimizer& o) {
  using Kind = train::OptimizerOptions::Kind;
  const double row_rate = o.row_learning_rate > 0 ? o.row_learning_rate : o.learning_rate;
  return {.kind = o.kind == config::Optimizer::Kind::kSgd ? Kind::kSgd : Kind::kAdam,
          .learning_rate = static_cast<float>(o.learning_rate),
          .row_learning_rate = static_cast<float>(row_rate),
          .beta1 = static_cast<float>(o.beta1),
          .beta2 = static_cast<float>(o.beta2),
          .epsilon = static_cast<float>(o.epsilon)};
}

}  // namespace tacit::app
