#pragma once

#include <string_view>

namespace tacit {

// Prints the broken condition and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view message);

}  // namespace tacit

// A programmer error ends the process, in release builds too: going on would mean training or
// charging on a state nobody has thought about. Never used on input.
#define TACIT_CHECK(condition, ...)                                                        \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::tacit::CheckFailed(__FILE__, __LINE__, #condition, std::string_view{__VA_ARGS__}); \
  } while (false)
