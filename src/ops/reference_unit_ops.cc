// UnitOps by the definitions in unit_ops.h, in double.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "ops/bf16.h"
#include "ops/shapes.h"
#include "ops/unit_ops.h"

namespace tacit::ops {
namespace {

float At(Transpose t, ConstMatrix x, size_t row, size_t col) {
  return t == Transpose::kYes ? x.Row(col)[row] : x.Row(row)[col];
}

class ReferenceUnitOps final : public UnitOps {
 public:
  explicit ReferenceUnitOps(Precision precision) : precision_(precision) {}
  using UnitOps::Gemm;
  void RoundAsFactor(std::span<float> x) override {
    for (float& v : x) v = static_cast<float>(Rounded(v));
  }

  Status Gemm(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
              Matrix c) override {
    const GemmShape s = ShapeOf(ta, a, tb, b, c);
    for (size_t i = 0; i < s.m; ++i)
      for (size_t j = 0; j < s.n; ++j) {
        double sum = beta == 0 ? 0.0 : c.Row(i)[j];
        for (size_t k = 0; k < s.k; ++k) sum += Rounded(At(ta, a, i, k)) * Rounded(At(tb, b, k, j));
        c.Row(i)[j] = static_cast<float>(sum);
      }
    return {};
  }
  void AddBias(Matrix x, std::span<const float> bias, bool relu) override {
    for (size_t r = 0; r < x.rows; ++r)
      for (size_t c = 0; c < x.cols; ++c) {
        const float y = bias.empty() ? x.Row(r)[c] : x.Row(r)[c] + bias[c];
        x.Row(r)[c] = relu && y < 0 ? 0.0f : y;
      }
  }
  void ReluBackward(ConstMatrix activation, Matrix grad) override {
    for (size_t r = 0; r < grad.rows; ++r)
      for (size_t c = 0; c < grad.cols; ++c)
        if (activation.Row(r)[c] <= 0) grad.Row(r)[c] = 0;
  }
  void Add(ConstMatrix from, Matrix to) override {
    for (size_t r = 0; r < to.rows; ++r)
      for (size_t c = 0; c < to.cols; ++c) to.Row(r)[c] += from.Row(r)[c];
  }
  void ColumnSums(ConstMatrix x, std::span<float> out) override {
    for (size_t r = 0; r < x.rows; ++r)
      for (size_t c = 0; c < x.cols; ++c) out[c] += x.Row(r)[c];
  }

  void LayerNorm(ConstMatrix x, std::span<const float> gain, std::span<const float> bias,
                 float epsilon, Matrix normal, std::span<float> inverse, Matrix out) override {
    const auto n = static_cast<double>(x.cols);
    for (size_t r = 0; r < x.rows; ++r) {
      double mean = 0, variance = 0;
      for (size_t c = 0; c < x.cols; ++c) mean += x.Row(r)[c] / n;
      for (size_t c = 0; c < x.cols; ++c) variance += std::pow(x.Row(r)[c] - mean, 2) / n;
      const double factor = 1 / std::sqrt(variance + epsilon);
      inverse[r] = static_cast<float>(factor);
      for (size_t c = 0; c < x.cols; ++c) {
        const double y = (x.Row(r)[c] - mean) * factor;
        normal.Row(r)[c] = static_cast<float>(y);
        out.Row(r)[c] = static_cast<float>(y * gain[c] + bias[c]);
      }
    }
  }

  void LayerNormBackward(ConstMatrix normal, std::span<const float> inverse,
                         std::span<const float> gain, Matrix grad, std::span<float> gain_grad,
                         std::span<float> bias_grad) override {
    const auto n = static_cast<double>(grad.cols);
    for (size_t r = 0; r < grad.rows; ++r) {
      double sum = 0, projection = 0;
      for (size_t c = 0; c < grad.cols; ++c) {
        const double g = grad.Row(r)[c], y = normal.Row(r)[c];
        gain_grad[c] += static_cast<float>(g * y);
        bias_grad[c] += static_cast<float>(g);
        sum += g * gain[c] / n;
        projection += g * gain[c] * y / n;
      }
      for (size_t c = 0; c < grad.cols; ++c)
        grad.Row(r)[c] = static_cast<float>(
            inverse[r] * (double{grad.Row(r)[c]} * gain[c] - sum - normal.Row(r)[c] * projection));
    }
  }

