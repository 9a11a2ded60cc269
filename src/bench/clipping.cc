#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "base/hash.h"
#include "bench/bench_data.h"
#include "bench/suite.h"
#include "ops/backend.h"
#include "ops/matrix_buffer.h"

// Ways to a linear layer's clipped sum (paper 002, table 1's question): time and memory by width
// and by rows of a unit. Each begins with the layer's inputs and output gradients of one backward
// pass.
namespace tacit::bench {
namespace {

using ops::ConstMatrix;
using ops::Matrix;
using ops::MatrixBuffer;
using ops::Transpose;

constexpr size_t kRows = 4096;                       // of all units together
constexpr double kMostBytes = 1536.0 * 1024 * 1024;  // what forming all gradients may take
constexpr float kUnitClip = 1;

struct Layer {
  size_t width, length;
  std::unique_ptr<ops::Backend> backend;
  MatrixBuffer<float> a, g, weights;  // inputs, output gradients; width x width
  std::vector<uint32_t> unit_end;

  // Working memory of all ways, and results.
  MatrixBuffer<float> sum, scaled, formed, gram_a, gram_g, below;
  std::vector<float> squared, row_scale;

  Layer(size_t of_width, size_t of_length, WorkerPool& workers)
      : width(of_width), length(of_length), backend(ops::MakeCpuBackend(workers)) {
    a.Reset(kRows, width);
    g.Reset(kRows, width);
    weights.Reset(width, width);
    uint64_t next_seed = 5;
    for (const Matrix x : {a.view(), g.view(), weights.view()})
      for (size_t r = 0; r < x.rows; ++r)
        InitialRow(next_seed++, r, 1, std::span(x.Row(r), x.cols));
    for (size_t end = length; end <= kRows; end += length)
      unit_end.push_back(static_cast<uint32_t>(end));
    sum.Reset(width, width);
    squared.resize(units());
    row_scale.resize(kRows);
  }

