#include "train/click/host_click_engine.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "train/click/every_row_update.h"
#include "train/learner/loss_sum.h"
#include "train/learner/step_phases.h"

namespace tacit::train {
namespace {

// Counts the units that the step's scale rule shortens.
uint64_t CountClipped(const model::ScaleRule& rule, const model::GroupNorms& norms,
                      std::vector<float>* scales) {
  if (!rule.needs_norms()) return 0;
  scales->resize(norms.squared.size());
  rule.Scales(norms, *scales);
  uint64_t clipped = 0;
  for (size_t unit = 0; unit < norms.units; ++unit) {
    bool shorter = false;
    for (size_t group = 0; group < norms.groups; ++group)
      shorter |= (*scales)[group * norms.units + unit] < 1;
    clipped += shorter;
  }
  return clipped;
}

class HostClickEngine final : public ClickEngine {
 public:
  HostClickEngine(const ClickEngineOptions& options, mechanism::Mechanism& mechanism,
                  noise::NoiseSource& noise, ops::Backend& backend, store::WorkingRows& rows,
                  store::DenseState dense)
      : space_(options.model.space),
        mechanism_(mechanism),
        noise_(noise),
        backend_(backend),
        rows_(rows),
        model_(options.model, backend),
        optimizer_(options.optimizer),
        every_row_(space_, optimizer_),
        dense_(std::move(dense)),
        step_(options.steps_taken),
        map_(options.sum_map.Make(model_.Matrices(), model_.InitialDense(options.seed),
                                  options.seed, backend)) {}

  Status Predict(const stream::StepBatch& batch, StepReport* report) override;
  Status Begin(const stream::StepBatch& step) override;
  Status Release(StepReport* report) override;
  Status Settle() override { return {}; }
  void Announce(const stream::StepBatch& next) override {
    if (!space_.tables().empty()) rows_.Announce(next.examples.row);
  }
  const store::DenseState& dense() const override { return dense_; }

 private:
  Status Forward(const stream::StepBatch& step, bool learns);
  void ScoreRows();
  Status Apply();
  Status ApplyDense();

  const RowSpace space_;
  mechanism::Mechanism& mechanism_;
  noise::NoiseSource& noise_;
  ops::Backend& backend_;
  store::WorkingRows& rows_;
  model::Pctr model_;
  Optimizer optimizer_;
  EveryRowUpdate every_row_;
  store::DenseState dense_;
  uint64_t step_;  // steps released
  const std::unique_ptr<model::SumMap> map_;

