#pragma once

#include "base/check.h"
#include "noise/forwarded_noise.h"

namespace tacit::lab {

// A noise source that draws from another one while that is lent, for an owner that outlives the
// other source. REQUIRES a loan for every draw.
class LentNoise final : public noise::ForwardedNoise {
 public:
  // Lends `lender` during its lifetime; both must outlive it. One loan at a time.
  class Loan {
   public:
    Loan(LentNoise& to, noise::NoiseSource& lender) : to_(to) { to_.lender_ = &lender; }
    ~Loan() { to_.lender_ = nullptr; }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

   private:
    LentNoise& to_;
  };

 private:
  noise::NoiseSource& to() override {
    TACIT_CHECK(lender_ != nullptr, "no noise is lent");
    return *lender_;
  }

  noise::NoiseSource* lender_ = nullptr;
};

}  // namespace tacit::lab
