#include "wiring/plans/mechanism_factory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "mechanism/choice/choice.h"
#include "mechanism/clipper.h"
#include "mechanism/forward/forward.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"
#include "mechanism/sigma_split.h"
#include "mechanism/vocabulary.h"
#include "model/carriers/carriers.h"
#include "wiring/plans/noise_plan.h"
#include "wiring/plans/vocabulary_file.h"

namespace tacit::wiring {
namespace {

tl::unexpected<Error> Refuse(const config::Learner& learner, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("learner '{}': {}", learner.id, what));
}

Result<std::unique_ptr<mechanism::Vocabulary>> MakeVocabulary(
    const config::Learner& learner, const std::vector<config::Feature>& features,
    const RowSpace& space) {
  const config::Vocabulary& from = learner.mechanism.vocabulary;
  if (space.rows() == 0)
    return Refuse(learner, "mechanism.vocabulary: a model without tables has no rows to choose");
  using Options = mechanism::VocabularyOptions;
  Options options;
  if (from.source == config::Vocabulary::Source::kFile) {
    options.source = Options::Source::kPublic;
    auto rows = ReadVocabularyFile(from.file, features, from.keep);
    if (!rows) return Refuse(learner, "mechanism.vocabulary.file: " + rows.error().message);
    options.rows = std::move(*rows);
    return mechanism::MakeVocabulary(space, std::move(options));
  }
  if (space.rows() > mechanism::kVocabularySpaceMax)
    return Refuse(learner, fmt::format("mechanism.vocabulary.source: a histogram of {} rows is "
                                       "more than the {} that are held; use source file",
                                       space.rows(), mechanism::kVocabularySpaceMax));
  options.source = from.source == config::Vocabulary::Source::kRunning
                       ? Options::Source::kRunning
                       : Options::Source::kFirstPeriod;
  options.keep = from.keep;
  options.noise_multiplier = from.noise_multiplier;
  options.clip = from.clip;
  return from.query == config::Vocabulary::Query::kGumbel
             ? mechanism::MakeTopRows(space, options)
             : mechanism::MakeVocabulary(space, std::move(options));
}

// The cost to a unit besides the Gaussian noise of its steps. A record is in one period of each
// pass.
Beside BesideStepsOf(const PlanParts& parts, const std::optional<privacy::Charge>& opening,
                     const privacy::Charge& selection) {
  TACIT_CHECK(!opening || privacy::IsOfPeriod(*opening),
              "a period's release is priced by the period");
  return BesideSteps(opening, Openings(parts.learner().mechanism, parts.exposure.periods),
                     selection.zcdp_rho, parts.exposure.steps);
}

// The failure for a key whose price leaves nothing for the steps; the message gives that price.
tl::unexpected<Error> TooDear(const PlanParts& parts, const MechanismMaker& kind, double spent) {
  const config::Learner& learner = parts.learner();
  TACIT_CHECK(kind.too_dear != nullptr, "a mechanism that releases something beside its steps");
  const std::string cost = fmt::format(
      "epsilon {:.4g} at delta {} alone, which leaves nothing of privacy.epsilon {} for the "
      "gradient",
      spent, learner.privacy.delta, learner.privacy.epsilon);
  return Refuse(learner, kind.too_dear(learner.mechanism, parts.exposure.text, cost));
}

// The noise of a step, given the other releases.
Result<double> NoiseBeside(const PlanParts& parts, const MechanismMaker& kind,
                           const Beside& beside) {
  const config::Learner& learner = parts.learner();
  if (beside.empty()) return StepNoise(learner, parts.exposure, beside, parts.laws);
  const double epsilon = learner.privacy.epsilon, delta = learner.privacy.delta;
  // Uses the closed form if the price is so high that no accountant's grid has room.
  const double rho = ZcdpOfBeside(beside);
  if (rho > epsilon) return TooDear(parts, kind, rho + 2 * std::sqrt(-rho * std::log(delta)));
  auto noise = StepNoise(learner, parts.exposure, beside, parts.laws);
  if (noise) return noise;
  TACIT_ASSIGN(const double spent, EpsilonOfBeside(beside, delta));
  if (spent > kBesideAtMost * epsilon) return TooDear(parts, kind, spent);
  return noise;
}

// The noise multiplier left for a step's other queries after the clip's count has taken its part.
Result<double> NoiseBesideQuantile(const config::Learner& learner, double step_noise) {
  if (learner.mechanism.clipping != config::Mechanism::Clipping::kQuantile) return step_noise;
  const double query = learner.mechanism.quantile.noise_multiplier;
  if (query <= step_noise)
    return Refuse(learner, fmt::format("mechanism.quantile.noise_multiplier: {} leaves nothing for "
                                       "the gradient: a step may spend no more than a noise "
                                       "multiplier of {:.6g} does in all, so it must be larger",
                                       query, step_noise));
  return 1 / std::sqrt(1 / (step_noise * step_noise) - 1 / (query * query));
}

// The factor by which an adaptive clip may move from its initial value, up or down.
constexpr double kClipRange = 100;

std::unique_ptr<mechanism::Clipper> MakeClipper(const config::Learner& learner,
                                                double sigma_gradient) {
  const config::Mechanism& m = learner.mechanism;
  switch (m.clipping) {
    case config::Mechanism::Clipping::kFlat:
      break;
    case config::Mechanism::Clipping::kAutomatic:
      return mechanism::MakeAutomaticClipper(m.gradient_clip, sigma_gradient);
    case config::Mechanism::Clipping::kPerLayer:
      return mechanism::MakePerLayerClipper(m.gradient_clip, {}, sigma_gradient);
    case config::Mechanism::Clipping::kQuantile:
      return mechanism::MakeQuantileClipper(
          {.initial_clip = m.gradient_clip,
           .quantile = m.quantile.target,
           .learning_rate = m.quantile.rate,
           .sigma_query = m.quantile.noise_multiplier,
           .expected_batch = static_cast<double>(learner.participation.batch),
           // Without these bounds, the clip would run away where batches are smaller than
           // configured.
           .clip_min = m.gradient_clip / kClipRange,
           .clip_max = m.gradient_clip * kClipRange},
          sigma_gradient);
  }
  return mechanism::MakeFlatClipper(m.gradient_clip, sigma_gradient);
}

// The selector's charge besides Gaussian queries. It does not depend on sigma, which is not known
// yet.
privacy::Charge SelectionCost(const MechanismMaker& kind, privacy::Price of_choice,
                              const config::Mechanism& m, const RowSpace& space) {
  privacy::Charge cost;
  if (of_choice == privacy::Price::kZcdp)
    kind.select({.settings = m, .space = space, .sigma = 0, .vocabulary = nullptr})->AddTo(&cost);
  return cost;
}

}  // namespace

