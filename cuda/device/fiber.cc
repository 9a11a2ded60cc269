#include "cuda/device/fiber.h"

#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

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
#if defined(__x86_64__)
// swapcontext asks the kernel for the signal mask at each switch, and the address sanitizer, which
// intercepts it, maps the shadow of the whole stack anew each time: most of a test's time. So where
// we know the machine the switch is ours. It keeps what the ABI has a function keep, except the
// rounding modes, which nobody changes here.
extern "C" void tacit_switch_stack(void** from, void* to);
extern "C" void tacit_begin_stack();
asm(R"(
.text
.p2align 4
.globl tacit_switch_stack
.hidden tacit_switch_stack
.type tacit_switch_stack, @function
tacit_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tacit_switch_stack, . - tacit_switch_stack
.p2align 4
.globl tacit_begin_stack
.hidden tacit_begin_stack
.type tacit_begin_stack, @function
tacit_begin_stack:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  callq *%r13
  ud2
  .cfi_endproc
.size tacit_begin_stack, . - tacit_begin_stack
)");
#endif
namespace {

constexpr size_t kGuardBytes = 4096;
#if defined(TACIT_EMULATOR_ASAN) || defined(TACIT_EMULATOR_TSAN)
constexpr size_t kStackBytes = 512 << 10;
#else
constexpr size_t kStackBytes = 128 << 10;
#endif

// A side of a switch: where its stack goes on.
#if defined(__x86_64__)
struct Context {
  void* stack_pointer = nullptr;
};
void Switch(Context* from, Context* to) {
  tacit_switch_stack(&from->stack_pointer, to->stack_pointer);
}
void Prepare(Context* context, unsigned char* stack, void (*begin)(void*), void* argument) {
  // The first switch takes off r15, r14, r13, r12, rbx, rbp, and where it returns to. Two words
  // more keep calls aligned, and are null, where a walk over the stack ends.
  auto** const top = reinterpret_cast<void**>(stack + kStackBytes) - 9;
  top[2] = reinterpret_cast<void*>(begin);
  top[3] = argument;
  top[6] = reinterpret_cast<void*>(&tacit_begin_stack);
  context->stack_pointer = static_cast<void*>(top);
}
#else
struct Context {
  ucontext_t kept;
};
void Switch(Context* from, Context* to) { swapcontext(&from->kept, &to->kept); }
void BeginHalves(unsigned begin_high, unsigned begin_low, unsigned high, unsigned low) {
  const auto joined = [](unsigned h, unsigned l) { return uintptr_t{h} << 32 | l; };
  reinterpret_cast<void (*)(void*)>(joined(begin_high, begin_low))(
      reinterpret_cast<void*>(joined(high, low)));
}
void Prepare(Context* context, unsigned char* stack, void (*begin)(void*), void* argument) {
  TACIT_CHECK(getcontext(&context->kept) == 0);
  context->kept.uc_stack.ss_sp = stack;
  context->kept.uc_stack.ss_size = kStackBytes;
  context->kept.uc_link = nullptr;
  const auto of_begin = reinterpret_cast<uintptr_t>(begin);
  const auto of_argument = reinterpret_cast<uintptr_t>(argument);
  makecontext(&context->kept, reinterpret_cast<void (*)()>(&BeginHalves), 4,
              static_cast<unsigned>(of_begin >> 32), static_cast<unsigned>(of_begin),
              static_cast<unsigned>(of_argument >> 32), static_cast<unsigned>(of_argument));
}
#endif

}  // namespace

struct Fiber::State {
  std::function<void()> body;
  unsigned char* stack = nullptr;  // after its guard page
  Context inside, outside;
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
  Prepare(&state_->inside, state_->stack, &Fiber::Begin, this);
}

Fiber::~Fiber() { munmap(state_->stack - kGuardBytes, kGuardBytes + kStackBytes); }

void Fiber::Begin(void* self) {
  auto* const fiber = static_cast<Fiber*>(self);
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
  Switch(&state_->outside, &state_->inside);
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
  Switch(&state_->inside, &state_->outside);
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
