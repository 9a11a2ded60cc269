#include "train/click_learner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/loss_sum.h"

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

uint64_t EmbeddingFloats(const RowSpace& space) {
  uint64_t floats = 0;
  for (const RowSpace::Table& table : space.tables()) floats += table.rows * table.dim;
  return floats;
}

}  // namespace

ClickLearner::ClickLearner(ClickOptions options, std::unique_ptr<mechanism::Mechanism> mechanism,
                           std::unique_ptr<noise::NoiseSource> noise, ops::Backend& backend,
                           store::WorkingRows& rows, const store::DenseState* resume)
    : Learner(options.id, options.index),
      options_(std::move(options)),
      mechanism_(std::move(mechanism)),
      noise_(std::move(noise)),
      backend_(backend),
      rows_(rows),
      model_(options_.model, backend),
      optimizer_(options_.optimizer),
      every_row_(options_.model.space, optimizer_) {
  if (resume != nullptr) {
    dense_ = *resume;
  } else {
    dense_.parameters = model_.InitialDense(options_.seed);
    dense_.optimizer.assign(optimizer_.DenseStateFloats(dense_.parameters.size()), 0.0f);
  }
}

Status ClickLearner::Predict(const stream::StepBatch& step) {
  const event::Batch& batch = step.examples;
  // A model without tables learns from the numbers alone.
  const bool embeds = !options_.model.space.tables().empty();
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
               .slot_row = activations_.slot_row};
  row_pointers_.resize(activations_.rows.size());
  TACIT_RETURN_IF_ERROR(rows_.Gather(activations_.rows, row_pointers_));
  logits_.resize(batch.size());
  return model_.Forward(examples_, dense_.parameters, row_pointers_, logits_);
}

// The update also reaches rows that no unit activated. So Apply gathers the rows of the gradient,
// not those of the batch.
Status ClickLearner::Apply() {
  optimizer_.StepDense(gradient_.dense, mechanism_->update_stddev(), dense_.parameters,
                       dense_.optimizer, backend_.workers());
  if (selection_.every_row) return every_row_.Apply(*mechanism_, *noise_, gradient_, rows_);
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

Result<bool> ClickLearner::TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                                    StepReport* report) {
  TACIT_RETURN_IF_ERROR(Predict(step));
  if (abandon) return false;
  loss_.resize(examples_.size);
  TACIT_RETURN_IF_ERROR(model_.Backward(examples_, dense_.parameters, loss_));
  ScoreRows();
  // From here on the mechanism changes. Its releases must be charged, so the step cannot be
  // abandoned.
  if (abandon) return false;
  if (step.kind == stream::StepBatch::Kind::kPeriodFirst) mechanism_->OpenPeriod(*noise_);
  mechanism_->Select({.activations = activations_, .scores = row_scores_}, *noise_, &selection_);
  TACIT_RETURN_IF_ERROR(model_.ClippedSum(examples_, activations_, selection_,
                                          mechanism_->scale_rule(), &gradient_, &norms_));
  // Counted before Finalize, which may move an adaptive clip.
  const uint64_t clipped = CountClipped(mechanism_->scale_rule(), norms_, &scales_);
  mechanism_->Finalize(*noise_, norms_, &gradient_);
  TACIT_RETURN_IF_ERROR(Apply());

  *report = {
      .logits = logits_,
      .examples = examples_.size,
      .loss_sum = SumOfLosses(loss_),
      .losses = examples_.size,
      .rows_touched = activations_.rows.size(),
      .rows_written = selection_.every_row ? options_.model.space.rows() : gradient_.rows.size(),
      .row_floats_written = selection_.every_row ? EmbeddingFloats(options_.model.space)
                                                 : gradient_.row_values.size(),
      .units_clipped = clipped};
  return true;
}

// Scores the activated rows if the mechanism asks for scores.
void ClickLearner::ScoreRows() {
  const double clip = mechanism_->row_score_clip();
  row_scores_.resize(clip > 0 ? activations_.rows.size() : 0);
  if (clip > 0) model_.RowScores(examples_, activations_, clip, row_scores_);
}

Status ClickLearner::Preview(const stream::StepBatch& batch, StepReport* report) {
  if (batch.kind == stream::StepBatch::Kind::kPreviewAgain)
    return {};  // it was seen when the period opened
  TACIT_RETURN_IF_ERROR(Predict(batch));
  if (mechanism_->observes_periods()) mechanism_->Observe(activations_);
  loss_.resize(logits_.size());
  dlogit_.resize(logits_.size());
  backend_.LogisticLoss(logits_, examples_.label, loss_, dlogit_);
  *report = {.logits = logits_,
             .examples = examples_.size,
             .loss_sum = SumOfLosses(loss_),
             .losses = examples_.size,
             .rows_touched = activations_.rows.size()};
  return {};
}

// Predicts two examples: each table's first row, with all dense numbers 0, then all 1.
Result<bool> ClickLearner::GivesNumbers() {
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
  TACIT_RETURN_IF_ERROR(Predict(probe));
  return std::ranges::all_of(logits_, [](float logit) { return std::isfinite(logit); });
}

std::shared_ptr<const store::DenseState> ClickLearner::CopyDense() const {
  return std::make_shared<const store::DenseState>(dense_);
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

store::RowLayout MakeRowLayout(const ClickOptions& options, const model::Pctr& model) {
  store::RowLayout layout;
  layout.space = options.model.space;
  layout.seed = options.seed;
  layout.average = MovingAverage(options.optimizer.average_decay);
  const Optimizer optimizer(options.optimizer);
  for (uint32_t table = 0; table < layout.space.tables().size(); ++table) {
    layout.state_floats.push_back(
        static_cast<uint32_t>(optimizer.RowStateFloats(layout.space.tables()[table].dim)));
    layout.initial_scale.push_back(model.InitialRowScale(table));
  }
  return layout;
}

}  // namespace tacit::train
