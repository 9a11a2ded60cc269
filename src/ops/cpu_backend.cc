#include "ops/cpu_backend.h"

#include <algorithm>
#include <vector>

#include "ops/dnnl_gemm.h"
#include "ops/loops.h"
#include "ops/matrix_buffer.h"
#include "ops/shapes.h"
#include "ops/unit_ops.h"

namespace tacit::ops {
namespace {

// A worker's part of a GEMM is a block of rows or columns of c that no other worker writes, so
// there is nothing to reduce and the bits depend on the split alone. Blocks start on cache lines.
constexpr size_t kGrain = 16;
// Work on fewer numbers, or products of a GEMM, finishes sooner than a worker wakes up.
constexpr size_t kAloneNumbers = size_t{1} << 17;
constexpr size_t kAloneProducts = size_t{1} << 20;
// Columns of a tile of a product. The wider, the less often rows are packed; a few rows by all
// items of a catalogue are still shared between workers.
constexpr size_t kTileCols = 1024;
// Rows of a sum that a worker multiplies at a time: the more, the less often factors are packed.
constexpr size_t kSumRows = 1024;

template <class T>
MatrixView<T> Columns(const MatrixView<T>& x, size_t begin, size_t end) {
  return {x.data + begin, x.rows, end - begin, x.stride};
}
template <class T>
MatrixView<T> RowsOfOp(Transpose t, const MatrixView<T>& x, size_t begin, size_t end) {
  return t == Transpose::kYes ? Columns(x, begin, end) : x.Rows(begin, end);
}
template <class T>
MatrixView<T> ColumnsOfOp(Transpose t, const MatrixView<T>& x, size_t begin, size_t end) {
  return t == Transpose::kYes ? x.Rows(begin, end) : Columns(x, begin, end);
}

// A worker's memory for sums of blocks.
class BlockSums {
 public:
  // multiply(first, last, product) forms a piece's product. A block of one piece, as nearly all
  // are, is rounded at once.
  template <class Multiply>
  Status Add(const SumPieces& pieces, size_t cols, double step, MatrixView<int64_t> sums,
             const Multiply& multiply) {
    product_.resize(sums.rows * cols);
    const Matrix product(product_.data(), sums.rows, cols);
    bool is_open = false;
    for (size_t piece = 0, first = 0; piece < pieces.end.size(); ++piece) {
      const size_t last = pieces.end[piece];
      if (first == last) {
        std::ranges::fill(product_, 0.0f);
      } else {
        TACIT_RETURN_IF_ERROR(multiply(first, last, product));
      }
      first = last;
      const bool closes = pieces.closes[piece] != 0;
      if (closes && !is_open) {
        Round(product_.data(), step, sums);
        continue;
      }
      if (!std::exchange(is_open, true)) block_.assign(product_.size(), 0);
      for (size_t i = 0; i < product_.size(); ++i) block_[i] += product_[i];
      if (!closes) continue;
      Round(block_.data(), step, sums);
      is_open = false;
    }
    return {};
  }

 private:
  template <class T>
  static void Round(const T* from, double step, MatrixView<int64_t> sums) {
    for (size_t r = 0; r < sums.rows; ++r)
      loops::AddRounded(step, from + r * sums.cols, sums.cols, sums.Row(r));
  }

  std::vector<float> product_;
  std::vector<double> block_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(WorkerPool& workers, Bf16Gemm bf16)
      : workers_(workers),
        bf16_(bf16),
        gemm_(workers.workers()),
        block_sums_(workers.workers()),
        status_(workers.workers()) {}

  const char* name() const override { return bf16_ == Bf16Gemm::kNative ? "cpu-bf16" : "cpu"; }
  bool has_fast_bf16() const override { return bf16_ == Bf16Gemm::kNative; }
  WorkerPool& workers() override { return workers_; }
  std::unique_ptr<UnitOps> MakeUnitOps(Precision precision) const override {
    return MakeCpuUnitOps(precision);
  }

  Status Gemm(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
              Matrix c) override {
    return SplitGemm(ta, a, tb, b, beta, c,
                     [&](size_t worker, ConstMatrix part_a, ConstMatrix part_b, Matrix part_c) {
                       return gemm_[worker].F32(ta, part_a, tb, part_b, beta, part_c);
                     });
  }

