#include "console/shortage.h"

#include <execinfo.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

#include "console/exit_code.h"

namespace tacit::console {
namespace {

// Takes no memory: there may be none.
void Say(const char* text) {
  std::array<iovec, 4> parts;
  size_t n = 0;
  for (const char* part :
       {const_cast<const char*>(program_invocation_short_name), ": ", text, "\n"})
    parts[n++] = {const_cast<char*>(part), std::strlen(part)};
  (void)!::writev(STDERR_FILENO, parts.data(), static_cast<int>(n));
}

// Destructors do not run: they would wait for threads that wait for this one. What was committed is
// on the disk, as after a kill.
[[noreturn]] void EndOrAbort() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    if (const char* text = ShortageText(error)) {
      Say(text);
      std::_Exit(kExitFailed);
    }
    Say(error.what());
  } catch (...) {
  }
  std::abort();
}

}  // namespace

void EndOnShortage() {
  // The C library loads its unwinder when an exception first passes through it, and aborts where
  // there is no memory for that. This loads it now.
  void* frame = nullptr;
  (void)::backtrace(&frame, 1);
  std::set_terminate(EndOrAbort);
}

const char* ShortageText(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return "the system refused memory: raise its limit (ulimit -v, MemoryMax= of the unit, that of "
           "the container), or lower memory.total_bytes; what is committed is not lost";
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
    return "the system refused a thread, or the memory for its stack: raise the limits (ulimit -u "
           "and -v, TasksMax= and MemoryMax= of the unit, those of the container); what is "
           "committed is not lost";
  return nullptr;
}

}  // namespace tacit::console
