#pragma once

#include <memory>
#include <utility>

#include "train/learner/learner.h"

namespace tacit::tape {

// A learner whose calls go through to another; a test overrides one of them.
class ForwardingLearner : public train::Learner {
 public:
  explicit ForwardingLearner(std::unique_ptr<Learner> inner)
      : Learner(inner->id(), inner->index()), inner_(std::move(inner)) {}

  privacy::Charge charge() const override { return inner_->charge(); }
  std::optional<privacy::Charge> opening_charge() const override {
    return inner_->opening_charge();
  }
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        train::StepReport* report) override {
    return inner_->TakeStep(step, abandon, report);
  }
  Status Preview(const stream::StepBatch& batch, train::StepReport* report) override {
    return inner_->Preview(batch, report);
  }
  Result<bool> GivesNumbers() override { return inner_->GivesNumbers(); }
  Status Settle() override { return inner_->Settle(); }
  std::shared_ptr<const store::DenseState> CopyDense() const override {
    return inner_->CopyDense();
  }
  std::shared_ptr<const std::string> TakeReleased() override { return inner_->TakeReleased(); }
  std::optional<store::HistoryCommit> TakeHistories() override { return inner_->TakeHistories(); }
  Status LoadReleased(std::string_view bytes) override { return inner_->LoadReleased(bytes); }
  void Rekey() override { inner_->Rekey(); }

 protected:
  Learner& inner() { return *inner_; }
  const Learner& inner() const { return *inner_; }

 private:
  const std::unique_ptr<Learner> inner_;
};

}  // namespace tacit::tape