  // Working memory of a step.
  model::ActivationIndexer indexer_;
  model::Activations activations_;
  model::Examples examples_;
  model::RowSelection selection_;
  model::StepGradient gradient_;
  model::GroupNorms norms_;
  std::vector<float*> row_pointers_;
  std::vector<RowUpdate> row_updates_;
  std::vector<double> row_scores_;
  std::vector<float> logits_, loss_, dlogit_, scales_;
  PhaseTimer timer_;
};

Status HostClickEngine::Forward(const stream::StepBatch& step, bool learns) {
  timer_.Enter(StepPhase::kGather);
  const event::Batch& batch = step.examples;
  // A model without tables learns from the numbers alone.
  const bool embeds = !space_.tables().empty();
  const std::span<const uint64_t> rows(batch.row.data(), embeds ? batch.row.size() : 0);
  const std::span<const uint32_t> slot_end(batch.slot_end.data(),
                                           embeds ? batch.slot_end.size() : 0);
  indexer_.Index(rows, slot_end, embeds ? batch.slots : 0, step.unit_of, step.units, &activations_);
  examples_ = {.size = batch.size(),
               .units = step.units,
               .unit_of = step.unit_of,
               .label = batch.label,
               .dense = batch.dense,
               .slot_end = slot_end,
               .slot_row = activations_.slot_row,
               .weight = batch.weight,
               .block_end = step.sum_block_end,
               .apart = learns};
  row_pointers_.resize(activations_.rows.size());
  TACIT_RETURN_IF_ERROR(rows_.Gather(activations_.rows, row_pointers_));
  logits_.resize(batch.size());
  timer_.Enter(StepPhase::kGradients);
  return model_.Forward(examples_, dense_.parameters, row_pointers_, logits_);
}

// Scores the activated rows if the mechanism asks for scores.
void HostClickEngine::ScoreRows() {
  const double clip = mechanism_.row_score_clip();
  row_scores_.resize(clip > 0 ? activations_.rows.size() : 0);
  if (clip > 0) model_.RowScores(examples_, activations_, clip, row_scores_);
}

Status HostClickEngine::Begin(const stream::StepBatch& step) {
  TACIT_RETURN_IF_ERROR(Forward(step, true));
  loss_.resize(examples_.size);
  TACIT_RETURN_IF_ERROR(model_.Backward(examples_, dense_.parameters, loss_));
  ScoreRows();
  timer_.Stop();
  return {};
}

Status HostClickEngine::Release(StepReport* report) {
  timer_.Enter(StepPhase::kRelease);
  mechanism_.Select({.activations = activations_, .scores = row_scores_}, noise_, &selection_);
  // The map is of what earlier steps released, never of this batch.
  TACIT_RETURN_IF_ERROR(map_->Choose(step_, dense_.parameters));
  ++step_;
  timer_.Enter(StepPhase::kGradients);
  TACIT_RETURN_IF_ERROR(model_.ClippedSum(examples_, activations_, selection_,
                                          mechanism_.scale_rule(), &gradient_, &norms_, *map_));
  // Counted before Finalize, which may move an adaptive clip.
  const uint64_t clipped = CountClipped(mechanism_.scale_rule(), norms_, &scales_);
  timer_.Enter(StepPhase::kRelease);
  mechanism_.Finalize(noise_, norms_, &gradient_);
  timer_.Enter(StepPhase::kUpdate);
  TACIT_RETURN_IF_ERROR(Apply());

  *report = {
      .logits = logits_,
      .examples = examples_.size,
      .loss_sum = SumOfLosses(loss_),
      .losses = examples_.size,
      .rows_touched = activations_.rows.size(),
      .rows_written = selection_.every_row ? space_.rows() : gradient_.rows.size(),
      .row_floats_written = selection_.every_row ? space_.floats() : gradient_.row_values.size(),
      .units_clipped = clipped,
      .phases = timer_.Take()};
  return {};
}

// The noised sum becomes a gradient of the weights here, after the noise.
Status HostClickEngine::ApplyDense() {
  TACIT_ASSIGN(const std::span<const float> update, map_->Expand(gradient_.dense));
  optimizer_.StepDense(update, mechanism_.update_stddev(), dense_.parameters, dense_.optimizer,
                       backend_.workers());
  return {};
}

// The update also reaches rows that no unit activated. So Apply gathers the rows of the gradient,
// not those of the batch.
Status HostClickEngine::Apply() {
  TACIT_RETURN_IF_ERROR(ApplyDense());
  if (selection_.every_row) return every_row_.Apply(mechanism_, noise_, gradient_, rows_);
  row_pointers_.resize(gradient_.rows.size());
  TACIT_RETURN_IF_ERROR(rows_.Gather(gradient_.rows, row_pointers_));
  row_updates_.clear();
  for (size_t i = 0; i < gradient_.rows.size(); ++i) {
    const std::span<const float> update = gradient_.Row(i);
    row_updates_.push_back(
        {update, {row_pointers_[i], update.size() + optimizer_.RowStateFloats(update.size())}});
  }
  optimizer_.StepRows(row_updates_);
  rows_.MarkChanged(gradient_.rows);
  return {};
}

Status HostClickEngine::Predict(const stream::StepBatch& batch, StepReport* report) {
  TACIT_RETURN_IF_ERROR(Forward(batch, false));
  loss_.resize(logits_.size());
  dlogit_.resize(logits_.size());
  backend_.LogisticLoss(logits_, examples_.label, loss_, dlogit_);
  (void)timer_.Take();  // no part of a step
  *report = {.logits = logits_,
             .examples = examples_.size,
             .loss_sum = SumOfLosses(loss_),
             .losses = examples_.size,
             .rows_touched = activations_.rows.size()};
  return {};
}

}  // namespace

std::unique_ptr<ClickEngine> MakeHostClickEngine(const ClickEngineOptions& options,
                                                 mechanism::Mechanism& mechanism,
                                                 noise::NoiseSource& noise, ops::Backend& backend,
                                                 store::WorkingRows& rows,
                                                 store::DenseState dense) {
  return std::make_unique<HostClickEngine>(options, mechanism, noise, backend, rows,
                                           std::move(dense));
}

}  // namespace tacit::train
