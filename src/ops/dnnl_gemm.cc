#include "ops/dnnl_gemm.h"

#include <fmt/format.h>
#include <omp.h>
#include <sys/mman.h>

#include <array>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/cpu.h"
#include "ops/shapes.h"

namespace tacit::ops {
namespace {

using Dims = dnnl::memory::dims;

Error LibraryError(int status) {
  if (status == dnnl_out_of_memory)
    return {ErrorCode::kUnavailable, "oneDNN was refused memory by the system"};
  return {
      ErrorCode::kInternal,
      fmt::format("oneDNN failed with status {} (it makes code at run time: check that writable "
                  "memory may be executed)",
                  status)};
}

// Limits this thread alone; oneDNN asks OpenMP at every call.
void RunSingleThreaded() { omp_set_num_threads(1); }

Dims Strides(Transpose t, dnnl_dim_t row) {
  return t == Transpose::kYes ? Dims{1, row} : Dims{row, 1};
}

// oneDNN makes its code at the first products, and writes it through a null pointer where there is
// no memory for it. So they are made at the start, where more than that was free a moment before,
// and bad_alloc says where it was not. Returns true.
bool MakeCode() {
  constexpr size_t kMoreThanItTakes = 64 << 20;
  void* const room =
      ::mmap(nullptr, kMoreThanItTakes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  ::munmap(room, kMoreThanItTakes);
  constexpr dnnl_dim_t kSide = 64;
  std::array<float, kSide * kSide> a{}, b{}, c{};
  RunSingleThreaded();
  for (const char ta : {'N', 'T'})
    for (const char tb : {'N', 'T'})
      (void)dnnl_sgemm(ta, tb, kSide, kSide, kSide, 1.0f, a.data(), kSide, b.data(), kSide, 0.0f,
                       c.data(), kSide);
  return true;
}

template <class T>
dnnl::memory Wrap(const dnnl::engine& engine, dnnl::memory::data_type type, Transpose t,
                  const MatrixView<T>& x) {
  const auto rows = static_cast<dnnl_dim_t>(x.rows), cols = static_cast<dnnl_dim_t>(x.cols);
  const Dims dims = t == Transpose::kYes ? Dims{cols, rows} : Dims{rows, cols};
  const dnnl::memory::desc shape(dims, type, Strides(t, static_cast<dnnl_dim_t>(x.stride)));
  // oneDNN takes inputs as void* too; it does not write to them.
  return {shape, engine, const_cast<std::remove_const_t<T>*>(x.data)};
}

}  // namespace

struct DnnlGemm::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  struct Primitive {
    dnnl::matmul run;
    dnnl::memory scratchpad;
  };
  // Indexed by transposes and beta: at most eight.
  std::array<std::unique_ptr<Primitive>, 8> primitives;

  Primitive& For(Transpose ta, Transpose tb, bool add);
};

DnnlGemm::Impl::Primitive& DnnlGemm::Impl::For(Transpose ta, Transpose tb, bool add) {
  auto& primitive = primitives[(ta == Transpose::kYes) + 2 * (tb == Transpose::kYes) + 4 * add];
  if (primitive) return *primitive;
  constexpr auto kAny = DNNL_RUNTIME_DIM_VAL;
  const auto desc = [&](Transpose t, dnnl::memory::data_type type) {
    return dnnl::memory::desc({kAny, kAny}, type, Strides(t, kAny));
  };
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (add) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc made(
      {desc(ta, dnnl::memory::data_type::bf16), desc(tb, dnnl::memory::data_type::bf16),
       desc(Transpose::kNo, dnnl::memory::data_type::f32)},
      attributes, engine);
  primitive = std::make_unique<Primitive>(
      Primitive{dnnl::matmul(made), dnnl::memory(made.scratchpad_desc(), engine)});
  return *primitive;
}

DnnlGemm::DnnlGemm() {
  [[maybe_unused]] static const bool made = MakeCode();  // for all objects
}
DnnlGemm::~DnnlGemm() = default;

Status DnnlGemm::F32(Transpose ta, ConstMatrix a, Transpose tb, ConstMatrix b, float beta,
                     Matrix c) {
  const GemmShape s = ShapeOf(ta, a, tb, b, c);
  RunSingleThreaded();
  const auto letter = [](Transpose t) { return t == Transpose::kYes ? 'T' : 'N'; };
  const auto dim = [](size_t n) { return static_cast<dnnl_dim_t>(n); };
  const dnnl_status_t status =
      dnnl_sgemm(letter(ta), letter(tb), dim(s.m), dim(s.n), dim(s.k), 1.0f, a.data, dim(a.stride),
                 b.data, dim(b.stride), beta, c.data, dim(c.stride));
  if (status != dnnl_success) return Fail(LibraryError(status));
  return {};
}

Status DnnlGemm::F16(Transpose ta, ConstMatrix16 a, Transpose tb, ConstMatrix16 b, float beta,
                     Matrix c) {
  RunSingleThreaded();
  try {
    if (!impl_) impl_ = std::make_unique<Impl>();
    Impl::Primitive& primitive = impl_->For(ta, tb, beta != 0);
    const auto bf16 = dnnl::memory::data_type::bf16;
    primitive.run.execute(
        impl_->stream,
        {{DNNL_ARG_SRC, Wrap(impl_->engine, bf16, ta, a)},
         {DNNL_ARG_WEIGHTS, Wrap(impl_->engine, bf16, tb, b)},
         {DNNL_ARG_DST, Wrap(impl_->engine, dnnl::memory::data_type::f32, Transpose::kNo, c)},
         {DNNL_ARG_SCRATCHPAD, primitive.scratchpad}});
    impl_->stream.wait();
  } catch (const dnnl::error& error) {
    return Fail(LibraryError(error.status));
  }
  return {};
}

bool HasFastBf16() {
  return ThisCpu().avx512_bf16 && dnnl_get_effective_cpu_isa() >= dnnl_cpu_isa_avx512_core_bf16;
}

}  // namespace tacit::ops
