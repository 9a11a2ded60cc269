#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "cuda/kernels/gemm.h"

// Parts that both precisions' products share.
namespace tacit::cuda {

template <class T>
struct GemmArgs {
  DeviceMatrix<const T> a, b;
  DeviceMatrix<float> c;  // with splits: the work of the first, rows without gaps
  uint32_t m, n, k;
  uint32_t k_each;  // of a split
  float beta;
};

// Checks the arguments, and writes down what the kernel needs. `depth` is how many of k a kernel
// takes at a time.
template <class T>
GemmArgs<T> MakeGemmArgs(Form form_a, DeviceMatrix<const T> a, Form form_b, DeviceMatrix<const T> b,
                         float beta, DeviceMatrix<float> c, const GemmPlan& plan,
                         DeviceSpan<float> work, uint32_t depth) {
  const bool ta = form_a == Form::kTransposed, tb = form_b == Form::kTransposed;
  GemmArgs<T> args{.a = a,
                   .b = b,
                   .c = c,
                   .m = ta ? a.cols : a.rows,
                   .n = tb ? b.rows : b.cols,
                   .k = ta ? a.rows : a.cols,
                   .k_each = 0,
                   .beta = beta};
  TACIT_CHECK((tb ? b.cols : b.rows) == args.k && c.rows == args.m && c.cols == args.n,
              "GEMM shapes differ");
  TACIT_CHECK(a.stride >= a.cols && b.stride >= b.cols && c.stride >= c.cols, "rows overlap");
  TACIT_CHECK(beta == 0 || beta == 1, "beta is 0 or 1");
  TACIT_CHECK(plan.tile == 64 || plan.tile == 128 ||
              (plan.tile == 256 && plan.way == GemmWay::kWgmma));
  TACIT_CHECK(plan.splits >= 1 && plan.splits <= 65535);
  TACIT_CHECK(work.size >= GemmWorkFloats(plan, args.m, args.n), "too little work");
  const uint32_t steps = (args.k + depth - 1) / depth;
  args.k_each = std::max(1u, (steps + plan.splits - 1) / plan.splits) * depth;
  if (plan.splits > 1) {
    args.c = {work.data, args.m, args.n, args.n};
    args.beta = 0;
  }
  return args;
}

}  // namespace tacit::cuda
