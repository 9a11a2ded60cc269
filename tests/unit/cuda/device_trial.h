#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "unit/cuda/step_trial.h"
#include "unit/cuda/watched_rows.h"

namespace tacit::cuda::testing {

// The device's side of a trial.
class DeviceTrial {
 public:
  DeviceTrial(Device& device, const TrialOptions& options, uint32_t chunk_examples,
              const train::GpuRowOptions& memory = {}, bool overlap = true,
              const ProductOptions& products = {}, const train::GpuStepSizes& planned = {})
      : device_(device),
        click_(TrialLearner(options)),
        on_device_{
            .click = {.model = click_.model, .optimizer = click_.optimizer, .planned = planned},
            .chunk_examples = chunk_examples,
            .round_examples = 8,
            .overlap = overlap,
            .rows = memory,
            .products = products},
        backend_(ops::MakeReferenceBackend()),
        rows_(click_, *backend_, workers_),
        watched_(rows_.rows(), rows_.layout()),
        mechanism_(MakeTrialMechanism(click_.model.space, options)),
        dense_(train::InitialDense(click_, model::Pctr(click_.model, *backend_))),
        committed_(rows_.All()) {
    Open();
  }

  train::StepReport Step(const stream::StepBatch& step) {
    const train::StepReport report = StepOnly(step);
    Settle();
    return report;
  }
  train::StepReport StepOnly(const stream::StepBatch& step) {
    train::StepReport report;
    const Status begun = engine_->Begin(step);
    EXPECT_TRUE(begun) << begun.error().message;
    const Status released = engine_->Release(&report);
    EXPECT_TRUE(released) << released.error().message;
    return report;
  }
  void Settle() {
    const Status settled = engine_->Settle();
    EXPECT_TRUE(settled) << settled.error().message;
  }
  // Makes this the state with which a restart begins.
  void Commit() {
    Settle();
    committed_ = rows_.All();
    dense_ = engine_->dense();
    watched_.TakeDelta();
  }
  // The process ends without a warning, and another begins with what was committed.
  void Crash() {
    engine_.reset();
    rows_.Set(committed_);
    watched_.TakeDelta();
    Open();
  }
  // Rows that went home since the last call.
  std::set<uint64_t> TakeMarked() { return watched_.TakeMarked(); }
  std::set<uint64_t> TakeGathered() { return watched_.TakeGathered(); }
  train::ClickEngine& engine() { return *engine_; }
  TrialRows& rows() { return rows_; }
  const RowSpace& space() const { return click_.model.space; }
  const DeviceClickOptions& on_device() const { return on_device_; }

 private:
  void Open() {
    auto engine = MakeDeviceClickEngine(device_, on_device_, *mechanism_, noise_, watched_, dense_);
    EXPECT_TRUE(engine) << engine.error().message;
    if (engine) engine_ = std::move(*engine);
  }

  Device& device_;
  train::ClickOptions click_;
  const DeviceClickOptions on_device_;
  WorkerPool workers_{WorkerPool::Options{}};
  std::unique_ptr<ops::Backend> backend_;
  TrialRows rows_;
  WatchedRows watched_;
  std::unique_ptr<mechanism::Mechanism> mechanism_;
  store::DenseState dense_;
  std::vector<std::vector<float>> committed_;
  EngineNoise noise_{9};
  std::unique_ptr<train::ClickEngine> engine_;
};

}  // namespace tacit::cuda::testing
