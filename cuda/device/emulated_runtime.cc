// runtime.h played on the CPU. Device memory is the host's, each piece an allocation of its own and
// full of 0xCD. Streams keep their work and run it when a caller waits, in any order that events
// allow, so that a missing wait shows: as a wrong result, and under the thread sanitizer, to which
// each stream is a thread of execution, as a race between two lines.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cuda/device/emulated.h"
#include "cuda/device/emulator.h"
#include "cuda/device/errors.h"
#include "cuda/device/fiber.h"
#include "cuda/device/runtime.h"

#if defined(TACIT_EMULATOR_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace tacit::cuda {
namespace {

using emulated::KernelUse;
using emulated::Turns;
using runtime::Code;
using runtime::kSuccess;
using runtime::LaunchShape;

constexpr unsigned char kNeverWritten = 0xCD;
constexpr size_t kAlignment = 256;
constexpr size_t kSharedBytesMax = 227 << 10;  // of compute capability 9.0
constexpr uint64_t kThreadsPerBlockMax = 1024;

// One record of an event, done when its stream has reached it. Also the token for tsan.
struct Mark {
  bool done = false;
};

// A piece of work. `needs` must be done before it may run; `marks` is done by it.
struct Work {
  std::function<void()> run;
  std::shared_ptr<Mark> needs, marks;
  std::unique_ptr<char> queued = std::make_unique<char>();  // tsan: host before stream
};

struct EmulatedStream {
  std::deque<Work> work;
  bool capturing = false;
  bool capture_broken = false;
  std::vector<std::function<void()>> captured;
  void* timeline = emulator::MakeTimeline();
  char finished_token = 0;
};

struct EmulatedEvent {
  std::shared_ptr<Mark> last;
};

struct EmulatedGraph {
  std::vector<std::function<void()>> nodes;
};

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
struct Memory {
  std::unique_ptr<void, FreeMemory> bytes;
  uint64_t size = 0;
  bool on_device = false;
};

// As CUDA has it: a thread that has not been told of another has device 0.
thread_local int this_threads_device = 0;

class Driver {
 public:
  void Reset(const emulated::Machine& machine) {
    TACIT_CHECK(streams_.empty() && memory_.empty(), "something of the last device is alive");
    machine_ = machine;
    fail_in_ = calls_ = 0;
    lost_ = kSuccess;
    turns_ = Turns::kShuffled;
    kernels_.clear();
    this_threads_device = opened_ = 0;
  }
  void Open(int ordinal) { this_threads_device = opened_ = ordinal; }
  // Returns true if this thread's device is the one that was opened.
  bool bound() const { return this_threads_device == opened_; }
  const emulated::Machine& machine() const { return machine_; }

  // Called first in every call: returns the error with which it is to fail, or success.
  Code Enter() {
    ++calls_;
    if (lost_ != kSuccess) return lost_;
    if (fail_in_ == 0 || --fail_in_ > 0) return kSuccess;
    if (LosesDevice(fail_with_)) lost_ = fail_with_;
    return fail_with_;
  }

  Code Take(void** memory, size_t bytes, bool on_device) {
    if (on_device && taken_on_device_ + bytes > machine_.memory_bytes)
      return code::kMemoryAllocation;
    void* taken = nullptr;
    TACIT_CHECK(posix_memalign(&taken, kAlignment, bytes) == 0, "no memory");
    std::memset(taken, kNeverWritten, bytes);
    memory_[taken] = {std::unique_ptr<void, FreeMemory>(taken), bytes, on_device};
    if (on_device) taken_on_device_ += bytes;
    *memory = taken;
    return kSuccess;
  }
  Code Give(void* memory) {
    // Waits first, as cudaFree does: work that was launched may still use the memory.
    DrainAll();
    const auto found = memory_.find(memory);
    TACIT_CHECK(found != memory_.end(), "memory is given back that was never taken");
    if (found->second.on_device) taken_on_device_ -= found->second.size;
    memory_.erase(found);
    return kSuccess;
  }

  EmulatedStream* AddStream() {
    streams_.push_back(std::make_unique<EmulatedStream>());
    return streams_.back().get();
  }
  void DropStream(EmulatedStream* stream) {
    if (lost_ == kSuccess) Drain([&] { return stream->work.empty(); });
    emulator::DropTimeline(stream->timeline);
    std::erase_if(streams_, [&](const auto& one) { return one.get() == stream; });
  }

  // Puts work on a stream, or into the graph that is captured there.
  void Put(EmulatedStream* stream, std::function<void()> run) {
    if (stream->capturing) {
      stream->captured.push_back(std::move(run));
    } else {
      Push(stream, {.run = std::move(run), .needs = nullptr, .marks = nullptr});
    }
  }
  void Push(EmulatedStream* stream, Work work) {
    emulator::Signal(work.queued.get());
    stream->work.push_back(std::move(work));
  }

