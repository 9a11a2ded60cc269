#include "train/sequence/sequence_stepper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "mechanism/grid.h"
#include "noise/declared.h"

namespace tacit::train {
namespace {
Status RefuseSequence(std::string why) {
  return Fail(ErrorCode::kInvalidArgument, "sequence training: " + std::move(why));
}

std::unique_ptr<mechanism::Clipper> MakeClipper(const SequenceGuard& privacy) {
  if (!privacy.on) return nullptr;
  if (privacy.clip == SequenceGuard::Clip::kFlat)
    return mechanism::MakeFlatClipper(privacy.clip_norm, privacy.sigma);
  return mechanism::MakeAutomaticClipper(privacy.clip_norm, privacy.sigma);
}

// A divisor or factor in this range leaves floats finite and has a grid.
constexpr double kScaleLeast = 1e-12, kScaleMost = 1e12;

Status CheckOptimizer(const OptimizerOptions& o) {
  // At higher rates the weights overflow within a few steps.
  constexpr float kRateMost = 1e3f;
  if (!(o.learning_rate >= 0 && o.learning_rate <= kRateMost))
    return RefuseSequence(
        fmt::format("learning_rate {} is not in 0 to {}", o.learning_rate, kRateMost));
  if (!(o.beta1 >= 0 && o.beta1 < 1))
    return RefuseSequence(fmt::format("beta1 {} is not in [0, 1)", o.beta1));
  if (!(o.beta2 >= 0 && o.beta2 < 1))
    return RefuseSequence(fmt::format("beta2 {} is not in [0, 1)", o.beta2));
  if (!(o.average_decay >= 0 && o.average_decay < 1))
    return RefuseSequence(fmt::format("average_decay {} is not in [0, 1)", o.average_decay));
  if (!(o.variance_floor > 0 && std::isfinite(o.variance_floor)))
    return RefuseSequence(fmt::format("variance_floor {} is not above 0", o.variance_floor));
  return {};
}

}  // namespace

Status CheckOptions(const SequenceTrainingOptions& o) {
  TACIT_RETURN_IF_ERROR(model::CheckOptions(o.model));
  if (!(o.expected_batch >= kScaleLeast && o.expected_batch <= kScaleMost))
    return RefuseSequence(fmt::format("expected_batch {} is not in {} to {}", o.expected_batch,
                                      kScaleLeast, kScaleMost));
  if (o.prior != nullptr && (o.model.negatives > 0 || o.model.label_smoothing > 0))
    return RefuseSequence(
        "a prior is for a softmax over the whole catalogue, its labels not smoothed");
  if (o.schedule.steps == 0) return RefuseSequence("steps: there is no step");
  if (!(o.schedule.warm_up >= 0 && o.schedule.warm_up <= 1))
    return RefuseSequence(fmt::format("warm_up {} is no share of the steps", o.schedule.warm_up));
  TACIT_RETURN_IF_ERROR(CheckOptimizer(o.optimizer));
  const SequenceGuard& p = o.privacy;
  if (p.on && !(p.sigma > 0 && std::isfinite(p.sigma)))
    return RefuseSequence(fmt::format("sigma {}: private training needs noise", p.sigma));
  if (p.on && !(p.clip_norm >= kScaleLeast && p.clip_norm <= kScaleMost))
    return RefuseSequence(
        fmt::format("clip_norm {} is not in {} to {}", p.clip_norm, kScaleLeast, kScaleMost));
  if (!o.sum_map.refusal.empty()) return RefuseSequence(std::string(o.sum_map.refusal));
  if (o.sum_map && o.optimizer.kind->subtracts_noise)
    return RefuseSequence(
        fmt::format("{} takes the noise's share out of the second moment, and what low-rank "
                    "factors make of the "
                    "noise is not the same for every number",
                    o.optimizer.kind->name));
  if (!p.on && o.optimizer.kind->subtracts_noise)
    return RefuseSequence(fmt::format("{} subtracts noise: there is none where privacy is off",
                                      o.optimizer.kind->name));
  if (!p.item_share.empty() && p.item_share.size() != o.model.catalogue)
    return RefuseSequence(fmt::format("item_share has {} numbers for a catalogue of {}",
                                      p.item_share.size(), o.model.catalogue));
  if (!(p.item_share_min > 0 && p.item_share_min <= 1))
    return RefuseSequence(fmt::format("item_share_min {} is not in (0, 1]", p.item_share_min));
  return {};
}

std::vector<float> InitialParameters(const SequenceTrainingOptions& options,
                                     const model::SequenceLayout& layout) {
  std::vector<float> parameters = layout.Initial(options.seed);
  options.described.MixIn(layout, options.seed, parameters);
  return parameters;
}

double UpdateStddev(const SequenceGuard& privacy, double expected_batch) {
  const auto clipper = MakeClipper(privacy);
  if (clipper == nullptr) return 0;
  return clipper->grid().stddev * clipper->grid().step / expected_batch;
}

model::KeptNoise NoiseOf(const SequenceTrainingOptions& options, std::span<const float> share) {
  if (!options.privacy.on || options.model.re_attention.kappa == 0) return {};
  const double stddev = UpdateStddev(options.privacy, options.expected_batch);
  model::KeptNoise noise{.weight_variance = static_cast<float>(stddev * stddev),
                         .item_variance = std::vector<float>(options.model.catalogue),
                         .factor_rank = options.sum_map.rank};
  for (size_t i = 0; i < noise.item_variance.size(); ++i) {
    const float p =
        share.empty() ? 1.0f : std::clamp(share[i], options.privacy.item_share_min, 1.0f);
    noise.item_variance[i] = static_cast<float>(std::pow(stddev / p, 2));
  }
  return noise;
}

privacy::Charge StepCharge(const SequenceGuard& privacy, const privacy::Draw& draw) {
  if (!privacy.on) return {};
  return {.mechanism = privacy::MechanismKind::kDpSgd,
          .noise_multiplier = privacy.sigma,
          .sigma_gradient = privacy.sigma,
          .clip_gradient = privacy.clip_norm,
          .sampling_rate = draw.rate,
          .block_steps = draw.block_steps};
}

SequenceStepper::SequenceStepper(SequenceTrainingOptions options, const privacy::Draw& draw,
                                 ops::Backend& backend, std::unique_ptr<noise::NoiseSource> noise)
    : options_(std::move(options)),
      backend_(backend),
      noise_(std::move(noise)),
      model_(options_.model, backend, options_.prior),
      clipper_(MakeClipper(options_.privacy)),
      charge_(StepCharge(options_.privacy, draw)),
      update_stddev_(UpdateStddev(options_.privacy, options_.expected_batch)),
      parameters_(InitialParameters(options_, model_.layout())),
      state_(Optimizer(options_.optimizer).DenseStateFloats(parameters_.size()), 0.0f) {
  const Status status = CheckOptions(options_);
  TACIT_CHECK(status.has_value(), "options are checked before a stepper is made");
  SetItemShare(options_.privacy.item_share);
  map_ = options_.sum_map.Make(model_.layout().Matrices(), parameters_, options_.seed, backend_);
}

void SequenceStepper::SetItemShare(std::span<const float> share) {
  TACIT_CHECK(share.empty() || share.size() == options_.model.catalogue, "a chance per item");
  in_weights_ = NoiseOf(options_, share);
}

void SequenceStepper::Resume(std::span<const float> parameters,
                             std::span<const float> optimizer_state, uint64_t steps_taken) {
  TACIT_CHECK(step_ == 0 && parameters.size() == parameters_.size() &&
                  optimizer_state.size() == state_.size(),
              "the stored parameters are of another model");
  parameters_.assign(parameters.begin(), parameters.end());
  state_.assign(optimizer_state.begin(), optimizer_state.end());
  step_ = steps_taken;
  engine_is_behind_ = true;
}

void SequenceStepper::SetInitial(std::vector<float> parameters) {
  TACIT_CHECK(step_ == 0 && parameters.size() == parameters_.size(),
              "initial parameters come before the first step, all of them");
  parameters_ = std::move(parameters);
  engine_is_behind_ = true;
  map_ = options_.sum_map.Make(model_.layout().Matrices(), parameters_, options_.seed, backend_);
}

SequenceEngineOptions SequenceStepper::EngineOptions() const {
  SequenceEngineOptions options{.model = options_.model,
                                .prior = options_.prior,
                                .maps_sums = bool{options_.sum_map},
                                .optimizer = options_.optimizer,
                                .is_private = clipper_ != nullptr,
                                .update_stddev = update_stddev_};
  if (clipper_ != nullptr)
    TACIT_CHECK(clipper_->Describe(&options.recipe), "a clip that describes itself");
  options.recipe.factor = 1 / options_.expected_batch;
  return options;
}

Status SequenceStepper::Step(const model::SequenceUnits& units, SequenceStepReport* report) {
  TACIT_RETURN_IF_ERROR(GradientOf(units));
  TACIT_ASSIGN(*report, Release());
  return {};
}

Status SequenceStepper::GradientOf(const model::SequenceUnits& units) {
  // The step's public coins: a function of the seed and the step alone.
  const model::SequenceModel::Step step{options_.seed * 0x9e3779b97f4a7c15 + step_,
                                        parameter_noise(), map_.get()};
  // The map is of what earlier steps released, never of these units.
  TACIT_RETURN_IF_ERROR(map_->Choose(step_, parameters_));
  if (engine_ != nullptr) {
    if (engine_is_behind_) TACIT_RETURN_IF_ERROR(engine_->Load(parameters_, state_));
    engine_is_behind_ = false;
    return engine_->GradientOf(units, step.seed, step.noise);
  }
  const model::Unscaled unscaled;
  return model_.ClippedSum(parameters_, units, step,
                           clipper_ != nullptr ? clipper_->rule() : unscaled, &sum_);
}

// Turns the sum into the update G: adds noise on every number, for every batch alike, then
// divides by the public divisor. Only then the map makes a gradient of it.
Result<std::span<const float>> SequenceStepper::NoisedGradient() {
  const double factor = 1 / options_.expected_batch;
  if (clipper_ != nullptr) {
    noise_->Rekey();
    update_.resize(sum_.steps.size());
    const noise::Declaration declared(*noise_,
                                      {"gradient", clipper_->bound() / clipper_->grid().step});
    mechanism::Release(clipper_->grid(), factor, *noise_, sum_.steps, update_);
  } else {
    update_.resize(sum_.values.size());
    for (size_t i = 0; i < update_.size(); ++i)
      update_[i] = static_cast<float>(factor * sum_.values[i]);
  }
  return map_->Expand(update_);
}

Result<SequenceStepReport> SequenceStepper::Release() {
  if (engine_ != nullptr) {
    TACIT_ASSIGN(SequenceStepReport report, engine_->Release(options_.schedule.Factor(step_)));
    engine_is_ahead_ = true;
    report.step = step_++;
    return report;
  }
  TACIT_ASSIGN(const std::span<const float> gradient, NoisedGradient());
  // The optimiser keeps all that it resumes from in its state, so this step can have its own rate.
  OptimizerOptions optimizer = options_.optimizer;
  optimizer.learning_rate *= static_cast<float>(options_.schedule.Factor(step_));
  Optimizer(optimizer).StepDense(gradient, update_stddev(), parameters_, state_,
                                 backend_.workers());
  const SequenceStepReport report = Report();
  ++step_;
  return report;
}

Status SequenceStepper::Settle() {
  if (!engine_is_ahead_) return {};
  TACIT_RETURN_IF_ERROR(engine_->Settle(parameters_, state_));
  engine_is_ahead_ = false;
  return {};
}

SequenceStepReport SequenceStepper::Report() const {
  SequenceStepReport report{.step = step_, .units = sum_.loss.size()};
  size_t with_loss = 0;
  for (const float loss : sum_.loss) {
    report.loss += loss;
    with_loss += loss > 0;
  }
  report.loss /= static_cast<double>(std::max<size_t>(1, with_loss));
  const model::GroupNorms& norms = sum_.norms;
  for (size_t u = 0; clipper_ != nullptr && u < norms.units; ++u) {
    double squared = 0;
    for (size_t g = 0; g < norms.groups; ++g) squared += norms.squared[g * norms.units + u];
    report.units_clipped += std::sqrt(squared) > clipper_->bound();
  }
  return report;
}

std::span<const float> SequenceStepper::Weights() {
  const MovingAverage average(options_.optimizer.average_decay);
  if (!average.on() || step_ == 0) return parameters();
  // Every step writes all parameters, so the stored average is that of the latest step. A snapshot
  // serves the same numbers.
  return average.Of(parameters_.size(), optimizer_state());
}

}  // namespace tacit::train