  Status Gemm16(Transpose ta, ConstMatrix16 a, Transpose tb, ConstMatrix16 b, float beta,
                Matrix c) override {
    if (bf16_ == Bf16Gemm::kWidened)
      return Gemm(ta, Widen(a, &wide_a_), tb, Widen(b, &wide_b_), beta, c);
    return SplitGemm(ta, a, tb, b, beta, c,
                     [&](size_t worker, ConstMatrix16 part_a, ConstMatrix16 part_b, Matrix part_c) {
                       return gemm_[worker].F16(ta, part_a, tb, part_b, beta, part_c);
                     });
  }

  Status AddBlockSums(const SumPieces& pieces, ConstMatrix a, ConstMatrix g, double step,
                      MatrixView<int64_t> sums) override {
    return SumBlocks(pieces, a, g, step, sums,
                     [&](size_t worker, ConstMatrix part_a, ConstMatrix part_g, Matrix part) {
                       return gemm_[worker].F32(Transpose::kYes, part_a, Transpose::kNo, part_g, 0,
                                                part);
                     });
  }
  Status AddBlockSums16(const SumPieces& pieces, ConstMatrix16 a, ConstMatrix16 g, double step,
                        MatrixView<int64_t> sums) override {
    if (bf16_ == Bf16Gemm::kWidened)
      return AddBlockSums(pieces, Widen(a, &wide_a_), Widen(g, &wide_b_), step, sums);
    return SumBlocks(pieces, a, g, step, sums,
                     [&](size_t worker, ConstMatrix16 part_a, ConstMatrix16 part_g, Matrix part) {
                       return gemm_[worker].F16(Transpose::kYes, part_a, Transpose::kNo, part_g, 0,
                                                part);
                     });
  }

  void Round16(ConstMatrix in, Matrix16 out) override { AddBias16(in, {}, false, out); }

  void AddBias(Matrix x, std::span<const float> bias, bool relu) override {
    BiasInto<float>(x, bias, relu, x);
  }
  void AddBias16(ConstMatrix x, std::span<const float> bias, bool relu, Matrix16 out) override {
    BiasInto<Bf16>(x, bias, relu, out);
  }
  void ReluBackward(ConstMatrix activation, Matrix grad) override {
    CheckSameShape(activation, grad);
    ForRows(grad.rows, grad.rows * grad.cols, [&](size_t begin, size_t end) {
      const Matrix part = grad.Rows(begin, end);
      loops::ReluBackward<float>(activation.Rows(begin, end), part, part);
    });
  }
  void ReluBackward16(ConstMatrix16 activation, ConstMatrix grad, Matrix16 out) override {
    CheckSameShape(activation, grad);
    CheckSameShape(grad, out);
    ForRows(grad.rows, grad.rows * grad.cols, [&](size_t begin, size_t end) {
      loops::ReluBackward<Bf16>(activation.Rows(begin, end), grad.Rows(begin, end),
                                out.Rows(begin, end));
    });
  }
  void ScaleRows(std::span<const float> scale, ConstMatrix x, Matrix out) override {
    ScaleInto<float>(scale, x, out);
  }
  void ScaleRows16(std::span<const float> scale, ConstMatrix16 x, Matrix16 out) override {
    ScaleInto<Bf16>(scale, x, out);
  }

  void RowSquaredNorms(ConstMatrix x, std::span<float> out) override {
    TACIT_CHECK(out.size() == x.rows, "one norm per row");
    ForRows(x.rows, x.rows * x.cols, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r)
        out[r] = static_cast<float>(loops::SquaredNorm(x.Row(r), x.cols));
    });
  }
  void UnitSquaredNorms(std::span<const uint32_t> unit_end, ConstMatrix a, ConstMatrix g,
                        std::span<float> out) override {
    UnitNorms<float>(unit_end, a, g, out);
  }
  void UnitSquaredNorms16(std::span<const uint32_t> unit_end, ConstMatrix16 a, ConstMatrix16 g,
                          std::span<float> out) override {
    UnitNorms<Bf16>(unit_end, a, g, out);
  }
  void ColumnSums(ConstMatrix x, std::span<float> out) override {
    TACIT_CHECK(out.size() == x.cols, "one sum per column");
    workers_.Run(
        x.cols,
        [&](size_t begin, size_t end, size_t) {
          for (size_t r = 0; r < x.rows; ++r) {
            const float* row = x.Row(r);
            for (size_t c = begin; c < end; ++c) out[c] += row[c];
          }
        },
        kGrain);
  }

