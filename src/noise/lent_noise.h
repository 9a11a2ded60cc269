#pragma once

#include "base/check.h"
#include "noise/forwarded_noise.h"

namespace tacit::noise {

// A noise source that draws from another one while that is lent, for an owner that outlives the
// other source. REQUIRES a loan for every draw.
class LentNoise final : public ForwardedNoise {
 public:
  // Lends `lender` during its lifetime; both must outlive it. One loan at a time.
  class Loan {
   public:
    Loan(LentNoise& to, NoiseSource& lender) : to_(to) { to_.lender_ = &lender; }
    ~Loan() { to_.lender_ = nullptr; }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

   private:
    LentNoise& to_;
  };

 private:
  NoiseSource& to() override {
    TACIT_CHECK(lender_ != nullptr, "no noise is lent");
    return *lender_;
  }

  NoiseSource* lender_ = nullptr;
};

}  // namespace tacit::noise
