#pragma once

#include <cstddef>
#include <string>

namespace tacit::event {

// A literal with its zeros.
template <size_t N>
std::string Bytes(const char (&text)[N]) {
  return std::string(text, N - 1);
}

}  // namespace tacit::event
