#include "unit/cuda/step_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tacit::cuda::testing {

TrialRows::TrialRows(const train::ClickOptions& click, ops::Backend& backend, WorkerPool& workers)
    : layout_(train::MakeRowLayout(click, model::Pctr(click.model, backend))) {
  auto rows = train::FlatRows::Make(layout_, 1 << 24, workers);
  EXPECT_TRUE(rows);
  rows_ = std::move(*rows);
}

std::vector<std::vector<float>> TrialRows::All() {
  std::vector<std::vector<float>> all;
  for (uint32_t t = 0; t < layout_.space.tables().size(); ++t) {
    const size_t floats = layout_.RowFloats(t);
    for (uint64_t i = 0; i < layout_.space.tables()[t].rows; ++i) {
      const float* row = rows_->Table(t) + i * floats;
      all.emplace_back(row, row + floats);
    }
  }
  return all;
}

void TrialRows::Set(const std::vector<std::vector<float>>& all) {
  size_t row = 0;
  for (uint32_t t = 0; t < layout_.space.tables().size(); ++t)
    for (uint64_t i = 0; i < layout_.space.tables()[t].rows; ++i, ++row)
      std::ranges::copy(all[row], rows_->Table(t) + i * layout_.RowFloats(t));
}

HostTrial::HostTrial(const TrialOptions& options)
    : options_(options),
      click_(TrialLearner(options)),
      backend_(ops::MakeReferenceBackend()),
      rows_(click_, *backend_, workers_),
      mechanism_(MakeTrialMechanism(click_.model.space, options)),
      model_(click_.model, *backend_),
      optimizer_(click_.optimizer),
      every_row_(click_.model.space, optimizer_) {
  dense_.parameters = model_.InitialDense(click_.seed);
  dense_.optimizer.assign(optimizer_.DenseStateFloats(dense_.parameters.size()), 0.0f);
}

void HostTrial::AnnounceSelection() {
  noise_.SetKey(KeyOfStep(step_++));
  const mechanism::Recipe recipe = *mechanism_->recipe();
  if (recipe.rows == mechanism::Recipe::Rows::kThreshold)
    noise_.WillSelect(activations_.rows, recipe.selection_grid.stddev);
}

// The noise of Finalize, and of rows without a sum.
void HostTrial::AnnounceUpdate(bool every_row) {
  const RowSpace& space = click_.model.space;
  if (!mechanism_->recipe()->is_private) return;
  const double stddev = mechanism_->recipe()->grid.stddev;
  const auto draw = [&](uint64_t row) {
    noise_.WillDrawRow(row, space.tables()[space.TableOf(row)].dim, space.max_dim(), stddev);
  };
  noise_.WillDrawDense(gradient_.dense.size(), stddev);
  for (const uint64_t row : gradient_.rows) draw(row);
  const std::set<uint64_t> touched(gradient_.rows.begin(), gradient_.rows.end());
  for (uint64_t row = 0; every_row && row < space.rows(); ++row)
    if (!touched.contains(row)) draw(row);
}

std::set<uint64_t> HostTrial::Step(const stream::StepBatch& step) {
  const event::Batch& batch = step.examples;
  indexer_.Index(batch.row, batch.slot_end, batch.slots, step.unit_of, step.units, &activations_);
  const model::Examples examples{.size = batch.size(),
                                 .units = step.units,
                                 .unit_of = step.unit_of,
                                 .label = batch.label,
                                 .dense = batch.dense,
                                 .slot_end = batch.slot_end,
                                 .slot_row = activations_.slot_row,
                                 .block_end = step.sum_block_end,
                                 .apart = true};
  std::vector<float*> rows(activations_.rows.size());
  EXPECT_TRUE(rows_.rows().Gather(activations_.rows, rows));
  logits_.resize(batch.size());
  loss_.resize(batch.size());
  EXPECT_TRUE(model_.Forward(examples, dense_.parameters, rows, logits_));
  EXPECT_TRUE(model_.Backward(examples, dense_.parameters, loss_));
  AnnounceSelection();
  mechanism_->Select({.activations = activations_}, noise_, &selection_);
  EXPECT_TRUE(model_.ClippedSum(examples, activations_, selection_, mechanism_->scale_rule(),
                                &gradient_, &norms_));
  std::vector<float> scales(norms_.squared.size());
  mechanism_->scale_rule().Scales(norms_, scales);
  clipped_ = 0;
  for (size_t u = 0; u < norms_.units && mechanism_->scale_rule().needs_norms(); ++u) {
    bool shorter = false;
    for (size_t g = 0; g < norms_.groups; ++g) shorter |= scales[g * norms_.units + u] < 1;
    clipped_ += shorter;
  }
  AnnounceUpdate(selection_.every_row);
  mechanism_->Finalize(noise_, norms_, &gradient_);
  Apply();
  EXPECT_TRUE(noise_.spent());
  if (selection_.every_row) return {};
  return {gradient_.rows.begin(), gradient_.rows.end()};
}

void HostTrial::Apply() {
  optimizer_.StepDense(gradient_.dense, mechanism_->update_stddev(), dense_.parameters,
                       dense_.optimizer, workers_);
  if (selection_.every_row) {
    EXPECT_TRUE(every_row_.Apply(*mechanism_, noise_, gradient_, rows_.rows()));
    return;
  }
  std::vector<float*> at(gradient_.rows.size());
  EXPECT_TRUE(rows_.rows().Gather(gradient_.rows, at));
  std::vector<train::RowUpdate> updates;
  for (size_t i = 0; i < at.size(); ++i) {
    const std::span<const float> update = gradient_.Row(i);
    updates.push_back({update, {at[i], update.size() + optimizer_.RowStateFloats(update.size())}});
  }
  optimizer_.StepRows(updates);
}

}  // namespace tacit::cuda::testing
