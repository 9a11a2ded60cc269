#include "app/mechanism_factory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "app/noise_plan.h"
#include "app/vocabulary_file.h"
#include "mechanism/clipper.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"
#include "mechanism/sigma_split.h"
#include "mechanism/vocabulary.h"

namespace tacit::app {
namespace {

using Kind = config::Mechanism::Kind;

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
  options.query = from.query == config::Vocabulary::Query::kGumbel ? Options::Query::kGumbel
                                                                   : Options::Query::kGaussian;
  options.keep = from.keep;
  options.noise_multiplier = from.noise_multiplier;
  options.clip = from.clip;
  return mechanism::MakeVocabulary(space, std::move(options));
}

// What a unit pays beside the Gaussian noise of its steps: the histograms of the periods it is in,
// and selections that no sampling amplifies. A record is in one period of each pass; the first
// period's histogram is released once, and the worst unit is one of it.
Beside BesideSteps(const config::Learner& learner, const config::Source& source,
                   const std::optional<privacy::Charge>& opening,
                   const privacy::Charge& selection) {
  Beside beside;
  if (opening) {
    const bool running =
        learner.mechanism.vocabulary.source == config::Vocabulary::Source::kRunning;
    const uint64_t periods =
        learner.privacy.of_users() ? PeriodsOfUser(learner.participation) : source.passes;
    const uint64_t releases = running ? periods : 1;
    if (opening->MuSquared() > 0)
      beside.push_back({privacy::Event::Gaussian(opening->noise_multiplier), releases});
    if (opening->zcdp_rho > 0)
      beside.push_back({privacy::Event::Zcdp(opening->zcdp_rho), releases});
  }
  if (selection.zcdp_rho > 0)
    beside.push_back({privacy::Event::Zcdp(selection.zcdp_rho), ExposureOf(learner, source).steps});
  return beside;
}

// The key whose price leaves nothing for the steps, and what it comes to.
tl::unexpected<Error> TooDear(const config::Learner& learner, const Exposure& exposure,
                              double spent) {
  const config::Mechanism& m = learner.mechanism;
  const std::string cost = fmt::format(
      "epsilon {:.4g} at delta {} alone, which leaves nothing of privacy.epsilon {} for the "
      "gradient",
      spent, learner.privacy.delta, learner.privacy.epsilon);
  if (m.kind != Kind::kExponential)
    return Refuse(learner,
                  fmt::format("mechanism.vocabulary.noise_multiplier: histograms of {} cost {}; it "
                              "must be larger",
                              m.vocabulary.noise_multiplier, cost));
  const double rho = static_cast<double>(m.rows) * m.row_epsilon * m.row_epsilon / 8;
  return Refuse(learner, fmt::format("mechanism.row_epsilon: choosing rows costs a zCDP of rows * "
                                     "row_epsilon^2 / 8 = {} * {}^2 / 8 = {:.4g} a step, and over "
                                     "{} {}; lower row_epsilon, or mechanism.rows",
                                     m.rows, m.row_epsilon, rho, exposure.text, cost));
}

// The noise of a step, given what is beside the steps.
Result<double> NoiseBeside(const config::Learner& learner, const config::Source& source,
                           const Beside& beside) {
  if (beside.empty()) return StepNoise(learner, source, beside);
  const Exposure exposure = ExposureOf(learner, source);
  const double epsilon = learner.privacy.epsilon, delta = learner.privacy.delta;
  // Far out of reach, where no accountant's grid has room: by the closed form.
  const double rho = ZcdpOfBeside(beside);
  if (rho > epsilon) return TooDear(learner, exposure, rho + 2 * std::sqrt(-rho * std::log(delta)));
  auto noise = StepNoise(learner, source, beside);
  if (noise) return noise;
  TACIT_ASSIGN(const double spent, EpsilonOfBeside(beside, delta));
  if (spent > kBesideAtMost * epsilon) return TooDear(learner, exposure, spent);
  return noise;
}

// What is left of a step's noise for its other queries, once the clip's count has had its own.
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

// How far an adaptive clip may go from where it begins, either way.
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
           // Where batches are smaller than they are said to be, the clip would run away.
           .clip_min = m.gradient_clip / kClipRange,
           .clip_max = m.gradient_clip * kClipRange},
          sigma_gradient);
  }
  return mechanism::MakeFlatClipper(m.gradient_clip, sigma_gradient);
}

std::unique_ptr<mechanism::RowSelector> MakeSelector(
    const config::Mechanism& m, const RowSpace& space, double sigma_selection,
    std::unique_ptr<mechanism::Vocabulary> vocabulary) {
  switch (m.kind) {
    case Kind::kNone:
    case Kind::kDpSgd:
    case Kind::kCounts:
      break;
    case Kind::kFest:
      return mechanism::MakeVocabularyRows(std::move(vocabulary));
    case Kind::kExponential:
      return mechanism::MakeExponentialRows(
          space, {.rows = m.rows, .epsilon = m.row_epsilon, .clip = m.row_clip});
    case Kind::kAdaFest:
    case Kind::kAdaFestPlus:
      return mechanism::MakeThresholdRows(
          space, {.sigma = sigma_selection, .clip = m.selection_clip, .threshold = m.threshold},
          std::move(vocabulary));
  }
  return mechanism::MakeAllRows();
}