  // Runs streams, in turns, until `enough` returns true.
  template <class Enough>
  void Drain(const Enough& enough) {
    while (!enough()) {
      std::vector<EmulatedStream*> able;
      for (const auto& stream : streams_)
        if (!stream->work.empty() && Able(stream->work.front())) able.push_back(stream.get());
      TACIT_CHECK(!able.empty(), "streams wait for one another");
      RunFirst(*able[emulator::Draw(able.size())]);
    }
  }
  // Runs this stream until the mark, or its end, and other streams only as far as events demand.
  void DrainLate(EmulatedStream* stream, const Mark* until) {
    while (!stream->work.empty() && (until == nullptr || !until->done)) {
      const Work& first = stream->work.front();
      if (first.needs != nullptr && !first.needs->done) DrainUntil(first.needs.get());
      RunFirst(*stream);
    }
  }
  void DrainUntil(const Mark* mark) {
    for (const auto& stream : streams_) {
      const bool here = std::ranges::any_of(
          stream->work, [&](const Work& work) { return work.marks.get() == mark; });
      if (here) return DrainLate(stream.get(), mark);
    }
  }
  void DrainAll() {
    if (lost_ != kSuccess) return;  // nothing runs any more
    Drain([&] {
      return std::ranges::all_of(streams_, [](const auto& one) { return one->work.empty(); });
    });
    for (const auto& stream : streams_) emulator::Await(&stream->finished_token);
  }
  void WaitFor(EmulatedStream* stream) {
    if (turns_ == Turns::kLate) {
      DrainLate(stream, nullptr);
    } else {
      Drain([&] { return stream->work.empty(); });
    }
    emulator::Await(&stream->finished_token);
  }
  void WaitFor(const std::shared_ptr<Mark>& mark) {
    if (mark == nullptr) return;
    if (turns_ == Turns::kLate) {
      DrainUntil(mark.get());
    } else {
      Drain([&] { return mark->done; });
    }
    emulator::Await(mark.get());
  }

  void CountLaunch(const char* name, const LaunchShape& shape) {
    KernelUse& use = kernels_[name];
    ++use.launches;
    use.threads_per_block_min = std::min(use.threads_per_block_min, shape.block.count());
    use.threads_per_block_max = std::max(use.threads_per_block_max, shape.block.count());
  }

  uint64_t free_bytes() const { return machine_.memory_bytes - taken_on_device_; }
  uint64_t calls() const { return calls_; }
  void FailIn(uint64_t calls, int with) { fail_in_ = calls, fail_with_ = with; }
  void SetTurns(Turns turns) { turns_ = turns; }
  const std::map<std::string, KernelUse>& kernels() const { return kernels_; }
  uint64_t BytesTaken() const {
    uint64_t bytes = 0;
    for (const auto& [at, memory] : memory_) bytes += memory.size;
    return bytes;
  }

 private:
  static bool Able(const Work& work) { return work.needs == nullptr || work.needs->done; }

  static void RunFirst(EmulatedStream& stream) {
    Work work = std::move(stream.work.front());
    stream.work.pop_front();
    void* const host = emulator::CurrentTimeline();
    emulator::SwitchTimeline(stream.timeline);
    emulator::Await(work.queued.get());
    if (work.needs != nullptr) emulator::Await(work.needs.get());
    if (work.run) work.run();
    if (work.marks != nullptr) {
      work.marks->done = true;
      emulator::Signal(work.marks.get());
    }
    emulator::Signal(&stream.finished_token);
    work.run = nullptr;  // freed on the stream's timeline, where the kernel read its arguments
    emulator::SwitchTimeline(host);
  }

  emulated::Machine machine_;
  uint64_t calls_ = 0, fail_in_ = 0;
  int fail_with_ = 0;
  Code lost_ = kSuccess;
  int opened_ = 0;
  Turns turns_ = Turns::kShuffled;
  std::map<std::string, KernelUse> kernels_;
  std::map<void*, Memory> memory_;
  uint64_t taken_on_device_ = 0;
  std::vector<std::unique_ptr<EmulatedStream>> streams_;
};

// Lives as long as the process, like a driver.
Driver& TheDriver() {
  static Driver& driver = *new Driver;
  return driver;
}

EmulatedStream* Of(runtime::Stream stream) { return static_cast<EmulatedStream*>(stream); }

}  // namespace

namespace emulated {

void Reset(const Machine& machine) { TheDriver().Reset(machine); }
void FailCall(uint64_t calls, int code) { TheDriver().FailIn(calls, code); }
uint64_t Calls() { return TheDriver().calls(); }
void SetTurns(Turns turns) { TheDriver().SetTurns(turns); }
const std::map<std::string, KernelUse>& Kernels() { return TheDriver().kernels(); }
uint64_t BytesTaken() { return TheDriver().BytesTaken(); }

}  // namespace emulated

