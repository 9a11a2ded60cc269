#pragma once

#include <cstdint>

#include "cuda/device/kernel.h"

// Neighbouring numbers that a thread reads and writes at once. In an unnamed namespace, as all that
// is in kernels alone.
namespace tacit::cuda {
namespace {

template <class T, uint32_t n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Vector {
  T x[n];
};

// Says whether all of a vector is there, in one piece: `count` numbers from `at` on are.
template <class V, class T>
TACIT_IN_KERNEL bool IsWhole(const T* at, uint32_t count) {
  return count >= sizeof(V) / sizeof(T) && reinterpret_cast<uintptr_t>(at) % alignof(V) == 0;
}
// The numbers from `at` on, of which `count` are there; zeros behind them.
template <uint32_t n, class T>
TACIT_IN_KERNEL Vector<T, n> LoadVector(const T* at, uint32_t count) {
  using V = Vector<T, n>;
  if (IsWhole<V>(at, count)) return *reinterpret_cast<const V*>(at);
  V v = {};
  TACIT_UNROLL
  for (uint32_t i = 0; i < n; ++i)
    if (i < count) v.x[i] = at[i];
  return v;
}
template <uint32_t n, class T>
TACIT_IN_KERNEL void StoreVector(const Vector<T, n>& v, uint32_t count, T* at) {
  using V = Vector<T, n>;
  if (IsWhole<V>(at, count)) {
    *reinterpret_cast<V*>(at) = v;
    return;
  }
  TACIT_UNROLL
  for (uint32_t i = 0; i < n; ++i)
    if (i < count) at[i] = v.x[i];
}

}  // namespace
}  // namespace tacit::cuda
