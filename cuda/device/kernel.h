#pragma once

// The names in which kernels are written: one source, compiled by nvcc for the device and by g++
// for the emulated device (emulator.h). A file of kernels, *.cu, includes this and no header of
// CUDA.
//
//   namespace {
//   TACIT_KERNEL Double(DeviceSpan<float> x) {
//     const uint64_t i = GlobalThread();
//     if (i < x.size) x[i] *= 2;
//   }
//   }  // namespace
//   Status DoubleAll(Stream& stream, DeviceSpan<float> x) {
//     return Launch(stream, "Double", {BlocksFor(x.size, 256), {256}}, Double, x);
//   }
//
// Rules that keep the emulation honest: no locks, no spinning, no flags between blocks (a kernel
// ends where blocks depend on each other), no float atomics (their sums depend on the order), no
// function of the standard library.
//
// Names common to both compilers:
//   TACIT_KERNEL_OF(threads, blocks)                       a kernel of that many threads a block,
//                             with few enough registers for that many blocks at a time
//   const TACIT_IN_PLACE T    a parameter whose address the kernel takes: it is not copied
//   ThreadIndex(), BlockIndex(), BlockSize(), GridSize()   {x, y, z}
//   GlobalThread()            the thread's number in a grid of one dimension
//   LaneIndex(), WarpIndex()  within the warp, and the warp's place in its block
//   SyncBlock()               all threads of the block that have not returned; memory as well
//   SyncWarp(mask)            all lanes of the mask; memory as well
//   Shuffle(value, lane, mask), ShuffleXor(value, bits, mask), Ballot(predicate, mask)
//                             all lanes of the mask; nothing is said about memory
//   Opaque(condition)         the same, but the compiler cannot know it, and makes no second copy
//   of
//                             a loop for it
//   SharedAs<T>()             the block's shared memory, a T
//   AtomicAdd(pointer, value) u32 or i64; AtomicMin u32; relaxed; what was there before
//   CopyAsync(to, from, bytes), CopyAsync16(to, from, real), CommitCopies(), WaitCopies<n>()
//                             16 bytes of shared memory: up to 16 from the device's, zeros after
//                             them; there when all but the newest n groups of this thread are
//                             waited for
//   LoadMatrix4, LoadMatrix4Transposed, LoadMatrix2Transposed, Mma16816
//                             fragments of bf16 tiles and their product, as PTX defines ldmatrix
//                             and mma.sync.m16n8k16
//   Fma, Sqrt (float or double), Abs, CountBits: the host's bits
//   Exp, Expm1, Log1p, Erfc, Pow (double)                 nearly so
#include <cstddef>
#include <cstdint>

#include "base/device.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"

namespace tacit::cuda {

inline constexpr uint32_t kWarp = 32;
inline constexpr uint32_t kAllLanes = ~uint32_t{0};

// The grid of `threads` threads in blocks of `block`, in one dimension; one block at least.
inline runtime::Extent BlocksFor(uint64_t threads, uint32_t block) {
  const uint64_t blocks = threads == 0 ? 1 : (threads + block - 1) / block;
  TACIT_CHECK(blocks < uint64_t{1} << 31, "more blocks than a grid can have");
  return {static_cast<uint32_t>(blocks)};
}

}  // namespace tacit::cuda

#if defined(__CUDACC__)
#include "cuda/device/kernel_device.h"
#else
#include "cuda/device/kernel_emulated.h"
#endif

namespace tacit::cuda {

TACIT_IN_KERNEL uint64_t GlobalThread() {
  return uint64_t{BlockIndex().x} * BlockSize().x + ThreadIndex().x;
}
TACIT_IN_KERNEL uint32_t LaneIndex() { return ThreadRank() % kWarp; }
TACIT_IN_KERNEL uint32_t WarpIndex() { return ThreadRank() / kWarp; }

// All of the 16 bytes, or zeros where not `real`.
TACIT_IN_KERNEL void CopyAsync16(void* to, const void* from, bool real) {
  CopyAsync(to, from, real ? 16 : 0);
}

// The value of the lane whose index differs from this one's in these bits.
template <class T>
TACIT_IN_KERNEL T ShuffleXor(T value, uint32_t bits, uint32_t mask = kAllLanes) {
  return Shuffle(value, LaneIndex() ^ bits, mask);
}

}  // namespace tacit::cuda
