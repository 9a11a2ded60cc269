#include "app/noise_plan.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "privacy/calibrate.h"
#include "privacy/gaussian.h"
#include "privacy/pld.h"

namespace tacit::app {

Exposure ExposureOf(const config::Learner& learner, const config::Source& source) {
  const config::Participation& p = learner.participation;
  if (p.mode == config::Participation::Mode::kOnce)
    return {.sampled = false,
            .steps = p.max_participations,
            .rate = 1,
            .text = fmt::format("{} participation(s)", p.max_participations)};
  const uint64_t steps = p.steps_per_period * source.passes;
  return {.sampled = true,
          .steps = steps,
          .rate = p.sampling_rate,
          .text = fmt::format("{} steps sampled at {}", steps, p.sampling_rate)};
}

Result<double> CalibratedNoise(const Exposure& exposure, const config::Privacy& privacy) {
  if (!exposure.sampled)
    return privacy::CalibrateGaussian(Epsilon(privacy.epsilon), Delta(privacy.delta),
                                      exposure.steps)
               .value *
           (1 + 1e-9);
  return privacy::CalibratePld({.epsilon = privacy.epsilon * (1 - 0.005),
                                .delta = privacy.delta,
                                .sampling_rate = exposure.rate,
                                .steps = exposure.steps},
                               privacy::Adjacency::kAddRemove);
}

Result<double> EpsilonAt(double noise, const Exposure& exposure, double delta) {
  if (!(noise > 0)) return std::numeric_limits<double>::infinity();
  if (!exposure.sampled)
    return privacy::GaussianEpsilon(std::sqrt(static_cast<double>(exposure.steps)) / noise,
                                    Delta(delta))
        .value;
  return privacy::PldUpperEpsilon(privacy::Event::PoissonGaussian(noise, exposure.rate),
                                  exposure.steps, privacy::Adjacency::kAddRemove, Delta(delta));
}

Result<double> StepNoise(const config::Learner& learner, const config::Source& source) {
  const Exposure exposure = ExposureOf(learner, source);
  auto needed = CalibratedNoise(exposure, learner.privacy);
  if (!needed) return Fail(std::move(needed.error()).Context("learner '" + learner.id + "'"));
  if (!learner.mechanism.noise_multiplier || *learner.mechanism.noise_multiplier >= *needed)
    return learner.mechanism.noise_multiplier.value_or(*needed);
  const double asked = *learner.mechanism.noise_multiplier;
  TACIT_ASSIGN(const double epsilon, EpsilonAt(asked, exposure, learner.privacy.delta));
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("learner '{}': noise_multiplier {} gives epsilon {:.4g} at delta {} over "
                          "{}, more than its privacy.epsilon of {}; at least {:.6g} is needed "
                          "(leave the key out to have it calibrated)",
                          learner.id, asked, epsilon, learner.privacy.delta, exposure.text,
                          learner.privacy.epsilon, *needed));
}

}  // namespace tacit::app
