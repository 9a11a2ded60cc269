#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tacit {

// The path that stands for standard input among a log's files, and its name in messages. A file
// called so is `./-`.
inline constexpr std::string_view kStandardInput = "-", kStandardInputShown = "standard input";

// True if a log is read from standard input: it comes once, and has an end.
inline bool IsStandardInput(std::span<const std::string> files) {
  return files.size() == 1 && files[0] == kStandardInput;
}

}  // namespace tacit