Result<std::unique_ptr<mechanism::Mechanism>> MakeMechanism(const PlanParts& parts,
                                                            const RowSpace& space,
                                                            FoundNoise* found) {
  FoundNoise anew;
  if (found == nullptr) found = &anew;
  const config::Learner& learner = parts.learner();
  const config::Mechanism& m = learner.mechanism;
  const MechanismMaker& kind = RowOf(parts.mechanisms, m.kind);
  const auto batch = static_cast<double>(learner.participation.batch);
  if (!m.traits().adds_noise) return mechanism::MakeNonPrivate(batch);
  if (m.traits().noises_representations) {
    if (!found->of_step) {
      TACIT_ASSIGN(found->of_step, StepNoise(learner, parts.exposure, {}, parts.laws));
    }
    return mechanism::MakeForward({.clip = m.representation_clip,
                                   .sigma = *found->of_step,
                                   .expected_batch = batch,
                                   .sampling_rate = parts.exposure.draw.rate});
  }
  TACIT_CHECK(kind.select != nullptr, "this mechanism guards no click model");
  if (const std::string why = kind.misfit ? kind.misfit(m, space) : ""; !why.empty())
    return Refuse(learner, why);
  std::unique_ptr<mechanism::Vocabulary> vocabulary;
  if (m.has_vocabulary()) {
    TACIT_ASSIGN(vocabulary, MakeVocabulary(learner, parts.config.features, space));
  }
  // Without a query of its own the choice of rows costs nothing.
  const privacy::Price of_choice =
      kind.asks ? privacy::PriceOf(*kind.asks, learner.participation.mode, learner.privacy.unit)
                : privacy::Price::kRefused;
  const Beside beside =
      BesideStepsOf(parts, vocabulary ? vocabulary->opening_charge() : std::nullopt,
                    SelectionCost(kind, of_choice, m, space));
  if (!found->of_step) {
    TACIT_ASSIGN(found->of_step, NoiseBeside(parts, kind, beside));
  }
  TACIT_ASSIGN(const double noise, NoiseBesideQuantile(learner, *found->of_step));
  const privacy::Draw& draw = parts.exposure.draw;
  const bool shares_noise = kind.asks && of_choice != privacy::Price::kZcdp;
  const mechanism::SigmaSplit split =
      shares_noise ? mechanism::SplitSigma(noise, m.sigma_ratio)
                   : mechanism::SigmaSplit{.selection = 0, .gradient = noise};
  auto selector = kind.select({.settings = m,
                               .space = space,
                               .sigma = split.selection,
                               .vocabulary = std::move(vocabulary)});
  return mechanism::MakePrivateStep(space, std::move(selector),
                                    MakeClipper(learner, split.gradient),
                                    {.sigma_gradient = split.gradient,
                                     .expected_batch = batch,
                                     .sampling_rate = draw.rate,
                                     .block_steps = draw.block_steps});
}