  void CausalSoftmax(size_t first, float scale, ConstMatrix penalty, Matrix x) override {
    std::vector<double> y(x.cols);
    for (size_t r = 0; r < x.rows; ++r) {
      const size_t n = std::min(x.cols, first + r + 1);
      double sum = 0;
      for (size_t c = 0; c < n; ++c)
        y[c] = double{scale} * x.Row(r)[c] - (penalty.data == nullptr ? 0 : penalty.Row(r)[c]);
      const double most = *std::max_element(y.begin(), y.begin() + static_cast<ptrdiff_t>(n));
      for (size_t c = 0; c < n; ++c) sum += std::exp(y[c] - most);
      for (size_t c = 0; c < x.cols; ++c)
        x.Row(r)[c] = c < n ? static_cast<float>(std::exp(y[c] - most) / sum) : 0.0f;
    }
  }
  void CausalSoftmaxBackward(size_t first, float scale, ConstMatrix s, Matrix grad) override {
    for (size_t r = 0; r < grad.rows; ++r) {
      const size_t n = std::min(grad.cols, first + r + 1);
      double mean = 0;
      for (size_t c = 0; c < n; ++c) mean += double{s.Row(r)[c]} * grad.Row(r)[c];
      for (size_t c = 0; c < grad.cols; ++c)
        grad.Row(r)[c] =
            c < n ? static_cast<float>(scale * s.Row(r)[c] * (grad.Row(r)[c] - mean)) : 0.0f;
    }
  }
  void LimitPenalty(size_t first, float factor, float most, Matrix penalty) override {
    for (size_t r = 0; r < penalty.rows; ++r)
      for (size_t c = 0; c < std::min(penalty.cols, first + r + 1); ++c)
        penalty.Row(r)[c] = std::min(factor * penalty.Row(r)[c], most);
  }

  void ExpRows(std::span<const float> bias, Matrix x, std::span<ExpRow> rows) override {
    for (size_t r = 0; r < x.rows; ++r) {
      float* row = x.Row(r);
      for (size_t c = 0; c < bias.size(); ++c) row[c] += bias[c];
      rows[r].max = *std::max_element(row, row + x.cols);
      double sum = 0;
      for (size_t c = 0; c < x.cols; ++c) {
        const double e = std::exp(double{row[c]} - rows[r].max);
        row[c] = static_cast<float>(e);
        sum += e;
      }
      rows[r].sum = static_cast<float>(sum);
    }
  }

  double SquaredNorm(std::span<const float> x) override {
    double sum = 0;
    for (float v : x) sum += double{v} * v;
    return sum;
  }
  void AddScaled(float factor, std::span<const float> x, std::span<float> out) override {
    for (size_t i = 0; i < x.size(); ++i) out[i] += factor * x[i];
  }
  void AddRounded(float factor, std::span<const float> x, std::span<int64_t> sums) override {
    for (size_t i = 0; i < x.size(); ++i) sums[i] += std::llrint(double{factor * x[i]});
  }

  void ReluVariance(ConstMatrix mean, Matrix variance) override {
    for (size_t r = 0; r < mean.rows; ++r)
      for (size_t c = 0; c < mean.cols; ++c) {
        float& v = variance.Row(r)[c];
        if (!(v > 0)) continue;
        const double z = mean.Row(r)[c] / std::sqrt(double{v});
        const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
        const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
        const double ratio = (z * z + 1) * below + z * density - std::pow(z * below + density, 2);
        v = static_cast<float>(v * std::max(ratio, 0.0));
      }
  }

 private:
  double Rounded(float x) const { return precision_ == Precision::kBf16 ? FromBf16(ToBf16(x)) : x; }

  const Precision precision_;
};

}  // namespace

std::unique_ptr<UnitOps> MakeReferenceUnitOps(Precision precision) {
  return std::make_unique<ReferenceUnitOps>(precision);
}

}  // namespace tacit::ops
