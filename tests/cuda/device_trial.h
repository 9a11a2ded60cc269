#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "cuda/step_trial.h"

namespace tacit::cuda::testing {

// The device's side of a trial.
class DeviceTrial {
 public:
  DeviceTrial(Device& device, const TrialOptions& options, uint32_t chunk_examples)
      : click_(TrialLearner(options)),
        backend_(ops::MakeReferenceBackend()),
        rows_(click_, *backend_, workers_),
        mechanism_(MakeTrialMechanism(click_.model.space, options)) {
    const store::DenseState dense =
        train::InitialDense(click_, model::Pctr(click_.model, *backend_));
    auto engine = MakeDeviceClickEngine(
        device, {.click = {click_.model, click_.optimizer}, .chunk_examples = chunk_examples},
        *mechanism_, noise_, rows_.rows(), dense);
    EXPECT_TRUE(engine) << engine.error().message;
    if (engine) engine_ = std::move(*engine);
  }

  train::StepReport Step(const stream::StepBatch& step) {
    train::StepReport report;
    const Status begun = engine_->Begin(step);
    EXPECT_TRUE(begun) << begun.error().message;
    const Status released = engine_->Release(&report);
    EXPECT_TRUE(released) << released.error().message;
    const Status settled = engine_->Settle();
    EXPECT_TRUE(settled) << settled.error().message;
    return report;
  }
  train::ClickEngine& engine() { return *engine_; }
  TrialRows& rows() { return rows_; }
  const RowSpace& space() const { return click_.model.space; }

 private:
  train::ClickOptions click_;
  WorkerPool workers_{WorkerPool::Options{}};
  std::unique_ptr<ops::Backend> backend_;
  TrialRows rows_;
  std::unique_ptr<mechanism::Mechanism> mechanism_;
  EngineNoise noise_{9};
  std::unique_ptr<train::ClickEngine> engine_;
};

}  // namespace tacit::cuda::testing
