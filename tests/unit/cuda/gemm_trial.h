#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "cuda/kernels/gemm/gemm.h"
#include "ops/bf16.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {

// One product of bf16 matrices on the device, and what it must be. Between the rows of both factors
// lie numbers that are none.
class ProductTrial {
 public:
  ProductTrial(uint32_t m, uint32_t n, uint32_t k, Form form_a, Form form_b,
               std::mt19937_64& random)
      : m_(m),
        n_(n),
        a_(form_a, m, k, random),
        b_(form_b == Form::kAsIs ? Form::kTransposed : Form::kAsIs, n, k, random),
        form_a_(form_a),
        form_b_(form_b),
        before_(m * Stride(n)),
        product_(m * n),
        size_(m * n) {
    std::normal_distribution<float> normal;
    for (float& x : before_) x = normal(random);
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j) {
        double sum = 0, size = 0;
        for (size_t x = 0; x < k; ++x) {
          const double one = a_.plain[i * k + x] * b_.plain[j * k + x];
          sum += one;
          size += std::abs(one);
        }
        product_[i * n + j] = sum;
        size_[i * n + j] = size;
      }
  }

  // A factor as the device has it, and its rows as products see them, k beside k.
  struct Factor {
    Factor(Form form, uint32_t rows, uint32_t k, std::mt19937_64& random)
        : rows(form == Form::kAsIs ? rows : k),
          cols(form == Form::kAsIs ? k : rows),
          numbers(this->rows * Stride(cols), kNone),
          plain(size_t{rows} * k) {
      std::normal_distribution<float> normal;
      for (size_t r = 0; r < this->rows; ++r)
        for (size_t c = 0; c < cols; ++c) {
          const uint16_t x = ops::ToBf16(normal(random));
          numbers[r * Stride(cols) + c] = x;
          plain[form == Form::kAsIs ? r * k + c : c * k + r] = ops::FromBf16(x);
        }
    }
    DeviceMatrix<const uint16_t> On(const Buffer<uint16_t>& buffer) const {
      return {buffer.span().data, rows, cols, Stride(cols)};
    }
    uint32_t rows, cols;
    std::vector<uint16_t> numbers;
    std::vector<double> plain;
  };

  static size_t Stride(size_t cols) { return (cols + 7) / 8 * 8 + 8; }
  const Factor& a() const { return a_; }
  const Factor& b() const { return b_; }
  Form form_a() const { return form_a_; }
  Form form_b() const { return form_b_; }
  uint32_t m() const { return m_; }
  uint32_t n() const { return n_; }
  const std::vector<float>& before() const { return before_; }

  // Holds c, as it came from the device, against the loops; its stride is Stride(n).
  void Check(float beta, const std::vector<float>& c) const {
    for (size_t i = 0; i < m_; ++i)
      for (size_t j = 0; j < Stride(n_); ++j) {
        const size_t at = i * Stride(n_) + j;
        if (j >= n_) {
          ASSERT_EQ(c[at], before_[at]) << "wrote behind row " << i;
          continue;
        }
        const double first = beta == 0 ? 0 : before_[at];
        ASSERT_NEAR(c[at], first + product_[i * n_ + j],
                    2e-6 * (std::abs(first) + size_[i * n_ + j]) + 1e-30)
            << i << ", " << j;
      }
  }

 private:
  static constexpr uint16_t kNone = 0x7fff;

  const uint32_t m_, n_;
  const Factor a_, b_;
  const Form form_a_, form_b_;
  std::vector<float> before_;
  std::vector<double> product_, size_;
};

}  // namespace tacit::cuda::testing
