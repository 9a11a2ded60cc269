#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/bf16.h"
#include "ops/shapes.h"
#include "ops/unit_ops.h"

namespace tacit::ops {
namespace {

double Number(float x) { return x; }
double Number(Bf16 x) { return FromBf16(x); }

template <class T>
double At(Transpose t, MatrixView<const T> x, size_t row, size_t col) {
  return Number(t == Transpose::kYes ? x.Row(col)[row] : x.Row(row)[col]);
}

template <class T>
void NaiveGemm(Transpose ta, MatrixView<const T> a, Transpose tb, MatrixView<const T> b, float beta,
               Matrix c) {
  TACIT_CHECK(beta == 0 || beta == 1, "beta is 0 or 1");
  const GemmShape s = ShapeOf(ta, a, tb, b, c);
  for (size_t i = 0; i < s.m; ++i) {
    for (size_t j = 0; j < s.n; ++j) {
      double sum = beta == 0 ? 0.0 : c.Row(i)[j];
      for (size_t k = 0; k < s.k; ++k) sum += At(ta, a, i, k) * At(tb, b, k, j);
      c.Row(i)[j] = static_cast<float>(sum);
    }
  }
}

template <class T>
void NaiveBlockSums(const SumPieces& pieces, MatrixView<const T> a, MatrixView<const T> g,
                    double step, MatrixView<int64_t> sums) {
  CheckBlockSums(pieces, a, g, sums);
  for (size_t i = 0; i < sums.rows; ++i) {
    for (size_t j = 0; j < sums.cols; ++j) {
      double block = 0;
      for (size_t piece = 0, r = 0; piece < pieces.end.size(); ++piece) {
        for (; r < pieces.end[piece]; ++r) block += Number(a.Row(r)[i]) * Number(g.Row(r)[j]);
        if (pieces.closes[piece] == 0) continue;
        sums.Row(i)[j] += std::llrint(std::clamp(block / step, -0x1p50, 0x1p50));
        block = 0;
      }
    }
  }
}

// Calls body(row, column) for every element.
template <class T, class Body>
void ForEach(const MatrixView<T>& x, const Body& body) {
  for (size_t r = 0; r < x.rows; ++r)
    for (size_t c = 0; c < x.cols; ++c) body(r, c);
}

float Biased(ConstMatrix x, std::span<const float> bias, bool relu, size_t r, size_t c) {
  const float y = bias.empty() ? x.Row(r)[c] : x.Row(r)[c] + bias[c];
  return relu && y < 0 ? 0.0f : y;
}

// log(1 + e^x), from the form in which e^ cannot overflow.
double SoftPlus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

// The norm by its definition: the gradient is formed, then squared.
template <class T>
double MaterialisedNorm(MatrixView<const T> a, MatrixView<const T> g, size_t begin, size_t end) {
  double norm = 0;
  for (size_t i = 0; i < a.cols; ++i) {
    for (size_t j = 0; j < g.cols; ++j) {
      double w = 0;
      for (size_t t = begin; t < end; ++t) w += Number(a.Row(t)[i]) * Number(g.Row(t)[j]);
      norm += w * w;
    }
  }
  return norm;
}

template <class T>
void UnitNorms(std::span<const uint32_t> unit_end, MatrixView<const T> a, MatrixView<const T> g,
               std::span<float> out) {
  TACIT_CHECK(a.rows == g.rows, "one output gradient per input");
  CheckUnits(unit_end, a.rows, out.size());
  for (size_t u = 0; u < out.size(); ++u) {
    const size_t begin = u == 0 ? 0 : unit_end[u - 1];
    out[u] = static_cast<float>(MaterialisedNorm(a, g, begin, unit_end[u]));
    if (unit_end[u] != begin + 1) continue;
    double squared = 0;
    for (size_t i = 0; i < a.cols; ++i) squared += std::pow(Number(a.Row(begin)[i]), 2);
    if (!(squared <= 0x1p128)) out[u] = std::numeric_limits<float>::infinity();
  }
}

class ReferenceBackend final : public Backend {
 public:
  const char* name() const override { return "reference"; }
  bool has_fast_bf16() const override { return false; }
  WorkerPool& workers() override { return workers_; }
  std::unique_ptr<UnitOps> MakeUnitOps(Precision precision) const override {
    return MakeReferenceUnitOps(precision);
  }

  Status Gemm(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
              Matrix c) override {
    NaiveGemm(ta, a, tb, b, beta, c);
    return {};
  }
  Status Gemm16(Transpose ta, ConstMatrix16 a, Transpose tb, ConstMatrix16 b, float beta,
                Matrix c) override {
    NaiveGemm(ta, a, tb, b, beta, c);
    return {};
  }
  Status AddBlockSums(const SumPieces& pieces, ConstMatrix a, ConstMatrix g, double step,
                      MatrixView<int64_t> sums) override {
    NaiveBlockSums(pieces, a, g, step, sums);
    return {};
  }
  Status AddBlockSums16(const SumPieces& pieces, ConstMatrix16 a, ConstMatrix16 g, double step,
                        MatrixView<int64_t> sums) override {
    NaiveBlockSums(pieces, a, g, step, sums);
    return {};
  }
  void Round16(ConstMatrix in, Matrix16 out) override { AddBias16(in, {}, false, out); }