  void LogisticLoss(std::span<const float> logit, std::span<const float> label,
                    std::span<float> loss, std::span<float> dlogit) override {
    TACIT_CHECK(logit.size() == label.size() && loss.size() == label.size() &&
                    dlogit.size() == label.size(),
                "one label per logit");
    ForRows(logit.size(), 16 * logit.size(), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        loops::LogisticLoss(logit[i], label[i], &loss[i], &dlogit[i]);
    });
  }
  void GatherSum(const Slots& slots, std::span<float* const> row, Matrix x) override {
    CheckSlots(slots, x);
    ForRows(x.rows, x.rows * x.cols,
            [&](size_t begin, size_t end) { loops::GatherSum(slots, row, x, begin, end); });
  }

 private:
  template <class Body>
  void ForRows(size_t rows, size_t numbers, const Body& body) {
    workers_.Run(
        rows, [&](size_t begin, size_t end, size_t) { body(begin, end); },
        numbers < kAloneNumbers ? rows : 1);
  }

  // Runs part(worker, a, b, c) on blocks of c: on tiles where rows are to be apart, else on parts
  // that are cut along its longer side.
  template <class T, class Part>
  Status SplitGemm(Transpose ta, MatrixView<const T> a, Transpose tb, MatrixView<const T> b,
                   float beta, Matrix c, const Part& part) {
    TACIT_CHECK(beta == 0 || beta == 1, "beta is 0 or 1");
    const GemmShape s = ShapeOf(ta, a, tb, b, c);
    if (s.m == 0 || s.n == 0) return {};
    if (s.k == 0) {
      if (beta == 0)
        for (size_t r = 0; r < s.m; ++r) std::fill_n(c.Row(r), s.n, 0.0f);
      return {};
    }
    for (Status& status : status_) status = {};
    const bool alone = s.m * s.n * s.k < kAloneProducts;
    if (ta == Transpose::kNo && s.m % kRowGrain == 0) {
      RunTiles(a, tb, b, c, alone, part);
    } else {
      const bool by_rows = s.m >= s.n;
      workers_.Run(
          by_rows ? s.m : s.n,
          [&](size_t begin, size_t end, size_t worker) {
            status_[worker] =
                by_rows ? part(worker, RowsOfOp(ta, a, begin, end), b, c.Rows(begin, end))
                        : part(worker, a, ColumnsOfOp(tb, b, begin, end), Columns(c, begin, end));
          },
          alone ? std::max(s.m, s.n) : kGrain);
    }
    for (Status& status : status_) TACIT_RETURN_IF_ERROR(std::move(status));
    return {};
  }

  // The library chooses its code by all sizes of a product, rows included, and its codes add up in
  // different orders. So it gets kRowGrain rows in every call, and columns that are cut in the same
  // places however many rows there are.
  template <class T, class Part>
  void RunTiles(MatrixView<const T> a, Transpose tb, MatrixView<const T> b, Matrix c, bool alone,
                const Part& part) {
    const size_t across = (c.cols + kTileCols - 1) / kTileCols;
    const size_t tiles = c.rows / kRowGrain * across;
    workers_.Run(
        tiles,
        [&](size_t begin, size_t end, size_t worker) {
          for (size_t tile = begin; tile < end && status_[worker]; ++tile) {
            const size_t row = tile / across * kRowGrain, col = tile % across * kTileCols;
            const size_t last_row = row + kRowGrain, last_col = std::min(c.cols, col + kTileCols);
            status_[worker] = part(worker, a.Rows(row, last_row), ColumnsOfOp(tb, b, col, last_col),
                                   Columns(c.Rows(row, last_row), col, last_col));
          }
        },
        alone ? tiles : 1);
  }

  // A worker has some rows of the sums, and goes through all pieces with as many of them at a time
  // as it has memory for.
  template <class T, class Product>
  Status SumBlocks(const SumPieces& pieces, MatrixView<const T> a, MatrixView<const T> g,
                   double step, MatrixView<int64_t> sums, const Product& product) {
    CheckBlockSums(pieces, a, g, sums);
    for (Status& status : status_) status = {};
    const bool alone = a.rows * a.cols * g.cols < kAloneProducts;
    workers_.Run(
        sums.rows,
        [&](size_t begin, size_t end, size_t worker) {
          for (; begin < end && status_[worker]; begin += kSumRows) {
            const size_t last = std::min(end, begin + kSumRows);
            status_[worker] = block_sums_[worker].Add(
                pieces, g.cols, step, sums.Rows(begin, last),
                [&](size_t first_row, size_t last_row, Matrix part) {
                  return product(worker, Columns(a.Rows(first_row, last_row), begin, last),
                                 g.Rows(first_row, last_row), part);
                });
          }
        },
        alone ? sums.rows : kGrain);
    for (Status& status : status_) TACIT_RETURN_IF_ERROR(std::move(status));
    return {};
  }

  ConstMatrix Widen(ConstMatrix16 x, MatrixBuffer<float>* buffer) {
    buffer->Reset(x.rows, x.cols);
    const Matrix out = buffer->view();
    ForRows(x.rows, x.rows * x.cols, [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r)
        for (size_t c = 0; c < x.cols; ++c) out.Row(r)[c] = FromBf16(x.Row(r)[c]);
    });
    return out;
  }

  template <class T>
  void BiasInto(ConstMatrix x, std::span<const float> bias, bool relu, MatrixView<T> out) {
    CheckSameShape(x, out);
    TACIT_CHECK(bias.empty() || bias.size() == x.cols, "one bias per column");
    const float* values = bias.empty() ? nullptr : bias.data();
    ForRows(x.rows, x.rows * x.cols, [&](size_t begin, size_t end) {
      loops::Bias(x.Rows(begin, end), values, relu, out.Rows(begin, end));
    });
  }
  template <class T>
  void ScaleInto(std::span<const float> scale, MatrixView<const T> x, MatrixView<T> out) {
    CheckSameShape(x, out);
    TACIT_CHECK(scale.size() == x.rows, "one scale per row");
    ForRows(x.rows, x.rows * x.cols, [&](size_t begin, size_t end) {
      loops::ScaleRows<T>(scale.data() + begin, x.Rows(begin, end), out.Rows(begin, end));
    });
  }
  template <class T>
  void UnitNorms(std::span<const uint32_t> unit_end, MatrixView<const T> a, MatrixView<const T> g,
                 std::span<float> out) {
    TACIT_CHECK(a.rows == g.rows, "one output gradient per input");
    CheckUnits(unit_end, a.rows, out.size());
    const size_t units = std::max<size_t>(1, unit_end.size());
    const size_t rows_each = (a.rows + units - 1) / units;
    ForRows(unit_end.size(), a.rows * rows_each * (a.cols + g.cols), [&](size_t begin, size_t end) {
      for (size_t u = begin; u < end; ++u)
        out[u] =
            static_cast<float>(loops::GramNorm(a, g, u == 0 ? 0 : unit_end[u - 1], unit_end[u]));
    });
  }

  WorkerPool& workers_;
  const Bf16Gemm bf16_;
  std::vector<DnnlGemm> gemm_;  // one per worker, as are block_sums_ and status_
  std::vector<BlockSums> block_sums_;
  std::vector<Status> status_;
  MatrixBuffer<float> wide_a_, wide_b_;
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackendWith(WorkerPool& workers, Bf16Gemm bf16) {
  TACIT_CHECK(bf16 == Bf16Gemm::kWidened || HasFastBf16(), "no bf16 on this processor");
  return std::make_unique<CpuBackend>(workers, bf16);
}

std::unique_ptr<Backend> MakeCpuBackend(WorkerPool& workers) {
  return MakeCpuBackendWith(workers, HasFastBf16() ? Bf16Gemm::kNative : Bf16Gemm::kWidened);
}

}  // namespace tacit::ops
