#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "cuda/device/runtime.h"

// Runs kernels on the CPU: each of their threads is a fiber, and fibers of a few blocks take turns
// in an order that a seed decides. It is for finding faults in kernels, not for speed. It finds
//
//   a missing barrier       wrong results under some seed; the thread sanitizer names both lines
//   a barrier or collective that not all reach, threads at different barriers, lanes in different
//   collectives, lanes that are not there: the process ends and says which thread stands where
//   reading what an asynchronous copy has not brought yet: shared memory is full of 0xCD
//   a factor that is overwritten before its product is done, sums that are read before it is:
//   products of a warpgroup are computed when they are asked for or when they are waited for, as
//   the seed decides more shared memory than the launch gave, copies that are not aligned to 16
//   bytes writing past shared memory or a buffer: the address sanitizer, for each is an allocation
//
// It does not find: memory order weaker than the host's, progress that a real scheduler denies,
// registers spilled, bank conflicts, time.
//
// Process-wide and for one thread at a time, as the device it plays. emulator.cc is compiled
// without sanitizers and reports every switch between fibers to them.
namespace tacit::cuda::emulator {

// Sets the order of turns from here on, and how many blocks run at the same time. A failure prints
// the seed. TACIT_EMULATOR_SEED in the environment overrides the seed that a process begins with,
// which is 1.
void SetSeed(uint64_t seed, unsigned resident_blocks = 3);
// The number of switches from one fiber to another since the process began.
uint64_t Switches();

// The rest of this header is for kernel_emulated.h and emulated_runtime.cc.

// A place in a source file.
struct Line {
  const char* file = "";
  int line = 0;
};

// The position of the calling thread.
struct Place {
  runtime::Extent thread, block, block_size, grid_size;
  uint32_t rank = 0;  // of the thread in its block
};
const Place& Here();

void SyncBlock(Line line);
void SyncWarp(uint32_t mask, Line line);
void* SharedMemory(size_t bytes);
// Ends the process unless 16 bytes can be moved at this address.
void CheckAligned(const void* address);

// All lanes of a mask at one place, and the value that each of them brings. It is no fence for
// memory.
class Meeting {
 public:
  static constexpr size_t kBytesMax = 32;

  template <class T>
  Meeting(uint32_t mask, const char* what, Line line, const T& mine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kBytesMax);
    Arrive(mask, what, line, static_cast<const void*>(&mine), sizeof(T));
  }
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // REQUIRES a lane of the mask; what others bring is undefined, as on the device.
  template <class T>
  T Of(uint32_t lane) const {
    T value;
    Read(lane, static_cast<void*>(&value), sizeof(T));
    return value;
  }

 private:
  void Arrive(uint32_t mask, const char* what, Line line, const void* mine, size_t bytes);
  void Read(uint32_t lane, void* to, size_t bytes) const;

  void* collective_ = nullptr;
};

struct AsyncCopy {
  void* to;
  const void* from;
  uint32_t bytes;  // zeros follow, up to 16
};
void StartCopy(AsyncCopy copy);
void CommitCopies();
// Takes the next copy of all groups but the newest `left` of this thread, which the caller carries
// out now; false when there is none.
bool TakeCopy(size_t left, AsyncCopy* copy);

// Shared memory has addresses of its own, of 32 bits. It begins at none that is a multiple of 1,024
// but by chance, as on the device.
uint32_t SharedAddress(const void* pointer);
// Ends the process unless the bytes lie in the block's shared memory.
void* SharedPointer(uint32_t address, size_t bytes);

// A barrier in shared memory that counts (mbarrier): a phase ends when all have arrived and all
// bytes that were announced have come. Phases are counted by parity; the first has parity 0.
struct Counter {
  uint64_t word;
};
void InitCounter(Counter* counter, uint32_t arrivals);
void Arrive(Counter* counter, uint32_t bytes_announced);
// Returns true when the phase of that parity has ended.
bool HasPassed(const Counter* counter, uint32_t parity);
// Gives the turn away until some counter of the block may have passed.
void AwaitCounters(Line line);

// A tile on its way into shared memory. A thread that waits for a counter carries it out, any of
// them in any order; a block must not end before all have come.
struct TileCopy {
  runtime::Tiles from;
  unsigned char* to;
  uint32_t row, col;  // of the tile's first number
  Counter* counter;   // which its bytes count for
};
void StartTile(const TileCopy& copy);
// False when none is on its way.
bool TakeTile(TileCopy* copy);
void TileHasCome(const TileCopy& copy, uint32_t bytes);

// A product that a warpgroup computes by itself: this thread's sums of it.
struct AsyncProduct {
  void (*compute)(float* sum, uint64_t a, uint64_t b, bool adds);
  float* sum;
  uint64_t a, b;
  bool adds;
};
void StartProduct(const AsyncProduct& product);
void CommitProducts();
// Takes the next product, which the caller computes now: of any group with `left` -1, else of all
// groups but the newest `left`.
bool TakeProduct(int left, AsyncProduct* product);

// Runs a kernel to its end. `name` is for messages.
void Run(const char* name, const runtime::LaunchShape& shape, const std::function<void()>& body);

// Draws from the emulator's own randomness, for other code that shuffles: below n.
uint64_t Draw(uint64_t n);

}  // namespace tacit::cuda::emulator
