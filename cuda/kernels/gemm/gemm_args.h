#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/device.h"
#include "cuda/kernels/gemm/gemm.h"

// Parts that both precisions' products share.
namespace tacit::cuda {

template <class T>
struct GemmArgs {
  DeviceMatrix<const T> a, b;
  DeviceMatrix<float> c;  // with splits: the work of the first, rows without gaps
  uint32_t m, n, k;
  uint32_t k_each;  // of a split
  float beta;
  // Pieces that are multiplied side by side (GemmPieces): the ends of all, and the first of them.
  const uint32_t* piece_end = nullptr;
  uint32_t first_piece = 0;
};

// The part of k that belongs to a split, or to a piece.
struct SplitOfK {
  uint32_t begin, end;

  template <class T>
  TACIT_DEVICE SplitOfK(const GemmArgs<T>& g, uint32_t split) {
    if (g.piece_end != nullptr) {
      const uint32_t piece = g.first_piece + split;
      begin = piece == 0 ? 0 : g.piece_end[piece - 1];
      end = g.piece_end[piece];
      return;
    }
    begin = split * g.k_each;
    end = g.k - begin < g.k_each ? g.k : begin + g.k_each;
    if (begin >= g.k) end = begin;
  }
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

// The same for pieces of the sum of a's rows times b's.
template <class T>
GemmArgs<T> MakePieceArgs(DeviceMatrix<const T> a, DeviceMatrix<const T> b,
                          const GemmPieces& pieces, DeviceSpan<float> work) {
  TACIT_CHECK(a.rows == b.rows && a.stride >= a.cols && b.stride >= b.cols, "GEMM shapes differ");
  TACIT_CHECK(pieces.first + pieces.count <= pieces.end.size && pieces.count <= 65535,
              "pieces that there are not");
  TACIT_CHECK(work.size >= uint64_t{pieces.count} * a.cols * b.cols, "too little work");
  return {.a = a,
          .b = b,
          .c = {work.data, a.cols, b.cols, b.cols},
          .m = a.cols,
          .n = b.cols,
          .k = a.rows,
          .k_each = 0,
          .beta = 0,
          .piece_end = pieces.end.data,
          .first_piece = pieces.first};
}

}  // namespace tacit::cuda