namespace runtime {

#define TACIT_ENTER()                                           \
  do {                                                          \
    if (const Code failed = TheDriver().Enter()) return failed; \
  } while (false)

// The same, for calls that want this thread to have its device.
#define TACIT_ENTER_BOUND()                                \
  do {                                                     \
    TACIT_ENTER();                                         \
    if (!TheDriver().bound()) return code::kInvalidDevice; \
  } while (false)

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
  this_threads_device = ordinal;
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
Code Free(void* memory) { return TheDriver().Give(memory); }
Code AllocateHost(void** memory, size_t bytes) {
  TACIT_ENTER_BOUND();
  return TheDriver().Take(memory, bytes, false);
}
Code FreeHost(void* memory) { return TheDriver().Give(memory); }

Code MakeStream(Stream* stream) {
  TACIT_ENTER_BOUND();
  *stream = TheDriver().AddStream();
  return kSuccess;
}
Code DropStream(Stream stream) {
  TheDriver().DropStream(Of(stream));
  return kSuccess;
}
Code MakeEvent(Event* event) {
  TACIT_ENTER_BOUND();
  *event = new EmulatedEvent;
  return kSuccess;
}
Code DropEvent(Event event) {
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
  if (Of(stream)->capturing) {
    Of(stream)->capture_broken = true;
    return code::kStreamCaptureUnsupported;
  }
  auto* const recorded = static_cast<EmulatedEvent*>(event);
  recorded->last = std::make_shared<Mark>();
  TheDriver().Push(Of(stream), {.run = {}, .needs = nullptr, .marks = recorded->last});
  return kSuccess;
}
Code Wait(Stream stream, Event event) {
  TACIT_ENTER_BOUND();
  if (Of(stream)->capturing) {
    Of(stream)->capture_broken = true;
    return code::kStreamCaptureUnsupported;
  }
  const auto& last = static_cast<EmulatedEvent*>(event)->last;
  TheDriver().Push(Of(stream), {.run = {}, .needs = last, .marks = nullptr});
  return kSuccess;
}
Code Synchronize(Stream stream) {
  const Code failed = TheDriver().Enter();
  // A wait that reports a failure has waited all the same, or nothing would ever run again.
  if (failed != kSuccess && LosesDevice(failed)) return failed;
  if (Of(stream)->capturing) {
    Of(stream)->capture_broken = true;
    return code::kStreamCaptureUnsupported;
  }
  TheDriver().WaitFor(Of(stream));
  return failed;
}
Code SynchronizeEvent(Event event) {
  TACIT_ENTER_BOUND();
  TheDriver().WaitFor(static_cast<EmulatedEvent*>(event)->last);
  return kSuccess;
}

Code BeginCapture(Stream stream) {
  TACIT_ENTER_BOUND();
  EmulatedStream& to = *Of(stream);
  if (to.capturing) return code::kStreamCaptureUnsupported;
  to.capturing = true;
  to.capture_broken = false;
  to.captured.clear();
  return kSuccess;
}
Code EndCapture(Stream stream, Graph* graph) {
  EmulatedStream& from = *Of(stream);
  from.capturing = false;  // even where this fails
  TACIT_ENTER_BOUND();
  if (from.capture_broken) return code::kStreamCaptureInvalidated;
  *graph = new EmulatedGraph{std::move(from.captured)};
  return kSuccess;
}
Code LaunchGraph(Graph graph, Stream stream) {
  TACIT_ENTER_BOUND();
  for (const auto& node : static_cast<EmulatedGraph*>(graph)->nodes)
    TheDriver().Put(Of(stream), node);
  return kSuccess;
}
Code DropGraph(Graph graph) {
  delete static_cast<EmulatedGraph*>(graph);
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
  TheDriver().Put(Of(stream), [=] { emulator::Run(name, shape, body); });
  return kSuccess;
}

#if defined(TACIT_EMULATOR_ASAN)
size_t PieceGapBytes() { return 256; }
void MarkUsable(void* memory, size_t bytes, bool usable) {
  if (usable) {
    __asan_unpoison_memory_region(memory, bytes);
  } else {
    __asan_poison_memory_region(memory, bytes);
  }
}
#else
size_t PieceGapBytes() { return 0; }
void MarkUsable(void*, size_t, bool) {}
#endif

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
    default:
      return "cudaErrorUnknown";
  }
}
const char* ErrorText(Code code) { return LosesDevice(code) ? "as a test asked for" : "emulated"; }

}  // namespace runtime
}  // namespace tacit::cuda
