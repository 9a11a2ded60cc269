// runtime.h over cudart, which is linked statically: the program starts where there is no driver.
// The only file that includes headers of CUDA, and no nvcc is needed for it. The driver's own
// functions are asked for by name, because nothing is linked with the driver.
#include "cuda/device/runtime.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "cuda/device/errors.h"

namespace tacit::cuda::runtime {
namespace {

static_assert(kSuccess == cudaSuccess);
static_assert(code::kInvalidValue == cudaErrorInvalidValue);
static_assert(code::kMemoryAllocation == cudaErrorMemoryAllocation);
static_assert(code::kInvalidConfiguration == cudaErrorInvalidConfiguration);
static_assert(code::kInsufficientDriver == cudaErrorInsufficientDriver);
static_assert(code::kDevicesUnavailable == cudaErrorDevicesUnavailable);
static_assert(code::kNoDevice == cudaErrorNoDevice);
static_assert(code::kInvalidDevice == cudaErrorInvalidDevice);
static_assert(code::kNoKernelImageForDevice == cudaErrorNoKernelImageForDevice);
static_assert(code::kEccUncorrectable == cudaErrorECCUncorrectable);
static_assert(code::kUnsupportedPtxVersion == cudaErrorUnsupportedPtxVersion);
static_assert(code::kInvalidResourceHandle == cudaErrorInvalidResourceHandle);
static_assert(code::kIllegalAddress == cudaErrorIllegalAddress);
static_assert(code::kLaunchOutOfResources == cudaErrorLaunchOutOfResources);
static_assert(code::kLaunchFailure == cudaErrorLaunchFailure);
static_assert(code::kSystemDriverMismatch == cudaErrorSystemDriverMismatch);
static_assert(code::kStreamCaptureUnsupported == cudaErrorStreamCaptureUnsupported);
static_assert(code::kStreamCaptureInvalidated == cudaErrorStreamCaptureInvalidated);
static_assert(code::kUnknown == cudaErrorUnknown);
static_assert(kCudaVersionMin <= CUDART_VERSION);

// A kernel must ask for shared memory beyond this.
constexpr size_t kSharedBytesUnasked = 48 << 10;

cudaStream_t Of(Stream stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t EventOf(Event event) { return static_cast<cudaEvent_t>(event); }
dim3 Of(const Extent& extent) { return {extent.x, extent.y, extent.z}; }

// Steps last some hundred microseconds, and to be woken up takes a sixth of that. So the host first
// looks again and again, and lets others run in between; it sleeps when the work takes longer.
constexpr std::chrono::microseconds kLookFor{1000};
template <class Look>
bool IsDoneSoon(const Look& look, Code* code) {
  const auto until = std::chrono::steady_clock::now() + kLookFor;
  do {
    *code = look();
    if (*code != cudaErrorNotReady) return true;
    sched_yield();
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

}  // namespace

Code DriverVersion(int* version) { return cudaDriverGetVersion(version); }
Code DeviceCount(int* count) { return cudaGetDeviceCount(count); }

Code GetProperties(int ordinal, Properties* properties) {
  cudaDeviceProp from;
  if (const Code code = cudaGetDeviceProperties(&from, ordinal)) return code;
  std::copy_n(from.name, sizeof(properties->name) - 1, properties->name);
  static_assert(sizeof(from.uuid.bytes) == sizeof(properties->uuid));
  std::memcpy(properties->uuid, from.uuid.bytes, sizeof(properties->uuid));
  properties->major = from.major;
  properties->minor = from.minor;
  properties->multiprocessors = from.multiProcessorCount;
  properties->memory_bytes = from.totalGlobalMem;
  properties->shared_bytes_per_block_max = from.sharedMemPerBlockOptin;
  // An assumption: no call of CUDA's tells it. Small buffers may share a piece; they count as one
  // each, so that plans ask for more and never for less.
  properties->memory_piece_bytes = size_t{2} << 20;
  return kSuccess;
}

Code UseDevice(int ordinal) {
  if (const Code code = cudaSetDevice(ordinal)) return code;
  // The host sleeps while it waits for long: a trainer shares its cores with the server.
  if (const Code code = cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync)) return code;
  return cudaFree(nullptr);
}
Code BindThread(int ordinal) { return cudaSetDevice(ordinal); }
Code MemoryFree(size_t* free, size_t* total) { return cudaMemGetInfo(free, total); }

Code Allocate(void** memory, size_t bytes) {
  const Code code = cudaMalloc(memory, bytes);
  // An allocation that fails leaves its error behind for the next call that asks.
  if (code == cudaErrorMemoryAllocation) (void)cudaGetLastError();
  return code;
}
Code Free(void* memory) { return cudaFree(memory); }
Code AllocateHost(void** memory, size_t bytes) {
  const Code code = cudaMallocHost(memory, bytes);
  if (code == cudaErrorMemoryAllocation) (void)cudaGetLastError();
  return code;
}
Code FreeHost(void* memory) { return cudaFreeHost(memory); }

// The stream lacks the implicit order to the default stream, which nothing here uses.
Code MakeStream(Stream* stream) {
  return cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(stream), cudaStreamNonBlocking);
}
Code DropStream(Stream stream) {
  (void)cudaStreamSynchronize(Of(stream));
  return cudaStreamDestroy(Of(stream));
}
Code MakeEvent(Event* event) {
  return cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(event),
                                  cudaEventDisableTiming | cudaEventBlockingSync);
}
Code DropEvent(Event event) { return cudaEventDestroy(EventOf(event)); }

Code Copy(void* to, const void* from, size_t bytes, Stream stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, Of(stream));
}
Code Fill(void* memory, uint8_t value, size_t bytes, Stream stream) {
  return cudaMemsetAsync(memory, value, bytes, Of(stream));
}
Code Record(Event event, Stream stream) { return cudaEventRecord(EventOf(event), Of(stream)); }
Code Wait(Stream stream, Event event) {
  return cudaStreamWaitEvent(Of(stream), EventOf(event), cudaEventWaitDefault);
}
Code Synchronize(Stream stream) {
  Code code = kSuccess;
  if (IsDoneSoon([&] { return cudaStreamQuery(Of(stream)); }, &code)) return code;
  return cudaStreamSynchronize(Of(stream));
}
Code SynchronizeEvent(Event event) {
  Code code = kSuccess;
  if (IsDoneSoon([&] { return cudaEventQuery(EventOf(event)); }, &code)) return code;
  return cudaEventSynchronize(EventOf(event));
}

