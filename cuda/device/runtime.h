#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

// The few calls of CUDA's runtime that Tacit makes, one function each. Two files define them:
// runtime.cc calls cudart, emulated_runtime.cc plays the device on the CPU. A program links one.
// Everything else in this room is written on top of them, so that tests of the emulated device run
// the same code as the real one. Only this room includes this header.
//
// Each call returns CUDA's error number, 0 for success; errors.h knows the numbers.
namespace tacit::cuda::runtime {

using Code = int;
inline constexpr Code kSuccess = 0;

// Opaque handles. `Stream` is cudaStream_t on the device, and so on.
using Stream = void*;
using Event = void*;
using Graph = void*;

struct Properties {
  char name[256] = {};
  char uuid[16] = {};
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t memory_bytes = 0;
  size_t shared_bytes_per_block_max = 0;
  size_t memory_piece_bytes = 1;  // memory is handed out in multiples of it
};

// 0 where no driver is installed.
Code DriverVersion(int* version);
Code DeviceCount(int* count);
Code GetProperties(int ordinal, Properties* properties);
// Sets this thread's device from here on. Makes the context, so most faults of a device show here.
Code UseDevice(int ordinal);
// The same for another thread: a context that is there already becomes this thread's.
Code BindThread(int ordinal);
Code MemoryFree(size_t* free, size_t* total);

Code Allocate(void** memory, size_t bytes);
Code Free(void* memory);
// Pinned: copies from and to it run beside the host.
Code AllocateHost(void** memory, size_t bytes);
Code FreeHost(void* memory);

Code MakeStream(Stream* stream);
// Waits for the stream's work first.
Code DropStream(Stream stream);
Code MakeEvent(Event* event);
Code DropEvent(Event event);

// These put work on the stream and return. Memory that they name must not change until it has run.
Code Copy(void* to, const void* from, size_t bytes, Stream stream);
Code Fill(void* memory, uint8_t value, size_t bytes, Stream stream);
Code Record(Event event, Stream stream);
Code Wait(Stream stream, Event event);
// Waits until all that was put on the stream has run.
Code Synchronize(Stream stream);
// Waits until the work before the event's last record has run.
Code SynchronizeEvent(Event event);

// Work put on the stream between these two calls is recorded and not run.
Code BeginCapture(Stream stream);
Code EndCapture(Stream stream, Graph* graph);
Code LaunchGraph(Graph graph, Stream stream);
Code DropGraph(Graph graph);

// A kernel's grid and blocks.
struct Extent {
  uint32_t x = 1, y = 1, z = 1;
  constexpr uint64_t count() const { return uint64_t{x} * y * z; }
};
struct LaunchShape {
  Extent grid, block;
  size_t shared_bytes = 0;
};
// `arguments` as cudaLaunchKernel wants them. On the device alone.
Code LaunchKernel(const void* kernel, const LaunchShape& shape, void** arguments, Stream stream);
// `body` is the kernel with its arguments bound. Emulated alone; the name is for messages.
Code LaunchEmulated(const char* name, const LaunchShape& shape, std::function<void()> body,
                    Stream stream);

// A bf16 matrix and the tiles of it that kernels bring with the copy engine.
struct Tiles {
  const void* data = nullptr;
  uint64_t cols = 0, rows = 0, stride_bytes = 0;
  uint32_t tile_cols = 0, tile_rows = 0;
};
// Writes a CUtensorMap of 128 bytes, aligned to 64.
Code MakeTensorMap(const Tiles& tiles, void* map);

// CUDA's own name and sentence for an error number.
const char* ErrorName(Code code);
const char* ErrorText(Code code);

}  // namespace tacit::cuda::runtime
