#include "train/forward/forward_click_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.h"
#include "mechanism/forward/forward.h"
#include "train/learner/loss_sum.h"

namespace tacit::train {
namespace {

class ForwardClickEngine final : public ClickEngine {
 public:
  ForwardClickEngine(const ClickEngineOptions& options, mechanism::Mechanism& mechanism,
                     noise::NoiseSource& noise, ops::Backend& backend, store::WorkingRows& rows,
                     store::DenseState dense)
      : embeds_(!options.model.space.tables().empty()),
        noised_(*mechanism.representation()),
        noise_(noise),
        backend_(backend),
        rows_(rows),
        model_(options.model, backend),
        optimizer_(options.optimizer),
        dense_(std::move(dense)) {
    TACIT_CHECK(options.model.input_clip == noised_.clip, "scores are of clipped inputs too");
  }

  // The report is of inputs without noise, as answers will be.
  Status Predict(const stream::StepBatch& batch, StepReport* report) override {
    TACIT_RETURN_IF_ERROR(Show(batch));
    *report = Report();
    return {};
  }
  Status Begin(const stream::StepBatch& step) override { return Show(step); }
  Status Release(StepReport* report) override;
  Status Settle() override { return {}; }
  const store::DenseState& dense() const override { return dense_; }

 private:
  Status Show(const stream::StepBatch& step);
  StepReport Report() const {
    return {.logits = logits_,
            .examples = examples_.size,
            .loss_sum = SumOfLosses(loss_),
            .losses = examples_.size,
            .rows_touched = activations_.rows.size()};
  }

  const bool embeds_;
  const mechanism::RepresentationNoise noised_;
  noise::NoiseSource& noise_;
  ops::Backend& backend_;
  store::WorkingRows& rows_;
  model::Pctr model_;
  Optimizer optimizer_;
  store::DenseState dense_;

  // Working memory of a step.
  model::ActivationIndexer indexer_;
  model::Activations activations_;
  model::Examples examples_;
  std::vector<float*> row_pointers_;
  std::vector<float> logits_, loss_, dlogit_;
  std::vector<float> slots_, gradient_;
};

// Predicts from what the records are.
Status ForwardClickEngine::Show(const stream::StepBatch& step) {
  const event::Batch& batch = step.examples;
  const std::span<const uint64_t> rows(batch.row.data(), embeds_ ? batch.row.size() : 0);
  const std::span<const uint32_t> slot_end(batch.slot_end.data(),
                                           embeds_ ? batch.slot_end.size() : 0);
  indexer_.Index(rows, slot_end, embeds_ ? batch.slots : 0, step.unit_of, step.units,
                 &activations_);
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
  loss_.resize(batch.size());
  dlogit_.resize(batch.size());
  TACIT_RETURN_IF_ERROR(model_.Forward(examples_, dense_.parameters, row_pointers_, logits_));
  backend_.LogisticLoss(logits_, examples_.label, loss_, dlogit_);
  return {};
}

// All code below this point sees the features through `slots_`, after the noise.
Status ForwardClickEngine::Release(StepReport* report) {
  const size_t width = model_.input_width();
  const auto batch = static_cast<size_t>(std::ceil(noised_.expected_batch));
  const size_t filled = std::max<size_t>(1, (examples_.size + batch - 1) / batch);
  const size_t slots = filled * batch;
  slots_.assign(slots * width, 0.0f);
  model_.Represent(examples_, row_pointers_, {slots_.data(), examples_.size, width});
  noised_.Add(noise_, width, slots_);
  *report = Report();
  gradient_.resize(dense_.parameters.size());
  TACIT_RETURN_IF_ERROR(model_.LearnFrom({slots_.data(), slots, width}, examples_.label,
                                         dense_.parameters, gradient_));
  const auto factor = static_cast<float>(1 / noised_.expected_batch);
  for (float& x : gradient_) x *= factor;
  optimizer_.StepDense(gradient_, 0, dense_.parameters, dense_.optimizer, backend_.workers());
  return {};
}

}  // namespace

std::unique_ptr<ClickEngine> MakeForwardClickEngine(const ClickEngineOptions& options,
                                                    mechanism::Mechanism& mechanism,
                                                    noise::NoiseSource& noise,
                                                    ops::Backend& backend, store::WorkingRows& rows,
                                                    store::DenseState dense) {
  TACIT_CHECK(mechanism.representation() != nullptr, "a mechanism that noises gradients");
  return std::make_unique<ForwardClickEngine>(options, mechanism, noise, backend, rows,
                                              std::move(dense));
}

}  // namespace tacit::train