  size_t units() const { return kRows / length; }
  Matrix RowsOf(const MatrixBuffer<float>& x, size_t unit) const {
    return x.view().Rows(unit * length, (unit + 1) * length);
  }
  void Product(Transpose ta, ConstMatrix x, Transpose tb, ConstMatrix y, float beta, Matrix out) {
    TACIT_CHECK(backend->Gemm(ta, x, tb, y, beta, out).has_value(), "no product");
  }
  float ScaleOf(size_t unit) const {
    return std::min(1.0f, kUnitClip / std::sqrt(std::max(squared[unit], 1e-30f)));
  }
  // The one product over all rows that ends a step, each row scaled by its unit's factor.
  void WeightedSum(ConstMatrix gradients) {
    for (size_t r = 0; r < kRows; ++r) row_scale[r] = ScaleOf(r / length);
    scaled.Reset(kRows, width);
    backend->ScaleRows(row_scale, gradients, scaled.view());
    Product(Transpose::kYes, a.view(), Transpose::kNo, scaled.view(), 0, sum.view());
  }
};

double SquaredOf(ConstMatrix x) {
  double sum = 0;
  for (size_t r = 0; r < x.rows; ++r) {
    const float* const row = x.Row(r);
    sum += std::inner_product(row, row + x.cols, row, 0.0);
  }
  return sum;
}

void AddScaled(float scale, ConstMatrix x, Matrix sum) {
  for (size_t r = 0; r < x.rows; ++r)
    for (size_t c = 0; c < x.cols; ++c) sum.Row(r)[c] += scale * x.Row(r)[c];
}

void SumWithoutClip(Layer& layer) {
  layer.Product(Transpose::kYes, layer.a.view(), Transpose::kNo, layer.g.view(), 0,
                layer.sum.view());
}

// All gradients are formed, then clipped and added: the memory of as many models as units.
void FormAll(Layer& layer) {
  const size_t width = layer.width;
  layer.formed.Reset(layer.units() * width, width);
  const auto of = [&](size_t unit) {
    return layer.formed.view().Rows(unit * width, (unit + 1) * width);
  };
  for (size_t unit = 0; unit < layer.units(); ++unit) {
    layer.Product(Transpose::kYes, layer.RowsOf(layer.a, unit), Transpose::kNo,
                  layer.RowsOf(layer.g, unit), 0, of(unit));
    layer.squared[unit] = static_cast<float>(SquaredOf(of(unit)));
  }
  for (size_t r = 0; r < width; ++r) std::fill_n(layer.sum.view().Row(r), width, 0.0f);
  for (size_t unit = 0; unit < layer.units(); ++unit)
    AddScaled(layer.ScaleOf(unit), of(unit), layer.sum.view());
}

// One gradient is formed after the other, and added while it is in cache.
void FormEach(Layer& layer) {
  const size_t width = layer.width;
  layer.formed.Reset(width, width);
  for (size_t r = 0; r < width; ++r) std::fill_n(layer.sum.view().Row(r), width, 0.0f);
  for (size_t unit = 0; unit < layer.units(); ++unit) {
    layer.Product(Transpose::kYes, layer.RowsOf(layer.a, unit), Transpose::kNo,
                  layer.RowsOf(layer.g, unit), 0, layer.formed.view());
    layer.squared[unit] = static_cast<float>(SquaredOf(layer.formed.view()));
    AddScaled(layer.ScaleOf(unit), layer.formed.view(), layer.sum.view());
  }
}

// |sum_t a_t g_t|^2 = sum_{s,t} <a_s, a_t> <g_s, g_t>: two Gram matrices of each unit.
void GhostNorms(Layer& layer) {
  layer.gram_a.Reset(layer.length, layer.length);
  layer.gram_g.Reset(layer.length, layer.length);
  for (size_t unit = 0; unit < layer.units(); ++unit) {
    for (const auto& [x, gram] :
         {std::pair(&layer.a, &layer.gram_a), std::pair(&layer.g, &layer.gram_g)})
      layer.Product(Transpose::kNo, layer.RowsOf(*x, unit), Transpose::kYes, layer.RowsOf(*x, unit),
                    0, gram->view());
    double squared = 0;
    for (size_t t = 0; t < layer.length; ++t) {
      const float* const row = layer.gram_a.view().Row(t);
      squared += std::inner_product(row, row + layer.length, layer.gram_g.view().Row(t), 0.0);
    }
    layer.squared[unit] = static_cast<float>(std::max(0.0, squared));
  }
}

// Ghost clipping as published: a second backward pass, of the loss with each unit's weight.
void GhostTwoPasses(Layer& layer) {
  GhostNorms(layer);
  layer.below.Reset(kRows, layer.width);
  layer.Product(Transpose::kNo, layer.g.view(), Transpose::kYes, layer.weights.view(), 0,
                layer.below.view());
  layer.WeightedSum(layer.g.view());
}

void GhostBookKeeping(Layer& layer) {
  GhostNorms(layer);
  layer.WeightedSum(layer.g.view());
}

// The backend's norms, which take the cheaper form for each unit, and book-keeping: what the click
// model does.
void MixedBookKeeping(Layer& layer) {
  layer.backend->UnitSquaredNorms(layer.unit_end, layer.a.view(), layer.g.view(), layer.squared);
  layer.WeightedSum(layer.g.view());
}

double BytesOf(const MatrixBuffer<float>& x) {
  return static_cast<double>(x.view().rows * x.view().stride * sizeof(float));
}

struct ClippedWay {
  const char* name;
  void (*run)(Layer&);
  // Beside inputs, output gradients and the sum.
  double (*bytes)(const Layer&);
};

constexpr ClippedWay kClippedWays[] = {
    {"formed-all", FormAll, [](const Layer& layer) { return BytesOf(layer.formed); }},
    {"formed-each", FormEach, [](const Layer& layer) { return BytesOf(layer.formed); }},
    {"ghost-two-passes", GhostTwoPasses,
     [](const Layer& layer) {
       return BytesOf(layer.gram_a) + BytesOf(layer.gram_g) + BytesOf(layer.below) +
              BytesOf(layer.scaled);
     }},
    {"ghost-book-keeping", GhostBookKeeping,
     [](const Layer& layer) {
       return BytesOf(layer.gram_a) + BytesOf(layer.gram_g) + BytesOf(layer.scaled);
     }},
    {"mixed-book-keeping", MixedBookKeeping,
     [](const Layer& layer) { return BytesOf(layer.scaled); }}};

// The difference of two sums, over the length of the first.
double Apart(const std::vector<float>& want, ConstMatrix have) {
  double apart = 0, length = 0;
  for (size_t r = 0; r < have.rows; ++r)
    for (size_t c = 0; c < have.cols; ++c) {
      const double x = want[r * have.cols + c];
      apart += std::pow(x - have.Row(r)[c], 2);
      length += x * x;
    }
  return std::sqrt(apart / length);
}

Status AddShape(size_t width, size_t length, bool quick, std::vector<BenchRow>* rows) {
  WorkerPool workers({.workers = 1});
  const double formed =
      4.0 * static_cast<double>(kRows * width * width) / static_cast<double>(length);
  const auto about = std::chrono::milliseconds(quick ? 1 : 300);
  double plain = 0;
  std::vector<float> want;
  for (const ClippedWay& way : kClippedWays) {
    // Fresh buffers for each, so that the memory is its own.
    Layer layer(width, length, workers);
    if (plain == 0) plain = MedianSeconds([&] { SumWithoutClip(layer); }, about);
    if (way.run == FormAll && formed > kMostBytes) continue;
    const double seconds = MedianSeconds([&] { way.run(layer); }, about);
    if (want.empty()) {
      for (size_t r = 0; r < width; ++r)
        want.insert(want.end(), layer.sum.view().Row(r), layer.sum.view().Row(r) + width);
    } else if (const double apart = Apart(want, layer.sum.view()); !(apart < 1e-3)) {
      return Fail(ErrorCode::kInternal,
                  fmt::format("{} gives another sum, by {}", way.name, apart));
    }
    rows->push_back({.name = fmt::format("clipping-width{}-length{}-{}", width, length, way.name),
                     .value = seconds / plain,
                     .unit = "times the sum without a clip",
                     .limit = std::nullopt,
                     .more = {{"width", width},
                              {"length", length},
                              {"units", kRows / length},
                              {"way", way.name},
                              {"seconds", seconds},
                              {"seconds_without", plain},
                              {"bytes", way.bytes(layer)}},
                     .note = fmt::format("{:.2f} MiB", way.bytes(layer) / (1024 * 1024))});
  }
  return {};
}

}  // namespace

Result<std::vector<BenchRow>> BenchClipping(const BenchRequest& request) {
  std::vector<BenchRow> rows;
  const std::vector<size_t> widths =
      request.quick ? std::vector<size_t>{32, 64} : std::vector<size_t>{64, 256, 598, 1024};
  const std::vector<size_t> lengths =
      request.quick ? std::vector<size_t>{1, 16} : std::vector<size_t>{1, 8, 64, 256, 1024};
  for (const size_t width : widths)
    for (const size_t length : lengths)
      TACIT_RETURN_IF_ERROR(AddShape(width, length, request.quick, &rows));
  return rows;
}

}  // namespace tacit::bench
