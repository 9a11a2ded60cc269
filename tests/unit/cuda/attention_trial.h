#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "cuda/kernels/sequence/attention.h"
#include "cuda/kernels/sequence/attention_tiles.h"
#include "ops/bf16.h"
#include "unit/cuda/trial_device.h"

// Attention with factors of bf16 beside loops in double, whose factors are not rounded except for
// the inputs and, for corrections, their squares.
namespace tacit::cuda::testing {

// Under the thread sanitizer each thread of a kernel is dear, and one order shows a race.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadsAreDear = true;
#else
inline constexpr bool kThreadsAreDear = false;
#endif

// Row-major numbers that bf16 holds.
struct AttentionNumbers {
  std::vector<float> qkv, grad, variance;  // of keys and of values, where attention is corrected
};
// Results of both passes; of a device, or of loops, with how far rounding may move each of them.
struct AttentionResults {
  std::vector<double> out, qkv_grad, variance;
  bool operator==(const AttentionResults&) const = default;
};

struct AttentionCase {
  std::vector<uint32_t> lengths;  // of crops
  uint32_t heads = 1, head_width = 8;
  bool corrected = false;

  // Some corrections are at their most.
  float factor() const { return 0.5f / static_cast<float>(head_width); }
  static constexpr float kMost = 0.6f;

  uint32_t width() const { return heads * head_width; }
  std::vector<uint32_t> crop_ends() const {
    std::vector<uint32_t> ends(lengths.size());
    std::partial_sum(lengths.begin(), lengths.end(), ends.begin());
    return ends;
  }
  uint32_t rows() const { return crop_ends().back(); }
};

inline AttentionNumbers RandomAttention(const AttentionCase& of, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  const auto draw = [&](size_t n) {
    std::vector<float> numbers(n);
    for (float& x : numbers) x = ops::FromBf16(ops::ToBf16(normal(random)));
    return numbers;
  };
  const size_t numbers = size_t{of.width()} * of.rows();
  AttentionNumbers drawn{draw(3 * numbers), draw(numbers), draw(numbers)};
  for (float& x : drawn.variance) x = std::abs(x);
  return drawn;
}

// Plain loops over one head of one crop. A share or its gradient is rounded once as a factor, by a
// relative 2^-8 at most, and all else is f32: `bound` becomes the most that this moves each number.
class AttentionLoops {
 public:
  AttentionLoops(const AttentionCase& of, const AttentionNumbers& numbers)
      : of_(of), numbers_(numbers), width_(of.width()) {
    want_.out.resize(size_t{width_} * of.rows());
    want_.qkv_grad.resize(3 * want_.out.size());
    if (of.corrected) want_.variance.resize(want_.out.size());
    bound_ = want_;
    uint32_t first = 0;
    for (const uint32_t rows : of.lengths) {
      for (uint32_t head = 0; head < of.heads; ++head) TakeHead(first, rows, head * of.head_width);
      first += rows;
    }
  }
  // The largest distance of a result, as a share of the most that rounding explains.
  double Distance(const AttentionResults& got) const {
    return std::max({Distance(got.out, want_.out, bound_.out),
                     Distance(got.qkv_grad, want_.qkv_grad, bound_.qkv_grad),
                     Distance(got.variance, want_.variance, bound_.variance)});
  }

 private:
  static constexpr double kFactor = 0x1p-8, kSum = 0x1p-18;

