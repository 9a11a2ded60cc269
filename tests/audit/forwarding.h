#pragma once

#include <memory>
#include <span>
#include <utility>

#include "mechanism/mechanism.h"

namespace tacit::audit {

// A right mechanism whose calls go through another, which may spoil one of them. Here: none.
class Forwarding : public mechanism::Mechanism {
 public:
  explicit Forwarding(std::unique_ptr<mechanism::Mechanism> inner) : inner_(std::move(inner)) {}

  double row_score_clip() const override { return inner_->row_score_clip(); }
  void Select(const mechanism::StepRows& rows, noise::NoiseSource& noise,
              model::RowSelection* selection) override {
    inner_->Select(rows, noise, selection);
  }
  const model::ScaleRule& scale_rule() const override { return inner_->scale_rule(); }
  void Finalize(noise::NoiseSource& noise, const model::GroupNorms& norms,
                model::StepGradient* sum) override {
    inner_->Finalize(noise, norms, sum);
  }
  void FillUntouched(noise::NoiseSource& noise, std::span<float> out) override {
    inner_->FillUntouched(noise, out);
  }
  const privacy::Charge& charge() const override { return inner_->charge(); }
  double ExpectedExtraRows() const override { return inner_->ExpectedExtraRows(); }

 protected:
  const std::unique_ptr<mechanism::Mechanism> inner_;
};

}  // namespace tacit::audit
