#pragma once

#include <cstddef>
#include <functional>
#include <memory>

// Fibers for the emulator, with the calls that the sanitizers need. This file's
// .cc is compiled without sanitizers.
namespace tacit::cuda::emulator {

// A stack of its own that runs one function after another. Only the thread that made it uses it.
class Fiber {
 public:
  // `body` is called at the first Enter and must not return.
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Continues this fiber until it leaves; called from outside all fibers. `timeline` is what the
  // thread sanitizer takes the fiber for meanwhile; null if there is none.
  void Enter(void* timeline);
  // Returns to where Enter was called; called from inside.
  void Leave();

 private:
  struct State;
  static void Begin(void* self);

  const std::unique_ptr<State> state_;
};

// A thread of execution, which the thread sanitizer calls a fiber: its accesses race with those of
// any other unless something orders them. Null, and without effect, in builds without the
// sanitizer. A new timeline is ordered after what its maker did before.
void* MakeTimeline();
void DropTimeline(void* timeline);
void* CurrentTimeline();
void SwitchTimeline(void* timeline);
// Orders all that was done before Signal(token) before all that follows a later Await(token).
void Signal(void* token);
void Await(void* token);
// While one lives, the thread sanitizer ignores the reads and writes of its timeline: the
// emulator's own bookkeeping, which all timelines share. It must be made and destroyed on one
// timeline.
class Unwatched {
 public:
  Unwatched();
  ~Unwatched();
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};
// Returns true if the sanitizer knows timelines: then no two threads of a kernel may share one.
bool WatchesTimelines();

}  // namespace tacit::cuda::emulator
