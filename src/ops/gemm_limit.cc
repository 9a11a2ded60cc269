#include <omp.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>

#include "ops/dnnl_gemm.h"
#include "ops/loops.h"
#include "ops/matrix_buffer.h"

namespace tacit::ops {
namespace {

constexpr size_t kM = 2048, kN = 598, kK = 598;

// Returns the calls per second of the fastest call; 0 if a call fails.
double BestRate(double seconds, const std::function<bool()>& call) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  double best = 0;
  const auto start = Clock::now();
  do {
    const auto begin = Clock::now();
    if (!call()) return 0;
    best = std::max(best, 1 / since(begin));
  } while (since(start) < seconds);
  return best;
}

// Measures a primitive made for this one shape, as a caller with fixed shapes would use it.
double FixedShapeRate(dnnl::memory::data_type type, void* a, void* b, float* c, double seconds) {
  omp_set_num_threads(1);
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(engine);
    const auto desc = [](size_t rows, size_t cols, dnnl::memory::data_type t) {
      return dnnl::memory::desc({static_cast<dnnl_dim_t>(rows), static_cast<dnnl_dim_t>(cols)}, t,
                                dnnl::memory::format_tag::ab);
    };
    const auto out = dnnl::memory::data_type::f32;
    const dnnl::matmul::primitive_desc made(
        {desc(kM, kK, type), desc(kK, kN, type), desc(kM, kN, out)}, engine);
    dnnl::matmul run(made);
    return BestRate(seconds, [&] {
      run.execute(stream, {{DNNL_ARG_SRC, {made.src_desc(), engine, a}},
                           {DNNL_ARG_WEIGHTS, {made.weights_desc(), engine, b}},
                           {DNNL_ARG_DST, {made.dst_desc(), engine, c}}});
      stream.wait();
      return true;
    });
  } catch (const dnnl::error&) {
    return 0;  // unavailable here; the other way may work
  }
}

template <class T>
MatrixView<T> Filled(MatrixBuffer<T>* buffer, size_t rows, size_t cols) {
  buffer->Reset(rows, cols);
  const MatrixView<T> view = buffer->view();
  for (size_t i = 0; i < rows * view.stride; ++i)
    loops::Narrow(static_cast<float>(i % 17) / 16 - 0.5f, view.data + i);
  return view;
}

template <class T, class Call>
double Measure(dnnl::memory::data_type type, double seconds, const Call& gemm) {
  MatrixBuffer<T> a, b;
  MatrixBuffer<float> c;
  Filled(&a, kM, kK);
  Filled(&b, kK, kN);
  Filled(&c, kM, kN);
  const double ours =
      BestRate(seconds / 2, [&] { return gemm(a.view(), b.view(), c.view()).has_value(); });
  const double fixed =
      FixedShapeRate(type, a.view().data, b.view().data, c.view().data, seconds / 2);
  return 2.0 * kM * kN * kK * std::max(ours, fixed);
}

}  // namespace

double MeasureGemmLimit(Precision precision, double seconds) {
  DnnlGemm gemm;
  if (precision == Precision::kBf16 && HasFastBf16()) {
    return Measure<Bf16>(dnnl::memory::data_type::bf16, seconds,
                         [&](ConstMatrix16 a, ConstMatrix16 b, Matrix c) {
                           return gemm.F16(Transpose::kNo, a, Transpose::kNo, b, 0, c);
                         });
  }
  return Measure<float>(dnnl::memory::data_type::f32, seconds,
                        [&](ConstMatrix a, ConstMatrix b, Matrix c) {
                          return gemm.F32(Transpose::kNo, a, Transpose::kNo, b, 0, c);
                        });
}

}  // namespace tacit::ops
