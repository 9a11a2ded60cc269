#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "noise/noise.h"

namespace tacit::app {

// Another's noise, lent whenever it is needed: for what lives longer than the source that it is to
// draw from. REQUIRES a loan whenever it is drawn from.
class LentNoise final : public noise::NoiseSource {
 public:
  // Lent while this lives; both must outlive it. One at a time.
  class Loan {
   public:
    Loan(LentNoise& to, noise::NoiseSource& lender) : to_(to) { to_.lender_ = &lender; }
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
  uint64_t GeometricSkip(double p) override { return lender().GeometricSkip(p); }
  double GaussianTail(double lower) override { return lender().GaussianTail(lower); }
  void ForParts(size_t n, const Part& part) override { lender().ForParts(n, part); }
  void Rekey() override { lender().Rekey(); }

 private:
  noise::NoiseSource& lender() {
    TACIT_CHECK(lender_ != nullptr, "nobody lent any noise");
    return *lender_;
  }

  noise::NoiseSource* lender_ = nullptr;
};

}  // namespace tacit::app
