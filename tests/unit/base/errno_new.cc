// A file of its own: where a compiler sees a replaced `delete` without its `new` it takes them for
// a mismatch.
#include "errno_new.h"

#include <cerrno>
#include <cstdlib>
#include <new>

namespace {
thread_local bool leaves_errno = false;
}  // namespace

void tacit::test::LetNewLeaveErrno(bool does) { leaves_errno = does; }

void* operator new(size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  if (leaves_errno) errno = ENOMEM;
  return memory;
}
// Libraries may ask for this one, and what they get is freed by the next.
void* operator new(size_t size, const std::nothrow_t&) noexcept { return std::malloc(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
