#include "train/click/click_learner.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/moving_average.h"
#include "train/click/host_click_engine.h"
#include "train/forward/forward_click_engine.h"

namespace tacit::train {
namespace {

std::unique_ptr<ClickEngine> MakeEngine(const ClickOptions& options,
                                        mechanism::Mechanism& mechanism, noise::NoiseSource& noise,
                                        ops::Backend& backend, store::WorkingRows& rows,
                                        const store::DenseState* resume, uint64_t steps_taken) {
  store::DenseState dense =
      resume != nullptr ? *resume : InitialDense(options, model::Pctr(options.model, backend));
  const auto make =
      mechanism.representation() != nullptr ? MakeForwardClickEngine : MakeHostClickEngine;
  return make(options.Engine(steps_taken), mechanism, noise, backend, rows, std::move(dense));
}

}  // namespace

ClickLearner::ClickLearner(ClickOptions options, std::unique_ptr<mechanism::Mechanism> mechanism,
                           std::unique_ptr<noise::NoiseSource> noise,
                           std::unique_ptr<ClickEngine> engine)
    : Learner(options.id, options.index),
      options_(std::move(options)),
      mechanism_(std::move(mechanism)),
      noise_(std::move(noise)),
      engine_(std::move(engine)) {}

ClickLearner::ClickLearner(ClickOptions options, std::unique_ptr<mechanism::Mechanism> mechanism,
                           std::unique_ptr<noise::NoiseSource> noise, ops::Backend& backend,
                           store::WorkingRows& rows, const store::DenseState* resume,
                           uint64_t steps_taken)
    : Learner(options.id, options.index),
      options_(std::move(options)),
      mechanism_(std::move(mechanism)),
      noise_(std::move(noise)),
      engine_(MakeEngine(options_, *mechanism_, *noise_, backend, rows, resume, steps_taken)) {}

Result<bool> ClickLearner::TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                                    StepReport* report) {
  if (abandon) return false;
  TACIT_RETURN_IF_ERROR(engine_->Begin(step));
  // From here on the mechanism changes. Its releases must be charged, so the step cannot be
  // abandoned.
  if (abandon) return false;
  if (step.kind == stream::StepBatch::Kind::kPeriodFirst) mechanism_->OpenPeriod(*noise_);
  TACIT_RETURN_IF_ERROR(engine_->Release(report));
  return true;
}

void ClickLearner::Observe(const stream::StepBatch& batch) {
  const event::Batch& examples = batch.examples;
  indexer_.Index(examples.row, examples.slot_end, examples.slots, batch.unit_of, batch.units,
                 &observed_);
  mechanism_->Observe(observed_);
}

Status ClickLearner::Preview(const stream::StepBatch& batch, StepReport* report) {
  if (batch.kind == stream::StepBatch::Kind::kPreviewAgain)
    return {};  // it was seen when the period opened
  TACIT_RETURN_IF_ERROR(engine_->Predict(batch, report));
  if (mechanism_->observes_periods()) Observe(batch);
  return {};
}

// Predicts two examples: each table's first row, with all dense numbers 0, then all 1.
Result<bool> ClickLearner::GivesNumbers() {
  if (!engine_->settled_numbers()) return false;
  stream::StepBatch probe;
  event::Batch& batch = probe.examples;
  const auto tables = options_.model.space.tables();
  batch.dense_width = options_.model.dense_width;
  batch.slots = static_cast<uint32_t>(tables.size());
  for (const float number : {0.0f, 1.0f}) {
    probe.unit_of.push_back(probe.units++);
    batch.offset.push_back(batch.offset.size());
    batch.label.push_back(0);
    batch.dense.insert(batch.dense.end(), batch.dense_width, number);
    for (const RowSpace::Table& table : tables) {
      batch.row.push_back(table.first);
      batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
    }
  }
  StepReport report;
  TACIT_RETURN_IF_ERROR(engine_->Predict(probe, &report));
  return std::ranges::all_of(report.logits, [](float logit) { return std::isfinite(logit); });
}

std::shared_ptr<const store::DenseState> ClickLearner::CopyDense() const {
  return engine_->CopyDense();
}

Status ClickLearner::LoadReleased(std::string_view bytes) {
  if (Status loaded = mechanism_->LoadState(bytes); !loaded)
    return Fail(std::move(loaded.error())
                    .Context("learner '" + options_.id + "': the stored state of its mechanism"));
  saved_version_ = mechanism_->state_version();
  return {};
}

std::shared_ptr<const std::string> ClickLearner::TakeReleased() {
  const uint64_t version = mechanism_->state_version();
  if (version == std::exchange(saved_version_, version)) return nullptr;
  return std::make_shared<const std::string>(mechanism_->SaveState());
}

store::DenseState InitialDense(const ClickOptions& options, const model::Pctr& model) {
  store::DenseState dense;
  dense.parameters = model.InitialDense(options.seed);
  dense.optimizer.assign(Optimizer(options.optimizer).DenseStateFloats(dense.parameters.size()),
                         0.0f);
  return dense;
}

Result<store::DenseState> GrownDense(const ClickOptions& options, const model::Pctr& model,
                                     const store::DenseState& was, std::span<const size_t> inputs) {
  const Optimizer optimizer(options.optimizer);
  const size_t n = model.dense_size(), out = model.first_width();
  const size_t after = n - inputs.size() * out;  // all but the first layer's weights
  const size_t before = was.parameters.size();
  if (before < after || (before - after) % out != 0 ||
      was.optimizer.size() != optimizer.DenseStateFloats(before))
    return Fail(ErrorCode::kRefused, "its layers are other ones");
  const size_t weights_before = before - after;
  std::vector<size_t> origin(n);
  store::DenseState grown;
  grown.parameters = model.InitialDense(options.seed);
  for (size_t i = 0; i < n; ++i) {
    const size_t input = i / out;
    if (input >= inputs.size()) {
      origin[i] = weights_before + (i - inputs.size() * out);
    } else if (inputs[input] == Optimizer::kNew || inputs[input] == kNewWithoutWeight) {
      origin[i] = Optimizer::kNew;
      if (inputs[input] == kNewWithoutWeight) grown.parameters[i] = 0;
    } else {
      origin[i] = inputs[input] * out + i % out;
      TACIT_CHECK(origin[i] < weights_before, "an input that there was not");
    }
    if (origin[i] != Optimizer::kNew) grown.parameters[i] = was.parameters[origin[i]];
  }
  grown.optimizer = optimizer.MovedDenseState(was.optimizer, before, origin, grown.parameters);
  return grown;
}

store::RowLayout MakeRowLayout(const ClickOptions& options, const model::Pctr& model) {
  store::RowLayout layout;
  layout.space = options.model.space;
  layout.seed = options.seed;
  layout.average = MovingAverage(options.optimizer.average_decay);
  layout.bf16 = options.bf16_rows;
  const Optimizer optimizer(options.optimizer);
  for (uint32_t table = 0; table < layout.space.tables().size(); ++table) {
    layout.state_floats.push_back(
        static_cast<uint32_t>(optimizer.RowStateFloats(layout.space.tables()[table].dim)));
    layout.initial_scale.push_back(model.InitialRowScale(table));
  }
  return layout;
}

}  // namespace tacit::train