Code BeginCapture(Stream stream) {
  return cudaStreamBeginCapture(Of(stream), cudaStreamCaptureModeThreadLocal);
}
Code EndCapture(Stream stream, Graph* graph) {
  cudaGraph_t captured = nullptr;
  if (const Code code = cudaStreamEndCapture(Of(stream), &captured)) return code;
  const Code code = cudaGraphInstantiate(reinterpret_cast<cudaGraphExec_t*>(graph), captured, 0);
  (void)cudaGraphDestroy(captured);
  return code;
}
Code LaunchGraph(Graph graph, Stream stream) {
  return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), Of(stream));
}
Code DropGraph(Graph graph) { return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }

Code LaunchKernel(const void* kernel, const LaunchShape& shape, void** arguments, Stream stream) {
  if (shape.shared_bytes > kSharedBytesUnasked) {
    if (const Code code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               static_cast<int>(shape.shared_bytes)))
      return code;
  }
  return cudaLaunchKernel(kernel, Of(shape.grid), Of(shape.block), arguments, shape.shared_bytes,
                          Of(stream));
}
// NOLINTNEXTLINE(performance-unnecessary-value-param): the emulator keeps it
Code LaunchEmulated(const char*, const LaunchShape&, std::function<void()>, Stream) {
  TACIT_CHECK(false, "an emulated kernel was launched on a device");
  return cudaErrorUnknown;
}

Code MakeTensorMap(const Tiles& tiles, void* map) {
  constexpr unsigned int kSince = 12000;
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  if (const Code code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, kSince,
                                                         cudaEnableDefault, &found))
    return code;
  if (found != cudaDriverEntryPointSuccess || entry == nullptr) return cudaErrorNotSupported;
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  const cuuint64_t extent[2] = {tiles.cols, tiles.rows};
  const cuuint64_t stride[1] = {tiles.stride_bytes};
  const cuuint32_t tile[2] = {tiles.tile_cols, tiles.tile_rows}, each[2] = {1, 1};
  // The numbers of CUresult that this may give are those of cudaError.
  return static_cast<Code>(encode(static_cast<CUtensorMap*>(map), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                  2, const_cast<void*>(tiles.data), extent, stride, tile, each,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

const char* ErrorName(Code code) { return cudaGetErrorName(static_cast<cudaError_t>(code)); }
const char* ErrorText(Code code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }

}  // namespace tacit::cuda::runtime
