#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "noise/noise.h"

namespace tacit::noise {

// A noise source that draws from another one while that is lent, for an owner that outlives the
// other source. REQUIRES a loan for every draw.
class LentNoise final : public NoiseSource {
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

  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    lender().AddGridGaussian(stddev, values);
  }
  void FillGridGaussian(double stddev, double factor, std::span<float> out) override {
    lender().FillGridGaussian(stddev, factor, out);
  }
  void AddGaussian(double stddev, std::span<float> values) override {
    lender().AddGaussian(stddev, values);
  }
  void FillGaussian(std::span<double> out) override { lender().FillGaussian(out); }
  double Uniform() override { return lender().Uniform(); }
  bool Bernoulli(double p) override { return lender().Bernoulli(p); }
  double Gumbel() override { return lender().Gumbel(); }
  void FillKey(std::span<uint8_t, 32> key) override { lender().FillKey(key); }
  uint64_t GeometricSkip(double p) override { return lender().GeometricSkip(p); }
  double GaussianTail(double lower) override { return lender().GaussianTail(lower); }
  void ForParts(size_t n, const Part& part) override { lender().ForParts(n, part); }
  void Rekey() override { lender().Rekey(); }

 private:
  NoiseSource& lender() {
    TACIT_CHECK(lender_ != nullptr, "no noise is lent");
    return *lender_;
  }

  NoiseSource* lender_ = nullptr;
};

}  // namespace tacit::noise