stream::UserOptions UsersOf(const config::Participation& p, const privacy::Bounds& bounds,
                            const SipHash::Key& key, stream::AllowanceBook& allowances) {
  stream::UserOptions users{.key = key,
                            .allowances = &allowances,
                            .allowance = bounds.allowance,
                            .records_max = p.user_records_max,
                            .per_period = bounds.per_period};
  if (users.per_period > 0) {
    users.period_offsets = p.period;
    users.period_cuts = std::max(1u, p.period_files);
  }
  return users;
}

train::IntakeOptions::Learner::MakeParticipation MakeParticipationOf(
    const config::Participation& participation, const ParticipationSetting& setting) {
  return [p = participation,
          setting](stream::Position start) -> std::unique_ptr<stream::Participation> {
    const bool full_at_once = !setting.has_files;
    const uint32_t files = std::max(1u, p.period_files);
    switch (p.mode) {
      case config::Participation::Mode::kOnce:
        break;
      case config::Participation::Mode::kPoisson:
        return stream::MakePoissonParticipation({.offsets_per_period = p.period,
                                                 .files_per_period = files,
                                                 .steps_per_period = p.steps_per_period,
                                                 .sampling_rate = p.sampling_rate,
                                                 .start = std::move(start),
                                                 .full_at_once = full_at_once,
                                                 .users = setting.users},
                                                noise::MakeNoiseSource());
      case config::Participation::Mode::kAllocate:
        return stream::MakeAllocationParticipation({.offsets_per_period = p.period,
                                                    .files_per_period = files,
                                                    .block_steps = p.steps_per_period,
                                                    .blocks = p.blocks,
                                                    .start = std::move(start),
                                                    .full_at_once = full_at_once,
                                                    .users = setting.users,
                                                    .begins_anew = setting.begins_anew},
                                                   noise::MakeNoiseSource());
    }
    return stream::MakeOnceParticipation({.offsets_per_step = p.batch,
                                          .start = std::move(start),
                                          .opening_offsets = setting.opening_offsets,
                                          .growing_from = setting.growing_from,
                                          .files_per_step = p.step_files,
                                          .full_at_once = full_at_once,
                                          .offsets_per_part = setting.offsets_per_part,
                                          .users = setting.users});
  };
}

model::SumMapOptions MakeSumMap(const config::Mechanism& mechanism) {
  using Source = model::CarrierOptions::Source;
  const config::Carriers& carriers = mechanism.carriers;
  if (!carriers.on() || !mechanism.traits().sums_gradients()) return {};
  const bool random = carriers.from == config::Carriers::From::kRandom;
  return model::CarriersOf({.source = random ? Source::kRandom : Source::kHistorical,
                            .rank = carriers.rank,
                            .power_steps = carriers.power_steps,
                            .warm_up_steps = carriers.warm_up_steps});
}

train::OptimizerOptions MakeOptimizer(const config::Optimizer& o,
                                      std::span<const train::OptimizerKind> kinds) {
  using Moments = train::OptimizerOptions::Moments;
  const double row_rate = o.row_learning_rate > 0 ? o.row_learning_rate : o.learning_rate;
  const bool lazy = o.moments == config::Optimizer::Moments::kLazy;
  return {.kind = train::OptimizerNamed(o.traits().name, kinds),
          .learning_rate = static_cast<float>(o.learning_rate),
          .row_learning_rate = static_cast<float>(row_rate),
          .momentum = static_cast<float>(o.momentum),
          .beta1 = static_cast<float>(o.beta1),
          .beta2 = static_cast<float>(o.beta2),
          .epsilon = static_cast<float>(o.epsilon),
          .moments = lazy ? Moments::kLazy : Moments::kOwn,
          .variance_floor = static_cast<float>(o.variance_floor),
          .average_decay = o.ema};
}

}  // namespace tacit::wiring
