#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "cuda/kernels/dense/pointwise.h"
#include "cuda/kernels/gemm/gemm.h"
#include "ops/bf16.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {

// A product of bf16 matrices with each of its ends, as the device leaves the memory: the end in the
// product's own kernel, or the product and the loop one after the other.
class EndsTrial {
 public:
  struct Shape {
    uint32_t m = 0, n = 0, k = 0;
    uint32_t more = 1;  // columns of what is activated, behind those of the product
    uint32_t gap = 0;   // numbers between the rows of results
  };
  // All results' numbers as bits, for some are none.
  struct Ends {
    std::vector<uint16_t> activated, masked, biased, rounded;
    std::vector<uint32_t> logits;
    // The squares of rows, of what is activated and of what is masked; none where k is 0.
    std::vector<double> activated_squares, masked_squares;
    friend bool operator==(const Ends& a, const Ends& b) {
      return a.activated == b.activated && a.masked == b.masked && a.biased == b.biased &&
             a.rounded == b.rounded && a.logits == b.logits &&
             Close(a.activated_squares, b.activated_squares) &&
             Close(a.masked_squares, b.masked_squares);
    }
  };
  // Says whether these are the same sums, added up in any order.
  static bool Close(const std::vector<double>& a, const std::vector<double>& b) {
    return std::ranges::equal(a, b, [](double x, double y) {
      return std::isnan(x) ? std::isnan(y) : std::abs(x - y) <= 1e-14 * y;
    });
  }

