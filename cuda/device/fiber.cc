#include "cuda/device/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <utility>

#include "base/check.h"

#if defined(TACIT_EMULATOR_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(TACIT_EMULATOR_TSAN)
extern "C" {
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void __tsan_ignore_thread_begin(void);
void __tsan_ignore_thread_end(void);
}
#endif

namespace tacit::cuda::emulator {
namespace {

constexpr size_t kGuardBytes = 4096;
#if defined(TACIT_EMULATOR_ASAN) || defined(TACIT_EMULATOR_TSAN)
constexpr size_t kStackBytes = 512 << 10;
#else
constexpr size_t kStackBytes = 128 << 10;
#endif

}  // namespace

struct Fiber::State {
  std::function<void()> body;
  unsigned char* stack = nullptr;  // after its guard page
  ucontext_t inside, outside;
  void* outside_timeline = nullptr;
  // The address sanitizer's: stacks for variables whose address is taken, and the other side.
  void* inside_fake = nullptr;
  void* outside_fake = nullptr;
  const void* outside_stack = nullptr;
  size_t outside_stack_bytes = 0;
};

Fiber::Fiber(std::function<void()> body) : state_(std::make_unique<State>()) {
  state_->body = std::move(body);
  void* pages = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TACIT_CHECK(pages != MAP_FAILED, "no memory for a stack");
  TACIT_CHECK(mprotect(pages, kGuardBytes, PROT_NONE) == 0);
  state_->stack = static_cast<unsigned char*>(pages) + kGuardBytes;
  TACIT_CHECK(getcontext(&state_->inside) == 0);
  state_->inside.uc_stack.ss_sp = state_->stack;
  state_->inside.uc_stack.ss_size = kStackBytes;
  state_->inside.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&state_->inside, reinterpret_cast<void (*)()>(&Fiber::Begin), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

Fiber::~Fiber() { munmap(state_->stack - kGuardBytes, kGuardBytes + kStackBytes); }

void Fiber::Begin(unsigned high, unsigned low) {
  auto* fiber = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
#if defined(TACIT_EMULATOR_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &fiber->state_->outside_stack,
                                  &fiber->state_->outside_stack_bytes);
#endif
  fiber->state_->body();
  TACIT_CHECK(false, "a fiber's body must not return");
}

void Fiber::Enter(void* timeline) {
  state_->outside_timeline = CurrentTimeline();
#if defined(TACIT_EMULATOR_ASAN)
  __sanitizer_start_switch_fiber(&state_->outside_fake, state_->stack, kStackBytes);
#endif
  SwitchTimeline(timeline);
  swapcontext(&state_->outside, &state_->inside);
#if defined(TACIT_EMULATOR_ASAN)
  __sanitizer_finish_switch_fiber(state_->outside_fake, nullptr, nullptr);
#endif
}

void Fiber::Leave() {
#if defined(TACIT_EMULATOR_ASAN)
  __sanitizer_start_switch_fiber(&state_->inside_fake, state_->outside_stack,
                                 state_->outside_stack_bytes);
#endif
  SwitchTimeline(state_->outside_timeline);
  swapcontext(&state_->inside, &state_->outside);
#if defined(TACIT_EMULATOR_ASAN)
  __sanitizer_finish_switch_fiber(state_->inside_fake, &state_->outside_stack,
                                  &state_->outside_stack_bytes);
#endif
}

#if defined(TACIT_EMULATOR_TSAN)
void* MakeTimeline() { return __tsan_create_fiber(0); }
void DropTimeline(void* timeline) { __tsan_destroy_fiber(timeline); }
void* CurrentTimeline() { return __tsan_get_current_fiber(); }
void SwitchTimeline(void* timeline) {
  constexpr unsigned kOrderNothing = 1;
  if (timeline != CurrentTimeline()) __tsan_switch_to_fiber(timeline, kOrderNothing);
}
void Signal(void* token) { __tsan_release(token); }
void Await(void* token) { __tsan_acquire(token); }
Unwatched::Unwatched() { __tsan_ignore_thread_begin(); }
Unwatched::~Unwatched() { __tsan_ignore_thread_end(); }
bool WatchesTimelines() { return true; }
#else
void* MakeTimeline() { return nullptr; }
void DropTimeline(void*) {}
void* CurrentTimeline() { return nullptr; }
void SwitchTimeline(void*) {}
void Signal(void*) {}
void Await(void*) {}
Unwatched::Unwatched() = default;
Unwatched::~Unwatched() = default;
bool WatchesTimelines() { return false; }
#endif

}  // namespace tacit::cuda::emulator