  static double Distance(const std::vector<double>& got, const std::vector<double>& want,
                         const std::vector<double>& bound) {
    double most = got.size() == want.size() ? 0 : INFINITY;
    for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
      const double distance = std::abs(got[i] - want[i]) / (bound[i] + 1e-6);
      most = distance <= most ? most : std::isnan(distance) ? INFINITY : distance;
    }
    return most;
  }
  size_t At(uint32_t which, uint32_t row, uint32_t c) const {
    return size_t{row} * 3 * width_ + which * width_ + c;
  }
  void TakeHead(uint32_t first, uint32_t rows, uint32_t column) {
    for (uint32_t q = first; q < first + rows; ++q) TakeQuery(first, q, column);
  }
  void TakeQuery(uint32_t first, uint32_t q, uint32_t column) {
    const auto& qkv = numbers_.qkv;
    const auto& grad = numbers_.grad;
    const uint32_t keys = q - first + 1, d = of_.head_width;
    const double scale = 1 / std::sqrt(double{1} * d);
    std::vector<double> share(keys), of_share(keys, 0.0);
    double most = -INFINITY, sum = 0, mean = 0, size = 0;
    for (uint32_t k = 0; k < keys; ++k) {
      for (uint32_t c = column; c < column + d; ++c) {
        share[k] += scale * qkv[At(0, q, c)] * qkv[At(1, first + k, c)];
        of_share[k] += double{grad[size_t{q} * width_ + c]} * qkv[At(2, first + k, c)];
      }
      if (of_.corrected) share[k] -= Penalty(q, first + k, column);
      most = std::max(most, share[k]);
    }
    for (double& p : share) sum += p = std::exp(p - most);
    for (uint32_t k = 0; k < keys; ++k) {
      share[k] /= sum;
      mean += share[k] * of_share[k];
      size += share[k] * std::abs(of_share[k]);
    }
    for (uint32_t k = 0; k < keys; ++k) {
      const double logit = scale * share[k] * (of_share[k] - mean);
      const double error =
          kFactor * std::abs(logit) + kSum * scale * share[k] * (std::abs(of_share[k]) + size);
      const double of_p = (kFactor + kSum) * share[k];
      for (uint32_t c = column; c < column + d; ++c) {
        const size_t out = size_t{q} * width_ + c;
        Add(share[k], of_p, qkv[At(2, first + k, c)], &want_.out[out], &bound_.out[out]);
        if (of_.corrected)
          Add(share[k] * share[k], of_p * share[k],
              numbers_.variance[size_t{first + k} * width_ + c], &want_.variance[out],
              &bound_.variance[out]);
        AddGradient(logit, error, qkv[At(1, first + k, c)], At(0, q, c));
        AddGradient(logit, error, qkv[At(0, q, c)], At(1, first + k, c));
        AddGradient(share[k], of_p, grad[out], At(2, first + k, c));
      }
    }
  }
  double Penalty(uint32_t q, uint32_t k, uint32_t column) const {
    double sum = 0;
    for (uint32_t c = column; c < column + of_.head_width; ++c) {
      const float x = numbers_.qkv[At(0, q, c)];
      sum += double{ops::FromBf16(ops::ToBf16(x * x))} * numbers_.variance[size_t{k} * width_ + c];
    }
    return std::min<double>(of_.factor() * sum, AttentionCase::kMost);
  }
  static void Add(double factor, double error, double other, double* to, double* bound) {
    *to += factor * other;
    *bound += error * std::abs(other);
  }
  void AddGradient(double factor, double error, double other, size_t at) {
    Add(factor, error, other, &want_.qkv_grad[at], &bound_.qkv_grad[at]);
  }

  const AttentionCase of_;
  const AttentionNumbers& numbers_;
  const uint32_t width_;
  AttentionResults want_, bound_;
};

