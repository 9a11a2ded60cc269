#pragma once

#include <dlfcn.h>

namespace tacit::sim {

// The C library's own function of this name, which a definition in the program hides.
template <typename Function>
Function* Native(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define TACIT_NATIVE(name)                                            \
  ([] {                                                               \
    static auto* const native = ::tacit::sim::Native(&::name, #name); \
    return native;                                                    \
  }())

// The caller's simulation as `world`; threads outside get what the C library returns.
#define TACIT_SIMULATED_OR(native)               \
  Scheduler* const world = Scheduler::current(); \
  if (world == nullptr) return native

// A bare system call, without errno: negative numbers are errors.
inline long RawCall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                    long f = 0) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace tacit::sim
