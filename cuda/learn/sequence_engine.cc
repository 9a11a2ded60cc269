#include "cuda/learn/sequence_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/noise/noise_check.h"
#include "cuda/kernels/noise/step_noise.h"
#include "cuda/kernels/rows/finish.h"
#include "cuda/learn/device_optimizer.h"
#include "cuda/learn/plan_watch.h"
#include "cuda/learn/recipe_law.h"
#include "cuda/learn/sequence_wave.h"
#include "model/sequence/coins.h"

namespace tacit::cuda {
namespace {

using mechanism::Recipe;

// The largest wave of a planned step.
WavePlan PlannedWave(const DeviceSequenceOptions& options) {
  const model::SequenceOptions& model = options.sequence.model;
  const train::SequenceStepSizes& step = options.sequence.planned;
  return {.sizes = train::LargestGpuWave(model, step.units, options.wave_positions),
          .corrected = model.re_attention.kappa > 0,
          .has_prior = step.prior_has_each || step.prior_has_table};
}

// The numbers that steps have beside waves: the variances of items, and a start's logits.
struct StepNumbers {
  Buffer<float> item_variance, each, table;

  Status TakePlanned(const train::SequenceEngineOptions& options, BufferTaker taker) {
    const train::SequenceStepSizes& step = options.planned;
    const uint64_t items = options.model.catalogue;
    if (step.units == 0) return {};
    if (options.model.re_attention.kappa > 0)
      TACIT_RETURN_IF_ERROR(taker.Take(items, &item_variance));
    TACIT_RETURN_IF_ERROR(taker.Take(step.prior_has_each ? items : 0, &each));
    return taker.Take(step.prior_has_table ? items * items : 0, &table);
  }
};

std::string TextOf(const train::SequenceStepSizes& planned) {
  return planned.units == 0 ? std::string() : fmt::format("{} users", planned.units);
}

class Engine final : public train::SequenceEngine {
 public:
  Engine(Stream stream, const DeviceSequenceOptions& options, noise::NoiseSource& noise)
      : stream_(std::move(stream)),
        options_(options),
        noise_(noise),
        layout_(options.sequence.model),
        most_(train::LimitsOfGpuWave(options.sequence.model.catalogue, options.wave_positions)),
        watch_(stream_.device(), TextOf(options.sequence.planned)),
        wave_(MakeSequenceWave(stream_, layout_, options.logit_rows)) {}

  Status Open() {
    TACIT_RETURN_IF_ERROR(CheckNoise(stream_));
    TACIT_ASSIGN(StepNoise step_noise, StepNoise::Make(stream_));
    step_noise_.emplace(std::move(step_noise));
    // Any state of these sizes, until one is loaded.
    const train::OptimizerOptions& rule = options_.sequence.optimizer;
    dense_.parameters.resize(layout_.size());
    dense_.optimizer.resize(train::Optimizer(rule).DenseStateFloats(layout_.size()));
    TACIT_ASSIGN(DeviceOptimizer optimizer, DeviceOptimizer::Make(stream_, rule, dense_));
    optimizer_.emplace(std::move(optimizer));
    Device& device = stream_.device();
    TACIT_ASSIGN(sums_, Buffer<int64_t>::Make(device, layout_.size()));
    TACIT_RETURN_IF_ERROR(numbers_.TakePlanned(options_.sequence, BufferTaker(device)));
    const WavePlan plan = PlannedWave(options_);
    return plan.sizes.units == 0 ? Status() : wave_->TakePlanned(plan);
  }

  Status Load(std::span<const float> parameters, std::span<const float> state) override {
    TACIT_RETURN_IF_ERROR(stream_.device().BindThread());
    dense_.parameters.assign(parameters.begin(), parameters.end());
    dense_.optimizer.assign(state.begin(), state.end());
    loaded_ = true;
    return optimizer_->Load(dense_);
  }
  Status GradientOf(const model::SequenceUnits& units, uint64_t seed,
                    const model::ParameterNoise& noise) override;
  Result<train::SequenceStepReport> Release(double rate_factor) override;
  Status Settle(std::span<float> parameters, std::span<float> state) override;

 private:
  uint32_t CoordinatesOf(const model::UnitRows& rows);
  Status AddWave();
  Status TakeOutcome(uint32_t turn);
  Result<SequenceStepFacts> FactsOf(uint64_t seed, const model::ParameterNoise& noise);

  Stream stream_;
  const DeviceSequenceOptions options_;
  noise::NoiseSource& noise_;
  const model::SequenceLayout layout_;
  const train::GpuWaveLimits most_;  // of a wave
  PlanWatch watch_;
  store::DenseState dense_;
  std::optional<DeviceOptimizer> optimizer_;
  std::optional<StepNoise> step_noise_;
  Buffer<int64_t> sums_;
  std::vector<float> item_variance_;
  StepNumbers numbers_;
  uint64_t prior_version_ = UINT64_MAX;  // of the prior's numbers on the device

