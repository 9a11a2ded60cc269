#pragma once

#include <string_view>

namespace tacit {

// Prints the broken condition and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view message);

}  // namespace tacit

// Ends the process on a programmer error, in release builds too: to go on would mean to train or
// charge on a state that the code was not written for. Never used on input.
#define TACIT_CHECK(condition, ...)                                                        \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::tacit::CheckFailed(__FILE__, __LINE__, #condition, std::string_view{__VA_ARGS__}); \
  } while (false)
