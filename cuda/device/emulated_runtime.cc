// runtime.h played on the CPU (emulated_driver.h). Device memory is the host's, each piece an
// allocation of its own and full of 0xCD. Streams keep their work and run it when a caller waits,
// in any order that events allow, so that a missing wait shows: as a wrong result, and under the
// thread sanitizer, to which each stream is a thread of execution, as a race between two lines.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/threads/mutex.h"
#include "cuda/device/emulated.h"
#include "cuda/device/emulated_driver.h"
#include "cuda/device/emulator.h"
#include "cuda/device/errors.h"
#include "cuda/device/runtime.h"

namespace tacit::cuda {
namespace {

using emulated::Capture;
using emulated::EmulatedEvent;
using emulated::EmulatedGraph;
using emulated::EmulatedStream;
using emulated::Mark;
using emulated::TheDriver;
using runtime::Code;
using runtime::kSuccess;
using runtime::LaunchShape;

constexpr size_t kSharedBytesMax = 227 << 10;  // of compute capability 9.0
constexpr uint64_t kThreadsPerBlockMax = 1024;

EmulatedStream* Of(runtime::Stream stream) { return static_cast<EmulatedStream*>(stream); }

}  // namespace

// Calls of several threads run one after the other.
#define TACIT_LOCK() const MutexLock lock(TheDriver().mutex())

namespace emulated {

void Reset(const Machine& machine) {
  TACIT_LOCK();
  TheDriver().Reset(machine);
}
void FailCall(uint64_t calls, int code) {
  TACIT_LOCK();
  TheDriver().FailIn(calls, code);
}
void RefuseMemory(bool refuse) {
  TACIT_LOCK();
  TheDriver().RefuseMemory(refuse);
}
uint64_t Calls() {
  TACIT_LOCK();
  return TheDriver().calls();
}
void SetTurns(Turns turns) {
  TACIT_LOCK();
  TheDriver().SetTurns(turns);
}
const std::map<std::string, KernelUse>& Kernels() {
  TACIT_LOCK();
  return TheDriver().kernels();
}
uint64_t BytesTaken() {
  TACIT_LOCK();
  return TheDriver().BytesTaken();
}
uint64_t PinnedBytesTaken() {
  TACIT_LOCK();
  return TheDriver().BytesTaken() - TheDriver().BytesTakenOnDevice();
}

}  // namespace emulated

namespace runtime {

#define TACIT_ENTER() \
  TACIT_LOCK();       \
  if (const Code failed = TheDriver().Enter()) return failed

// The same, for calls that want this thread to have its device.
#define TACIT_ENTER_BOUND() \
  TACIT_ENTER();            \
  if (!TheDriver().bound()) return code::kInvalidDevice

Code DriverVersion(int* version) {
  TACIT_ENTER();
  *version = TheDriver().machine().driver_version;
  return kSuccess;
}
Code DeviceCount(int* count) {
  TACIT_ENTER();
  const auto& machine = TheDriver().machine();
  if (machine.driver_version < kCudaVersionMin) return code::kInsufficientDriver;
  if (machine.devices == 0) return code::kNoDevice;
  *count = machine.devices;
  return kSuccess;
}
Code GetProperties(int ordinal, Properties* properties) {
  TACIT_ENTER();
  const auto& machine = TheDriver().machine();
  if (ordinal >= machine.devices) return code::kInvalidDevice;
  std::strncpy(properties->name, "emulated on the CPU", sizeof(properties->name) - 1);
  for (int i = 0; i < 16; ++i) properties->uuid[i] = static_cast<char>(17 * i);
  properties->major = machine.major;
  properties->minor = machine.minor;
  properties->multiprocessors = 2;
  properties->memory_bytes = machine.memory_bytes;
  properties->shared_bytes_per_block_max = kSharedBytesMax;
  properties->memory_piece_bytes = machine.memory_piece_bytes;
  return kSuccess;
}
Code UseDevice(int ordinal) {
  TACIT_ENTER();
  if (const Code failed = TheDriver().machine().use_device_code) return failed;
  TheDriver().Open(ordinal);
  return kSuccess;
}
Code BindThread(int ordinal) {
  TACIT_ENTER();
  if (ordinal >= TheDriver().machine().devices) return code::kInvalidDevice;
  emulated::Driver::Bind(ordinal);
  return kSuccess;
}
Code MemoryFree(size_t* free, size_t* total) {
  TACIT_ENTER_BOUND();
  *free = TheDriver().free_bytes();
  *total = TheDriver().machine().memory_bytes;
  return kSuccess;
}

Code Allocate(void** memory, size_t bytes) {
  TACIT_ENTER_BOUND();
  return TheDriver().Take(memory, bytes, true);
}
Code Free(void* memory) {
  TACIT_LOCK();
  return TheDriver().Give(memory);
}
Code AllocateHost(void** memory, size_t bytes) {
  TACIT_ENTER_BOUND();
  return TheDriver().Take(memory, bytes, false);
}
Code FreeHost(void* memory) {
  TACIT_LOCK();
  return TheDriver().Give(memory);
}

Code MakeStream(Stream* stream) {
  TACIT_ENTER_BOUND();
  *stream = TheDriver().AddStream();
  return kSuccess;
}
Code DropStream(Stream stream) {
  TACIT_LOCK();
  TheDriver().DropStream(Of(stream));
  return kSuccess;
}
Code MakeEvent(Event* event) {
  TACIT_ENTER_BOUND();
  *event = new EmulatedEvent;
  return kSuccess;
}
Code DropEvent(Event event) {
  TACIT_LOCK();
  delete static_cast<EmulatedEvent*>(event);
  return kSuccess;
}

Code Copy(void* to, const void* from, size_t bytes, Stream stream) {
  TACIT_ENTER_BOUND();
  TheDriver().Put(Of(stream), [=] { std::memcpy(to, from, bytes); });
  return kSuccess;
}
Code Fill(void* memory, uint8_t value, size_t bytes, Stream stream) {
  TACIT_ENTER_BOUND();
  TheDriver().Put(Of(stream), [=] { std::memset(memory, value, bytes); });
  return kSuccess;
}

Code Record(Event event, Stream stream) {
  TACIT_ENTER_BOUND();
  auto* const recorded = static_cast<EmulatedEvent*>(event);
  if (const auto& capture = Of(stream)->capture) {
    capture->Record(Of(stream), recorded);
    return kSuccess;
  }
  recorded->last = std::make_shared<Mark>();
  TheDriver().Push(Of(stream), {.run = {}, .needs = nullptr, .marks = recorded->last});
  return kSuccess;
}
Code Wait(Stream stream, Event event) {
  TACIT_ENTER_BOUND();
  const auto* const recorded = static_cast<const EmulatedEvent*>(event);
  auto& capture = Of(stream)->capture;
  // An event that was recorded in another stream's capture takes this stream in.
  if (capture == nullptr) {
    capture = TheDriver().CaptureWith(recorded);
    if (capture != nullptr) capture->AddLane(Of(stream));
  }
  if (capture != nullptr) {
    const auto mark = capture->mark_of.find(recorded);
    if (mark == capture->mark_of.end()) {
      capture->broken = true;
      return code::kStreamCaptureUnsupported;
    }
    capture->Wait(Of(stream), mark->second);
    return kSuccess;
  }
  TheDriver().Push(Of(stream), {.run = {}, .needs = recorded->last, .marks = nullptr});
  return kSuccess;
}
Code Synchronize(Stream stream) {
  TACIT_LOCK();
  const Code failed = TheDriver().Enter();
  // A wait that reports a failure has waited all the same, or nothing would ever run again.
  if (failed != kSuccess && LosesDevice(failed)) return failed;
  if (Of(stream)->capture != nullptr) {
    Of(stream)->capture->broken = true;
    return code::kStreamCaptureUnsupported;
  }
  TheDriver().WaitFor(Of(stream));
  return failed;
}
Code SynchronizeEvent(Event event) {
  TACIT_ENTER_BOUND();
  if (const auto capture = TheDriver().CaptureWith(static_cast<EmulatedEvent*>(event))) {
    capture->broken = true;
    return code::kStreamCaptureUnsupported;
  }
  TheDriver().WaitFor(static_cast<EmulatedEvent*>(event)->last);
  return kSuccess;
}

Code BeginCapture(Stream stream) {
  TACIT_ENTER_BOUND();
  EmulatedStream& to = *Of(stream);
  if (to.capture != nullptr) return code::kStreamCaptureUnsupported;
  to.capture = std::make_shared<Capture>();
  to.capture->AddLane(&to);
  return kSuccess;
}
Code EndCapture(Stream stream, Graph* graph) {
  TACIT_LOCK();
  const std::shared_ptr<Capture> capture = std::move(Of(stream)->capture);
  for (EmulatedStream* lane : capture->lanes) lane->capture = nullptr;  // even where this fails
  if (const Code failed = TheDriver().Enter()) return failed;
  if (!TheDriver().bound()) return code::kInvalidDevice;
  if (capture->broken) return code::kStreamCaptureInvalidated;
  if (!capture->Joined()) return code::kStreamCaptureUnjoined;
  auto* const made = new EmulatedGraph{
      .work = std::move(capture->work), .marks = capture->mark_before.size(), .lanes = {}};
  for (size_t lane = 1; lane < capture->lanes.size(); ++lane)
    made->lanes.push_back(TheDriver().AddStream());
  *graph = made;
  return kSuccess;
}
Code LaunchGraph(Graph graph, Stream stream) {
  TACIT_ENTER_BOUND();
  TheDriver().Launch(*static_cast<EmulatedGraph*>(graph), Of(stream));
  return kSuccess;
}
Code DropGraph(Graph graph) {
  TACIT_LOCK();
  auto* const dropped = static_cast<EmulatedGraph*>(graph);
  for (EmulatedStream* lane : dropped->lanes) TheDriver().DropStream(lane);
  delete dropped;
  return kSuccess;
}

Code LaunchKernel(const void*, const LaunchShape&, void**, Stream) {
  TACIT_CHECK(false, "a kernel for a device was launched on the emulated one");
  return code::kInvalidValue;
}
Code LaunchEmulated(const char* name, const LaunchShape& shape, std::function<void()> body,
                    Stream stream) {
  TACIT_ENTER_BOUND();
  const bool fits = shape.grid.count() > 0 && shape.grid.y < 65536 && shape.grid.z < 65536 &&
                    shape.block.count() > 0 && shape.block.count() <= kThreadsPerBlockMax &&
                    shape.shared_bytes <= kSharedBytesMax;
  if (!fits) return code::kInvalidConfiguration;
  TheDriver().CountLaunch(name, shape);
  TheDriver().Put(Of(stream),
                  [name, shape, body = std::move(body)] { emulator::Run(name, shape, body); });
  return kSuccess;
}

// The map is what was said of the matrix; StartTile reads it.
Code MakeTensorMap(const Tiles& tiles, void* map) {
  TACIT_ENTER_BOUND();
  std::memcpy(map, &tiles, sizeof(tiles));
  return kSuccess;
}

const char* ErrorName(Code code) {
  switch (code) {
    case code::kInvalidValue:
      return "cudaErrorInvalidValue";
    case code::kMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case code::kInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case code::kInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case code::kDevicesUnavailable:
      return "cudaErrorDevicesUnavailable";
    case code::kNoDevice:
      return "cudaErrorNoDevice";
    case code::kInvalidDevice:
      return "cudaErrorInvalidDevice";
    case code::kNoKernelImageForDevice:
      return "cudaErrorNoKernelImageForDevice";
    case code::kEccUncorrectable:
      return "cudaErrorECCUncorrectable";
    case code::kIllegalAddress:
      return "cudaErrorIllegalAddress";
    case code::kLaunchFailure:
      return "cudaErrorLaunchFailure";
    case code::kStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case code::kStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case code::kStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    default:
      return "cudaErrorUnknown";
  }
}
const char* ErrorText(Code code) { return LosesDevice(code) ? "as a test asked for" : "emulated"; }

}  // namespace runtime
}  // namespace tacit::cuda
