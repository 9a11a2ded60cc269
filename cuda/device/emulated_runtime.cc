// runtime.h played on the CPU. Device memory is the host's, each piece an allocation of its own and
// full of 0xCD. Streams keep their work and run it when a caller waits, in any order that events
// allow, so that a missing wait shows: as a wrong result, and under the thread sanitizer, to which
// each stream is a thread of execution, as a race between two lines.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
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

// Work that is recorded for a graph: lanes of it, one a stream, and marks between them.
struct CapturedWork {
  size_t lane = 0;
  std::function<void()> run;
  size_t needs = SIZE_MAX, marks = SIZE_MAX;  // numbers of marks
};
struct EmulatedStream;
struct EmulatedEvent;
struct Capture {
  bool broken = false;
  std::vector<EmulatedStream*> lanes;
  std::vector<CapturedWork> work;
  std::map<const EmulatedEvent*, size_t> mark_of;  // the last record of each event
  // The amount of each lane's work that is known to come before something: before what a lane does
  // next, and before a mark.
  using Before = std::vector<size_t>;
  std::vector<Before> lane_before, mark_before;

  size_t LaneOf(const EmulatedStream* stream) const {
    return static_cast<size_t>(std::ranges::find(lanes, stream) - lanes.begin());
  }
  void AddLane(EmulatedStream* stream) {
    lanes.push_back(stream);
    for (Before& before : lane_before) before.resize(lanes.size());
    for (Before& before : mark_before) before.resize(lanes.size());
    lane_before.emplace_back(lanes.size());
  }
  void Run(const EmulatedStream* stream, std::function<void()> run) {
    const size_t lane = LaneOf(stream);
    work.push_back({.lane = lane, .run = std::move(run)});
    ++lane_before[lane][lane];
  }
  void Record(const EmulatedStream* stream, const EmulatedEvent* event) {
    const size_t lane = LaneOf(stream);
    work.push_back({.lane = lane, .run = {}, .marks = mark_before.size()});
    mark_of[event] = mark_before.size();
    mark_before.push_back(lane_before[lane]);
  }
  void Wait(const EmulatedStream* stream, size_t mark) {
    const size_t lane = LaneOf(stream);
    work.push_back({.lane = lane, .run = {}, .needs = mark});
    for (size_t other = 0; other < lanes.size(); ++other)
      lane_before[lane][other] = std::max(lane_before[lane][other], mark_before[mark][other]);
  }
  // Tells whether the first lane ends behind all others.
  bool Joined() const {
    for (size_t lane = 1; lane < lanes.size(); ++lane)
      if (lane_before[0][lane] != lane_before[lane][lane]) return false;
    return true;
  }
};

struct EmulatedStream {
  std::deque<Work> work;
  std::shared_ptr<Capture> capture;
  void* timeline = emulator::MakeTimeline();
  char finished_token = 0;
};

struct EmulatedEvent {
  std::shared_ptr<Mark> last;
};

struct EmulatedGraph {
  std::vector<CapturedWork> work;
  size_t marks = 0;
  std::vector<EmulatedStream*> lanes;  // behind the first, which is the stream it is launched on
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
    if (stream->capture != nullptr) {
      stream->capture->Run(stream, std::move(run));
    } else {
      Push(stream, {.run = std::move(run), .needs = nullptr, .marks = nullptr});
    }
  }
  void Push(EmulatedStream* stream, Work work) {
    emulator::Signal(work.queued.get());
    stream->work.push_back(std::move(work));
  }

  // Puts a graph's work on the stream and on lanes of its own.
  void Launch(const EmulatedGraph& graph, EmulatedStream* stream) {
    std::vector<std::shared_ptr<Mark>> marks(graph.marks);
    for (auto& mark : marks) mark = std::make_shared<Mark>();
    const auto begun = std::make_shared<Mark>();
    Push(stream, {.run = {}, .needs = nullptr, .marks = begun});
    for (EmulatedStream* lane : graph.lanes)
      Push(lane, {.run = {}, .needs = begun, .marks = nullptr});
    for (const CapturedWork& work : graph.work)
      Push(work.lane == 0 ? stream : graph.lanes[work.lane - 1],
           {.run = work.run,
            .needs = work.needs == SIZE_MAX ? nullptr : marks[work.needs],
            .marks = work.marks == SIZE_MAX ? nullptr : marks[work.marks]});
  }

  // The capture in which the event was recorded last; null: none that goes on.
  std::shared_ptr<Capture> CaptureWith(const EmulatedEvent* event) const {
    for (const auto& stream : streams_)
      if (stream->capture != nullptr && stream->capture->mark_of.contains(event))
        return stream->capture;
    return nullptr;
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
  const std::shared_ptr<Capture> capture = std::move(Of(stream)->capture);
  for (EmulatedStream* lane : capture->lanes) lane->capture = nullptr;  // even where this fails
  TACIT_ENTER_BOUND();
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
    case code::kStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    default:
      return "cudaErrorUnknown";
  }
}
const char* ErrorText(Code code) { return LosesDevice(code) ? "as a test asked for" : "emulated"; }

}  // namespace runtime
}  // namespace tacit::cuda