  // The step under way.
  bool loaded_ = false, begun_ = false;
  train::SequenceStepReport report_;
  size_t with_loss_ = 0;
  model::UnitRows rows_;
  // The units of two waves: one is packed while the other one's outcome is awaited.
  PackedUnits packed_[SequenceWave::kTurns];
  uint32_t turn_ = 0;  // that is packed
  bool on_its_way_[SequenceWave::kTurns] = {};
  // Per item the last unit that had it; and the number of units so far.
  std::vector<uint64_t> seen_by_;
  uint64_t units_seen_ = 0;
  std::unique_ptr<SequenceWave> wave_;
};

// As model::UnitGradient counts them: whole tables that the softmax writes, and touched rows of
// others.
uint32_t Engine::CoordinatesOf(const model::UnitRows& rows) {
  if (options_.sequence.model.tied) return static_cast<uint32_t>(layout_.size());
  seen_by_.resize(layout_.items().rows);
  ++units_seen_;
  size_t items = 0;
  for (const uint32_t item : rows.item)
    items += std::exchange(seen_by_[item], units_seen_) != units_seen_;
  return static_cast<uint32_t>(layout_.size() - layout_.items().size() +
                               items * layout_.items().cols);
}

// Sends the packed units through the model. They run while the next ones are packed.
Status Engine::AddWave() {
  if (packed_[turn_].units() == 0) return {};
  const Recipe& recipe = options_.sequence.recipe;
  const ClipRule rule{
      .law = LawOf(recipe.clip), .bound = recipe.bound, .grid_step = recipe.grid.step};
  TACIT_RETURN_IF_ERROR(wave_->Add(packed_[turn_], turn_, rule, sums_.span()));
  on_its_way_[turn_] = true;
  turn_ = 1 - turn_;
  return TakeOutcome(turn_);
}

// Adds a wave's outcome to the report, if there is one, and makes room for other units.
Status Engine::TakeOutcome(uint32_t turn) {
  if (!std::exchange(on_its_way_[turn], false)) return {};
  PackedUnits& packed = packed_[turn];
  TACIT_ASSIGN(const SequenceWave::Outcome outcome, wave_->Await(turn));
  for (size_t u = 0, r = 0; u < packed.units(); ++u) {
    double loss = 0;
    for (; r < packed.counted_end[u]; ++r) loss += outcome.loss[r];
    if (!outcome.bounded[u]) continue;
    report_.loss += static_cast<float>(loss);
    with_loss_ += static_cast<float>(loss) > 0;
    report_.units_clipped += std::sqrt(double{outcome.squared[u]}) > options_.sequence.recipe.bound;
  }
  packed.Clear();
  return {};
}

// Sends what the step needs beside parameters and units, the prior's numbers if they are new.
Result<SequenceStepFacts> Engine::FactsOf(uint64_t seed, const model::ParameterNoise& noise) {
  SequenceStepFacts facts{.parameters = optimizer_->weights(),
                          .dropout_seed = model::StepCoins{seed}.dropout()};
  Device& device = stream_.device();
  if (noise.on()) {
    TACIT_CHECK(noise.item_variance.size() == layout_.items().rows && noise.factor_rank == 0,
                "a variance per item");
    if (!std::ranges::equal(noise.item_variance, item_variance_)) {
      item_variance_.assign(noise.item_variance.begin(), noise.item_variance.end());
      TACIT_RETURN_IF_ERROR(Reserve(device, item_variance_.size(), &numbers_.item_variance));
      TACIT_RETURN_IF_ERROR(stream_.Upload<float>(
          item_variance_, numbers_.item_variance.span().Sub(0, item_variance_.size())));
      // The next ones may come before the stream has run.
      TACIT_RETURN_IF_ERROR(stream_.Synchronize());
    }
    facts.item_variance = numbers_.item_variance.span().Sub(0, item_variance_.size());
    facts.weight_variance = noise.weight_variance;
  }
  if (options_.sequence.prior == nullptr) return facts;
  const model::LogitPrior::Numbers numbers = options_.sequence.prior->numbers();
  TACIT_RETURN_IF_ERROR(Reserve(device, numbers.each.size(), &numbers_.each));
  TACIT_RETURN_IF_ERROR(Reserve(device, numbers.table.size(), &numbers_.table));
  facts.has_prior = true;
  facts.prior = {.each = numbers_.each.span().Sub(0, numbers.each.size()),
                 .table = numbers_.table.span().Sub(0, numbers.table.size()),
                 .decay = numbers.decay};
  if (numbers.version == prior_version_) return facts;
  prior_version_ = UINT64_MAX;
  TACIT_RETURN_IF_ERROR(
      stream_.Upload<float>(numbers.each, numbers_.each.span().Sub(0, numbers.each.size())));
  TACIT_RETURN_IF_ERROR(
      stream_.Upload<float>(numbers.table, numbers_.table.span().Sub(0, numbers.table.size())));
  // The next release may come before the stream has run.
  TACIT_RETURN_IF_ERROR(stream_.Synchronize());
  prior_version_ = numbers.version;
  return facts;
}

Status Engine::GradientOf(const model::SequenceUnits& units, uint64_t seed,
                          const model::ParameterNoise& noise) {
  TACIT_RETURN_IF_ERROR(stream_.device().BindThread());
  TACIT_CHECK(loaded_, "a state is loaded before the first step");
  begun_ = true;
  // Waves of a step that was not released may be on their way.
  for (uint32_t turn = 0; turn < SequenceWave::kTurns; ++turn) {
    TACIT_RETURN_IF_ERROR(TakeOutcome(turn));
    packed_[turn].Clear();
  }
  report_ = {.units = units.units()};
  with_loss_ = 0;
  TACIT_RETURN_IF_ERROR(stream_.Fill(sums_.span(), 0));
  watch_.Begin();
  TACIT_ASSIGN(const SequenceStepFacts facts, FactsOf(seed, noise));
  TACIT_RETURN_IF_ERROR(wave_->BeginStep(facts));
  const model::StepCoins coins{seed};
  for (size_t u = 0; u < units.units(); ++u) {
    units.Rows(u, coins.crops(units.Id(u)), &rows_);
    for (const uint32_t item : rows_.item)
      TACIT_CHECK(item < layout_.items().rows, "items are of the catalogue");
    const PackedUnits& packed = packed_[turn_];
    if (packed.rows() + rows_.size() > most_.positions || packed.units() == most_.units)
      TACIT_RETURN_IF_ERROR(AddWave());
    packed_[turn_].Append(rows_, units.Id(u), CoordinatesOf(rows_));
  }
  TACIT_RETURN_IF_ERROR(AddWave());
  watch_.End();
  return {};
}

// The device works on while the host reads the waves' outcomes, and when this has returned.
Result<train::SequenceStepReport> Engine::Release(double rate_factor) {
  TACIT_RETURN_IF_ERROR(stream_.device().BindThread());
  TACIT_CHECK(begun_, "Release follows GradientOf");
  begun_ = false;
  const Recipe& recipe = options_.sequence.recipe;
  noise_.Rekey();
  // Begin waits for the end of the last step, whose rule BeginStep overwrites on the host.
  TACIT_RETURN_IF_ERROR(step_noise_->Begin(noise_));
  TACIT_RETURN_IF_ERROR(optimizer_->BeginStep(options_.sequence.update_stddev, rate_factor));
  TACIT_RETURN_IF_ERROR(FinishDense(
      stream_, step_noise_->key(),
      {.step = recipe.grid.step, .stddev = recipe.grid.stddev, .factor = recipe.factor},
      optimizer_->rule(), {0, sums_.span().size}, sums_.span(), optimizer_->parameters()));
  TACIT_RETURN_IF_ERROR(step_noise_->End());
  TACIT_RETURN_IF_ERROR(TakeOutcome(1 - turn_));  // the last wave's
  report_.loss /= static_cast<double>(std::max<size_t>(1, with_loss_));
  return report_;
}

Status Engine::Settle(std::span<float> parameters, std::span<float> state) {
  TACIT_RETURN_IF_ERROR(stream_.device().BindThread());
  TACIT_RETURN_IF_ERROR(optimizer_->Settle(&dense_));
  TACIT_CHECK(parameters.size() == dense_.parameters.size() &&
              state.size() == dense_.optimizer.size());
  std::ranges::copy(dense_.parameters, parameters.begin());
  std::ranges::copy(dense_.optimizer, state.begin());
  return {};
}

}  // namespace

Status PlanSequenceSteps(const DeviceSequenceOptions& options, const model::SequenceLayout& layout,
                         MemoryNeed* need) {
  const WavePlan plan = PlannedWave(options);
  TACIT_RETURN_IF_ERROR(StepNumbers().TakePlanned(options.sequence, BufferTaker(*need)));
  return plan.sizes.units == 0 ? Status()
                               : PlanSequenceWave(layout, options.logit_rows, plan, need);
}

Result<std::unique_ptr<train::SequenceEngine>> MakeDeviceSequenceEngine(
    Device& device, const DeviceSequenceOptions& options, noise::NoiseSource& noise) {
  const std::string why_not = train::WhyNotOnEngine(options.sequence);
  if (!why_not.empty())
    return Fail(ErrorCode::kRefused,
                fmt::format("{}: set gpu.use to never, or do without it", why_not));
  TACIT_ASSIGN(Stream stream, Stream::Make(device));
  auto engine = std::make_unique<Engine>(std::move(stream), options, noise);
  TACIT_RETURN_IF_ERROR(engine->Open());
  return std::unique_ptr<train::SequenceEngine>(std::move(engine));
}

}  // namespace tacit::cuda
