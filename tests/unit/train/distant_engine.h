#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "train/engines/click_engine.h"

namespace tacit::train {

// An engine whose model lies elsewhere, as a GPU's does: what others see is as of the last Settle.
class DistantEngine final : public ClickEngine {
 public:
  struct Record {
    std::vector<uint64_t> announced, begun;  // first offsets of steps
    std::vector<uint64_t> withdrawn;         // announcements, and steps begun at the time
    std::vector<std::vector<float>> after;   // parameters after each step
    bool settling_fails = false, settles_no_numbers = false;
    size_t releasing_fails_at = SIZE_MAX;  // the step, from 0
  };

  DistantEngine(std::unique_ptr<ClickEngine> engine, Record* record)
      : engine_(std::move(engine)), record_(*record), settled_(engine_->dense()) {}

  void Announce(const stream::StepBatch& next) override {
    record_.announced.push_back(next.ranges[0].begin);
  }
  void Withdraw() override {
    record_.withdrawn.push_back(record_.announced.size());
    record_.withdrawn.push_back(record_.begun.size());
  }
  Status Predict(const stream::StepBatch& batch, StepReport* report) override {
    return engine_->Predict(batch, report);
  }
  Status Begin(const stream::StepBatch& step) override {
    record_.begun.push_back(step.ranges[0].begin);
    return engine_->Begin(step);
  }
  Status Release(StepReport* report) override {
    if (record_.after.size() == record_.releasing_fails_at)
      return Fail(ErrorCode::kInternal, "the device is lost");
    TACIT_RETURN_IF_ERROR(engine_->Release(report));
    record_.after.push_back(engine_->dense().parameters);
    return {};
  }
  Status Settle() override {
    if (record_.settling_fails) return Fail(ErrorCode::kIo, "the device is lost");
    settled_ = engine_->dense();
    return {};
  }
  bool settled_numbers() const override { return !record_.settles_no_numbers; }
  const store::DenseState& dense() const override { return settled_; }

 private:
  const std::unique_ptr<ClickEngine> engine_;
  Record& record_;
  store::DenseState settled_;
};

}  // namespace tacit::train
