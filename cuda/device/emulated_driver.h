#pragma once

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/threads/mutex.h"
#include "cuda/device/emulated.h"
#include "cuda/device/emulated_capture.h"
#include "cuda/device/emulator.h"
#include "cuda/device/fiber.h"
#include "cuda/device/runtime.h"

// The driver of the emulated device, for emulated_runtime.cc: its memory, and its streams, which
// keep their work until a caller waits.
namespace tacit::cuda::emulated {

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
  uint64_t size = 0;  // in whole pieces
  bool on_device = false;
};

class Driver {
 public:
  void Reset(const Machine& machine) TACIT_REQUIRES(mutex_);
  void Open(int ordinal) TACIT_REQUIRES(mutex_);
  // Makes this the device of the calling thread.
  static void Bind(int ordinal);
  // Returns true if this thread's device is the one that was opened.
  bool bound() const TACIT_REQUIRES(mutex_);
  const Machine& machine() const TACIT_REQUIRES(mutex_) { return machine_; }
  // Held in every call, and by a call within a call.
  RecursiveMutex& mutex() TACIT_RETURNS_MUTEX(mutex_) { return mutex_; }

  // Called first in every call: returns the error with which it is to fail, or success.
  runtime::Code Enter() TACIT_REQUIRES(mutex_);

  runtime::Code Take(void** memory, size_t bytes, bool on_device) TACIT_REQUIRES(mutex_);
  runtime::Code Give(void* memory) TACIT_REQUIRES(mutex_);

  EmulatedStream* AddStream() TACIT_REQUIRES(mutex_);
  void DropStream(EmulatedStream* stream) TACIT_REQUIRES(mutex_);
  // Puts work on a stream, or into the graph that is captured there.
  void Put(EmulatedStream* stream, std::function<void()> run) TACIT_REQUIRES(mutex_);
  void Push(EmulatedStream* stream, Work work) TACIT_REQUIRES(mutex_);
  // Puts a graph's work on the stream and on lanes of its own.
  void Launch(const EmulatedGraph& graph, EmulatedStream* stream) TACIT_REQUIRES(mutex_);
  // The capture in which the event was recorded last; null if that has ended.
  std::shared_ptr<Capture> CaptureWith(const EmulatedEvent* event) const TACIT_REQUIRES(mutex_);
  void WaitFor(EmulatedStream* stream) TACIT_REQUIRES(mutex_);
  void WaitFor(const std::shared_ptr<Mark>& mark) TACIT_REQUIRES(mutex_);

  void CountLaunch(const char* name, const runtime::LaunchShape& shape) TACIT_REQUIRES(mutex_);

  uint64_t free_bytes() const TACIT_REQUIRES(mutex_) {
    return machine_.memory_bytes - taken_on_device_;
  }
  uint64_t calls() const TACIT_REQUIRES(mutex_) { return calls_; }
  void FailIn(uint64_t calls, int with) TACIT_REQUIRES(mutex_) {
    fail_in_ = calls, fail_with_ = with;
  }
  void RefuseMemory(bool refuse) TACIT_REQUIRES(mutex_) { refuses_memory_ = refuse; }
  void SetTurns(Turns turns) TACIT_REQUIRES(mutex_) { turns_ = turns; }
  const std::map<std::string, KernelUse>& kernels() const TACIT_REQUIRES(mutex_) {
    return kernels_;
  }
  uint64_t BytesTaken() const TACIT_REQUIRES(mutex_);
  uint64_t BytesTakenOnDevice() const TACIT_REQUIRES(mutex_) { return taken_on_device_; }

 private:
  void Drain(const std::function<bool()>& enough) TACIT_REQUIRES(mutex_);
  void DrainLate(EmulatedStream* stream, const Mark* until) TACIT_REQUIRES(mutex_);
  void DrainUntil(const Mark* mark) TACIT_REQUIRES(mutex_);
  void DrainAll() TACIT_REQUIRES(mutex_);

  RecursiveMutex mutex_;
  Machine machine_ TACIT_GUARDED_BY(mutex_);
  uint64_t calls_ TACIT_GUARDED_BY(mutex_) = 0, fail_in_ TACIT_GUARDED_BY(mutex_) = 0;
  int fail_with_ TACIT_GUARDED_BY(mutex_) = 0;
  bool refuses_memory_ TACIT_GUARDED_BY(mutex_) = false;
  runtime::Code lost_ TACIT_GUARDED_BY(mutex_) = runtime::kSuccess;
  int opened_ TACIT_GUARDED_BY(mutex_) = 0;
  Turns turns_ TACIT_GUARDED_BY(mutex_) = Turns::kShuffled;
  std::map<std::string, KernelUse> kernels_ TACIT_GUARDED_BY(mutex_);
  std::map<void*, Memory> memory_ TACIT_GUARDED_BY(mutex_);
  uint64_t taken_on_device_ TACIT_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<EmulatedStream>> streams_ TACIT_GUARDED_BY(mutex_);
};

// Lives as long as the process, like a driver.
Driver& TheDriver();

}  // namespace tacit::cuda::emulated