  EndsTrial(Stream& stream, const Shape& shape, std::mt19937_64& random)
      : stream_(stream), shape_(shape) {
    const auto [m, n, k, more, gap] = shape;
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<uint16_t>* x, size_t rows, size_t cols) {
      x->assign(rows * Stride(cols), kNone);
      for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < cols; ++c) (*x)[r * Stride(cols) + c] = ops::ToBf16(normal(random));
    };
    fill(&a_, m, k);
    fill(&b_, k, n);
    fill(&turned_, n, k);
    fill(&activation_, m, n);
    // Numbers that are none must stay so, and 0 is not active.
    if (m > 4 && k > 0) a_[3 * Stride(k)] = kNone;
    if (m > 2) activation_[2 * Stride(n)] = kNone;
    for (size_t i = 0; i < activation_.size(); i += 5)
      if (activation_[i] != kNone) activation_[i] = 0;
    for (uint32_t i = 0; i < n; ++i) bias_.push_back(normal(random));
  }

  Ends Fused(const GemmPlan& plan) { return Make(plan, true); }
  Ends Separate(const GemmPlan& plan) { return Make(plan, false); }

 private:
  static constexpr uint16_t kNone = 0x7fff;
  static size_t Stride(size_t cols) { return (cols + 7) / 8 * 8 + 8; }

  template <class T>
  Buffer<T> ToDevice(const std::vector<T>& values) {
    auto buffer = Buffer<T>::Make(stream_.device(), values.size());
    EXPECT_TRUE(buffer);
    EXPECT_TRUE(stream_.Upload<T>(values, buffer->span()));
    EXPECT_TRUE(stream_.Synchronize());
    return std::move(*buffer);
  }
  template <class T, class U>
  std::vector<U> BitsOf(const Buffer<T>& buffer) {
    std::vector<T> values(buffer.size());
    EXPECT_TRUE(stream_.Download(buffer.span(), std::span<T>(values)));
    EXPECT_TRUE(stream_.Synchronize());
    std::vector<U> bits;
    for (const T& value : values) bits.push_back(std::bit_cast<U>(value));
    return bits;
  }

  Ends Make(const GemmPlan& plan, bool fused) {
    const auto [m, n, k, more, gap] = shape_;
    const auto a = ToDevice(a_), b = ToDevice(b_), turned = ToDevice(turned_),
               active = ToDevice(activation_);
    const auto bias = ToDevice(bias_);
    const DeviceMatrix<const uint16_t> of_a(a.span().data, m, k, Stride(k)),
        of_b(b.span().data, k, n, Stride(n)), of_turned(turned.span().data, n, k, Stride(k)),
        of_active(active.span().data, m, n, Stride(n));
    const size_t wide = n + more + gap, narrow = n + gap;
    const auto activated = ToDevice(std::vector<uint16_t>(m * wide, 0x1234));
    const auto masked = ToDevice(std::vector<uint16_t>(m * narrow, 0x1234));
    const auto logits = ToDevice(std::vector<float>(m * narrow, 7));
    const DeviceMatrix<uint16_t> to_activated(activated.span().data, m, n + more, wide),
        to_masked(masked.span().data, m, n, narrow);
    const DeviceMatrix<float> to_logits(logits.span().data, m, n, narrow);
    const auto biased = ToDevice(std::vector<uint16_t>(m * narrow, 0x1234));
    const auto rounded = ToDevice(std::vector<uint16_t>(m * narrow, 0x1234));
    const DeviceMatrix<uint16_t> to_biased(biased.span().data, m, n, narrow),
        to_rounded(rounded.span().data, m, n, narrow);
    const uint32_t parts = k > 0 ? SquaresParts(plan, n) : 0;
    const auto of_activated = ToDevice(std::vector<double>(parts * m, -1)),
               of_masked = ToDevice(std::vector<double>(parts * m, -1));
    const RowSquares activated_squares(of_activated.span().data, parts, m, m),
        masked_squares(of_masked.span().data, parts, m, m);
    if (fused) {
      EXPECT_TRUE(Gemm16Activate(stream_, of_a, of_b, bias.span(), to_activated, plan,
                                 parts > 0 ? activated_squares : RowSquares()));
      EXPECT_TRUE(Gemm16AddBias(stream_, of_a, of_b, bias.span(), to_logits, plan));
      EXPECT_TRUE(Gemm16AddBias(stream_, of_a, of_b, bias.span(), to_biased, plan));
      EXPECT_TRUE(Gemm16Round(stream_, of_a, of_turned, to_rounded, plan));
      EXPECT_TRUE(Gemm16ReluBackward(stream_, of_a, of_turned, of_active, to_masked, plan,
                                     parts > 0 ? masked_squares : RowSquares()));
    } else {
      const auto sums = ToDevice(std::vector<float>(m * n));
      const DeviceMatrix<float> to(sums.span().data, m, n, n);
      EXPECT_TRUE(Gemm16(stream_, Form::kAsIs, of_a, Form::kAsIs, of_b, 0, to, plan, {}));
      EXPECT_TRUE(AddBias<uint16_t>(stream_, to, bias.span(), true, to_activated));
      EXPECT_TRUE(AddBias<float>(stream_, to, bias.span(), false, to_logits));
      EXPECT_TRUE(AddBias<uint16_t>(stream_, to, bias.span(), false, to_biased));
      EXPECT_TRUE(
          Gemm16(stream_, Form::kAsIs, of_a, Form::kTransposed, of_turned, 0, to, plan, {}));
      EXPECT_TRUE(ReluBackward<uint16_t>(stream_, of_active, to, to_masked));
      EXPECT_TRUE(AddBias<uint16_t>(stream_, to, {}, false, to_rounded));
    }
    Ends ends{.activated = BitsOf<uint16_t, uint16_t>(activated),
              .masked = BitsOf<uint16_t, uint16_t>(masked),
              .biased = BitsOf<uint16_t, uint16_t>(biased),
              .rounded = BitsOf<uint16_t, uint16_t>(rounded),
              .logits = BitsOf<float, uint32_t>(logits),
              .activated_squares = {},
              .masked_squares = {}};
    if (parts > 0) {
      ends.activated_squares =
          fused ? Together(of_activated, parts) : SquaresOf(ends.activated, n + more, wide);
      ends.masked_squares = fused ? Together(of_masked, parts) : SquaresOf(ends.masked, n, narrow);
    }
    return ends;
  }
  // Squares of rows, from their parts; and from their numbers.
  std::vector<double> Together(const Buffer<double>& squares, uint32_t parts) {
    const auto of_parts = BitsOf<double, double>(squares);
    std::vector<double> sums(shape_.m, 0);
    for (size_t i = 0; i < of_parts.size(); ++i) sums[i % shape_.m] += of_parts[i];
    EXPECT_EQ(of_parts.size(), size_t{parts} * shape_.m);
    return sums;
  }
  std::vector<double> SquaresOf(const std::vector<uint16_t>& x, size_t cols, size_t stride) const {
    std::vector<double> sums(shape_.m, 0);
    for (size_t r = 0; r < shape_.m; ++r)
      for (size_t c = 0; c < cols; ++c) {
        const double number{ops::FromBf16(x[r * stride + c])};
        sums[r] += number * number;
      }
    return sums;
  }

  Stream& stream_;
  const Shape shape_;
  std::vector<uint16_t> a_, b_, turned_, activation_;
  std::vector<float> bias_;
};

}  // namespace tacit::cuda::testing
