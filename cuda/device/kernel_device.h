#pragma once

// kernel.h for nvcc: each name is one intrinsic or one instruction of PTX.
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda/device/stream.h"

#define TACIT_KERNEL __global__ void
#define TACIT_KERNEL_OF(threads, blocks) __global__ void __launch_bounds__(threads, blocks)
#define TACIT_IN_KERNEL __device__ __forceinline__
#define TACIT_IN_PLACE __grid_constant__

namespace tacit::cuda {

TACIT_IN_KERNEL uint3 ThreadIndex() { return threadIdx; }
TACIT_IN_KERNEL uint3 BlockIndex() { return blockIdx; }
TACIT_IN_KERNEL dim3 BlockSize() { return blockDim; }
TACIT_IN_KERNEL dim3 GridSize() { return gridDim; }
TACIT_IN_KERNEL uint32_t ThreadRank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

TACIT_IN_KERNEL void SyncBlock() { __syncthreads(); }
TACIT_IN_KERNEL void SyncWarp(uint32_t mask = ~0u) { __syncwarp(mask); }
template <class T>
TACIT_IN_KERNEL T Shuffle(T value, uint32_t lane, uint32_t mask = ~0u) {
  return __shfl_sync(mask, value, static_cast<int>(lane));
}
TACIT_IN_KERNEL uint32_t Ballot(bool predicate, uint32_t mask = ~0u) {
  return __ballot_sync(mask, predicate);
}

TACIT_IN_KERNEL bool Opaque(bool condition) {
  uint32_t number = condition;
  asm volatile("" : "+r"(number));
  return number != 0;
}

template <class T>
TACIT_IN_KERNEL T& SharedAs() {
  static_assert(alignof(T) <= 128);
  extern __shared__ __align__(128) unsigned char tacit_shared[];
  return *reinterpret_cast<T*>(tacit_shared);
}

TACIT_IN_KERNEL uint32_t AtomicAdd(uint32_t* to, uint32_t value) { return atomicAdd(to, value); }
TACIT_IN_KERNEL int64_t AtomicAdd(int64_t* to, int64_t value) {
  return static_cast<int64_t>(
      atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value)));
}

TACIT_IN_KERNEL uint32_t AtomicMin(uint32_t* to, uint32_t value) { return atomicMin(to, value); }

TACIT_IN_KERNEL void CopyAsync(void* to, const void* from, uint32_t bytes) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes)
               : "memory");
}
TACIT_IN_KERNEL void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int n>
TACIT_IN_KERNEL void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}

TACIT_IN_KERNEL void LoadMatrix4(uint32_t (&r)[4], const void* row) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}
TACIT_IN_KERNEL void LoadMatrix4Transposed(uint32_t (&r)[4], const void* row) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}
TACIT_IN_KERNEL void LoadMatrix2Transposed(uint32_t (&r)[2], const void* row) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared)
               : "memory");
}
TACIT_IN_KERNEL void Mma16816(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

TACIT_IN_KERNEL float Fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TACIT_IN_KERNEL double Fma(double a, double b, double c) { return __fma_rn(a, b, c); }
TACIT_IN_KERNEL float Sqrt(float x) { return __fsqrt_rn(x); }
TACIT_IN_KERNEL double Sqrt(double x) { return __dsqrt_rn(x); }
TACIT_IN_KERNEL double Abs(double x) { return fabs(x); }
TACIT_IN_KERNEL double Exp(double x) { return exp(x); }
TACIT_IN_KERNEL double Expm1(double x) { return expm1(x); }
TACIT_IN_KERNEL double Log1p(double x) { return log1p(x); }
TACIT_IN_KERNEL double Erfc(double x) { return erfc(x); }
TACIT_IN_KERNEL double Pow(double x, double y) { return pow(x, y); }
TACIT_IN_KERNEL uint32_t CountBits(uint32_t bits) { return static_cast<uint32_t>(__popc(bits)); }

// Puts a kernel on the stream. The arguments are copied now.
template <class... P>
Status Launch(Stream& stream, const char* name, const runtime::LaunchShape& shape,
              void (*kernel)(P...), std::type_identity_t<P>... arguments) {
  if (stream.Lists(reinterpret_cast<const void*>(kernel), shape, arguments...)) return {};
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  return LaunchKernel(stream, name, reinterpret_cast<const void*>(kernel), shape, pointers);
}

}  // namespace tacit::cuda