// What the selector asks beside Gaussian queries; its sigma, which is not known yet, is not of it.
privacy::Charge SelectionCost(const config::Mechanism& m, const RowSpace& space) {
  privacy::Charge cost;
  if (m.kind == Kind::kExponential) MakeSelector(m, space, 0, nullptr)->AddTo(&cost);
  return cost;
}

}  // namespace

Result<std::unique_ptr<mechanism::Mechanism>> MakeMechanism(const config::Config& config,
                                                            size_t index, const RowSpace& space) {
  const config::Learner& learner = config.learners[index];
  const config::Mechanism& m = learner.mechanism;
  const auto batch = static_cast<double>(learner.participation.batch);
  if (m.kind == Kind::kNone) return mechanism::MakeNonPrivate(batch);
  if (m.kind == Kind::kExponential && m.rows > space.rows())
    return Refuse(learner, fmt::format("mechanism.rows: {} are more than the {} that there are",
                                       m.rows, space.rows()));
  std::unique_ptr<mechanism::Vocabulary> vocabulary;
  if (m.has_vocabulary()) {
    TACIT_ASSIGN(vocabulary, MakeVocabulary(learner, config.features, space));
  }
  const Beside beside =
      BesideSteps(learner, config.source, vocabulary ? vocabulary->opening_charge() : std::nullopt,
                  SelectionCost(m, space));
  TACIT_ASSIGN(const double step_noise, NoiseBeside(learner, config.source, beside));
  TACIT_ASSIGN(const double noise, NoiseBesideQuantile(learner, step_noise));
  const mechanism::SigmaSplit split =
      m.has_threshold() ? mechanism::SplitSigma(noise, m.sigma_ratio)
                        : mechanism::SigmaSplit{.selection = 0, .gradient = noise};
  return mechanism::MakePrivateStep(space,
                                    MakeSelector(m, space, split.selection, std::move(vocabulary)),
                                    MakeClipper(learner, split.gradient),
                                    {.sigma_gradient = split.gradient,
                                     .expected_batch = batch,
                                     .sampling_rate = ExposureOf(learner, config.source).rate});
}

privacy::Bounds BoundsOf(const config::Learner& learner, const config::Source& source) {
  const config::Participation& p = learner.participation;
  privacy::Bounds bounds{.dedupe_window = source.dedupe_window};
  if (!learner.privacy.of_users()) return bounds;
  bounds.allowance = ExposureOf(learner, source).steps;
  if (p.mode == config::Participation::Mode::kOnce)
    bounds.per_period = p.per_period;
  else
    bounds.period_steps = p.steps_per_period;
  return bounds;
}

stream::UserOptions UsersOf(const config::Learner& learner, const config::Source& source,
                            const SipHash::Key& key, stream::AllowanceBook& allowances) {
  const config::Participation& p = learner.participation;
  const privacy::Bounds bounds = BoundsOf(learner, source);
  stream::UserOptions users{.key = key,
                            .allowances = &allowances,
                            .allowance = bounds.allowance,
                            .records_max = p.user_records_max,
                            .per_period = bounds.per_period};
  if (users.per_period > 0) {
    users.period_offsets = p.period;
    users.period_marks = std::max(1u, p.period_files);
  }
  return users;
}

train::FeedOptions::Learner::MakeParticipation MakeParticipationOf(
    const config::Participation& p, bool has_files,
    const std::optional<stream::UserOptions>& users) {
  if (p.mode == config::Participation::Mode::kOnce)
    return [batch = p.batch, has_files, users](stream::Position start) {
      return stream::MakeOnceParticipation({.offsets_per_step = batch,
                                            .start = std::move(start),
                                            .full_at_once = !has_files,
                                            .users = users});
    };
  return [p, has_files, users](stream::Position start) {
    return stream::MakePoissonParticipation({.offsets_per_period = p.period,
                                             .files_per_period = std::max(1u, p.period_files),
                                             .steps_per_period = p.steps_per_period,
                                             .sampling_rate = p.sampling_rate,
                                             .start = std::move(start),
                                             .full_at_once = !has_files,
                                             .users = users},
                                            noise::MakeNoiseSource());
  };
}

train::OptimizerOptions MakeOptimizer(const config::Optimizer& o) {
  using From = config::Optimizer::Kind;
  using To = train::OptimizerOptions::Kind;
  using Moments = train::OptimizerOptions::Moments;
  const double row_rate = o.row_learning_rate > 0 ? o.row_learning_rate : o.learning_rate;
  const bool lazy = o.moments == config::Optimizer::Moments::kLazy;
  return {.kind = o.is_adam()                ? To::kAdam
                  : o.kind == From::kAdagrad ? To::kAdagrad
                                             : To::kSgd,
          .learning_rate = static_cast<float>(o.learning_rate),
          .row_learning_rate = static_cast<float>(row_rate),
          .momentum = static_cast<float>(o.momentum),
          .beta1 = static_cast<float>(o.beta1),
          .beta2 = static_cast<float>(o.beta2),
          .epsilon = static_cast<float>(o.epsilon),
          .moments = lazy ? Moments::kLazy : Moments::kOwn,
          .subtract_noise = o.kind == From::kAdamBc,
          .variance_floor = static_cast<float>(o.variance_floor),
          .average_decay = o.ema};
}

}  // namespace tacit::app