  void AddBias(Matrix x, std::span<const float> bias, bool relu) override {
    TACIT_CHECK(bias.empty() || bias.size() == x.cols, "one bias per column");
    ForEach(x, [&](size_t r, size_t c) { x.Row(r)[c] = Biased(x, bias, relu, r, c); });
  }
  void AddBias16(ConstMatrix x, std::span<const float> bias, bool relu, Matrix16 out) override {
    CheckSameShape(x, out);
    TACIT_CHECK(bias.empty() || bias.size() == x.cols, "one bias per column");
    ForEach(x, [&](size_t r, size_t c) { out.Row(r)[c] = ToBf16(Biased(x, bias, relu, r, c)); });
  }
  void ReluBackward(ConstMatrix activation, Matrix grad) override {
    CheckSameShape(activation, grad);
    ForEach(grad, [&](size_t r, size_t c) {
      if (activation.Row(r)[c] <= 0) grad.Row(r)[c] = 0;
    });
  }
  void ReluBackward16(ConstMatrix16 activation, ConstMatrix grad, Matrix16 out) override {
    CheckSameShape(activation, grad);
    CheckSameShape(grad, out);
    ForEach(grad, [&](size_t r, size_t c) {
      out.Row(r)[c] = FromBf16(activation.Row(r)[c]) <= 0 ? Bf16{0} : ToBf16(grad.Row(r)[c]);
    });
  }
  void ScaleRows(std::span<const float> scale, ConstMatrix x, Matrix out) override {
    CheckSameShape(x, out);
    TACIT_CHECK(scale.size() == x.rows, "one scale per row");
    ForEach(x, [&](size_t r, size_t c) { out.Row(r)[c] = scale[r] * x.Row(r)[c]; });
  }
  void ScaleRows16(std::span<const float> scale, ConstMatrix16 x, Matrix16 out) override {
    CheckSameShape(x, out);
    TACIT_CHECK(scale.size() == x.rows, "one scale per row");
    ForEach(x,
            [&](size_t r, size_t c) { out.Row(r)[c] = ToBf16(scale[r] * FromBf16(x.Row(r)[c])); });
  }

  void RowSquaredNorms(ConstMatrix x, std::span<float> out) override {
    TACIT_CHECK(out.size() == x.rows, "one norm per row");
    for (size_t r = 0; r < x.rows; ++r) {
      double sum = 0;
      for (size_t c = 0; c < x.cols; ++c) sum += double{x.Row(r)[c]} * x.Row(r)[c];
      out[r] = static_cast<float>(sum);
    }
  }
  void UnitSquaredNorms(std::span<const uint32_t> unit_end, ConstMatrix a, ConstMatrix g,
                        std::span<float> out) override {
    UnitNorms(unit_end, a, g, out);
  }
  void UnitSquaredNorms16(std::span<const uint32_t> unit_end, ConstMatrix16 a, ConstMatrix16 g,
                          std::span<float> out) override {
    UnitNorms(unit_end, a, g, out);
  }
  void ColumnSums(ConstMatrix x, std::span<float> out) override {
    TACIT_CHECK(out.size() == x.cols, "one sum per column");
    ForEach(x, [&](size_t r, size_t c) { out[c] += x.Row(r)[c]; });
  }

  void LogisticLoss(std::span<const float> logit, std::span<const float> label,
                    std::span<float> loss, std::span<float> dlogit) override {
    TACIT_CHECK(logit.size() == label.size() && loss.size() == label.size() &&
                    dlogit.size() == label.size(),
                "one label per logit");
    for (size_t i = 0; i < logit.size(); ++i) {
      const double x = logit[i], y = label[i];
      loss[i] = static_cast<float>((1 - y) * SoftPlus(x) + y * SoftPlus(-x));
      dlogit[i] = static_cast<float>(std::exp(-SoftPlus(-x)) - y);
    }
  }
  void GatherSum(const Slots& slots, std::span<float* const> row, Matrix x) override {
    CheckSlots(slots, x);
    size_t entry = 0, cell = 0;
    for (size_t r = 0; r < x.rows; ++r) {
      for (size_t s = 0; s < slots.dim.size(); ++s, ++cell) {
        float* to = x.Row(r) + slots.column[s];
        std::fill_n(to, slots.dim[s], 0.0f);
        for (; entry < slots.slot_end[cell]; ++entry)
          for (size_t c = 0; c < slots.dim[s]; ++c) to[c] += row[slots.slot_row[entry]][c];
      }
    }
  }

 private:
  WorkerPool workers_{WorkerPool::Options{}};
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace tacit::ops