// Both passes on the device.
class AttentionTrial : public OnDevice {
 protected:
  static AttentionShape ShapeOf(const AttentionCase& of, DeviceSpan<const uint32_t> crop_end) {
    return {.crop_end = crop_end,
            .longest = *std::max_element(of.lengths.begin(), of.lengths.end()),
            .heads = of.heads,
            .rounds = true,
            .corrected = of.corrected};
  }
  AttentionResults Run(const AttentionCase& of, const AttentionNumbers& numbers) {
    const auto crop_end = ToDevice(of.crop_ends());
    const AttentionShape shape = ShapeOf(of, crop_end.span());
    const uint32_t rows = of.rows(), width = of.width();
    const auto qkv = ToDevice(numbers.qkv), grad = ToDevice(numbers.grad);
    // Numbers that are not written show.
    const auto out = ToDevice(std::vector<float>(size_t{rows} * width, NAN));
    const auto of_out = ToDevice(std::vector<float>(of.corrected ? out.size() : 0, NAN));
    const auto variance = ToDevice(numbers.variance);
    const auto qkv_grad = ToDevice(std::vector<float>(size_t{rows} * 3 * width, NAN));
    const uint32_t kept_cols = KeptNumbers(shape, width), work_cols = WorkNumbers(shape, width);
    const auto kept = Make<float>(size_t{of.heads} * rows * kept_cols);
    const auto work = Make<float>(size_t{of.heads} * rows * work_cols);
    const auto view = [&](const Buffer<float>& of_all, uint32_t all, uint32_t cols) {
      return DeviceMatrix<float>(of_all.span().data, all, cols, cols);
    };
    const auto on_qkv = view(qkv, rows, 3 * width);
    const auto on_kept = view(kept, of.heads * rows, kept_cols);
    AttentionCorrection correction;
    if (of.corrected) correction = {view(variance, rows, width), of.factor(), AttentionCase::kMost};
    EXPECT_TRUE(Attend(*stream_, shape, on_qkv, correction, on_kept, view(out, rows, width)));
    if (of.corrected) {
      EXPECT_TRUE(AttendVariance(*stream_, shape, on_kept, view(variance, rows, width),
                                 view(of_out, rows, width)));
    }
    EXPECT_TRUE(AttendBackward(*stream_, shape, on_qkv, on_kept, view(grad, rows, width),
                               view(work, of.heads * rows, work_cols),
                               view(qkv_grad, rows, 3 * width)));
    return {Wide(out), Wide(qkv_grad), Wide(of_out)};
  }
  // Through matrices of bf16, whose rows have gaps. REQUIRES a case without corrections.
  AttentionResults RunRounded(const AttentionCase& of, const AttentionNumbers& numbers) {
    const auto crop_end = ToDevice(of.crop_ends());
    const AttentionShape shape = ShapeOf(of, crop_end.span());
    const uint32_t rows = of.rows(), width = of.width(), gap = 8 - width % 8;
    const auto halves = [&](const std::vector<float>& from, uint32_t cols) {
      std::vector<uint16_t> to(size_t{rows} * (cols + gap), kNoHalf);
      for (size_t i = 0; i < from.size(); ++i)
        to[i / cols * (cols + gap) + i % cols] = ops::ToBf16(from[i]);
      return ToDevice(to);
    };
    const auto qkv = halves(numbers.qkv, 3 * width), grad = halves(numbers.grad, width),
               out = halves({}, width), qkv_grad = halves({}, 3 * width);
    const auto view = [&](const Buffer<uint16_t>& of_all, uint32_t cols) {
      return DeviceMatrix<uint16_t>(of_all.span().data, rows, cols, cols + gap);
    };
    const auto kept = Make<float>(size_t{of.heads} * rows * 2);
    const auto work = Make<float>(size_t{of.heads} * rows);
    const DeviceMatrix<float> on_kept(kept.span().data, of.heads * rows, 2, 2),
        on_work(work.span().data, of.heads * rows, 1, 1);
    EXPECT_TRUE(AttendRounded(*stream_, shape, view(qkv, 3 * width), on_kept, view(out, width)));
    EXPECT_TRUE(AttendBackwardRounded(*stream_, shape, view(qkv, 3 * width), on_kept,
                                      view(grad, width), on_work, view(qkv_grad, 3 * width)));
    return {Wide(out, width, gap), Wide(qkv_grad, 3 * width, gap), {}};
  }

 private:
  static constexpr uint16_t kNoHalf = 0x7fff;

  std::vector<double> Wide(const Buffer<float>& buffer) {
    const auto numbers = FromDevice(buffer);
    return {numbers.begin(), numbers.end()};
  }
  std::vector<double> Wide(const Buffer<uint16_t>& buffer, uint32_t cols, uint32_t gap) {
    const auto numbers = FromDevice(buffer);
    std::vector<double> wide;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (i % (cols + gap) < cols)
        wide.push_back(ops::FromBf16(numbers[i]));
      else
        EXPECT_EQ(numbers[i], kNoHalf) << "a gap is written";
    }
    return wide;
  }
};

}  // namespace tacit::cuda::testing
