#include "console/number_check.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace tacit::console {
namespace {

// The whole value as a number, read as CLI11 reads it afterwards (0x10 is 16).
std::optional<uint64_t> WholeOf(const std::string& value) {
  if (value.empty() || value.find('-') != value.npos) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(value.c_str(), &end, 0);
  if (errno != 0 || *end != '\0') return std::nullopt;
  return number;
}

// The whole value as a finite number: a NaN would pass any comparison that asks whether it is out
// of bounds.
std::optional<double> NumberOf(const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::string NotAllowed(std::string_view value, std::string_view allowed) {
  constexpr size_t kShown = 40;
  return fmt::format("'{}{}' is not {}", value.substr(0, kShown),
                     value.size() > kShown ? "..." : "", allowed);
}

}  // namespace

NumberCheck WholeFrom(uint64_t least) {
  return [least](const std::string& value) -> std::string {
    const auto number = WholeOf(value);
    if (number && *number >= least) return "";
    return NotAllowed(value, fmt::format("a whole number of at least {}", least));
  };
}

NumberCheck WholeBetween(uint64_t least, uint64_t most) {
  return [least, most](const std::string& value) -> std::string {
    const auto number = WholeOf(value);
    if (number && *number >= least && *number <= most) return "";
    return NotAllowed(value, fmt::format("a whole number from {} to {}", least, most));
  };
}

NumberCheck AboveZero() {
  return [](const std::string& value) -> std::string {
    const auto number = NumberOf(value);
    if (number && *number > 0) return "";
    return NotAllowed(value, "a number above 0");
  };
}

NumberCheck Between(double least, double most) {
  return [least, most](const std::string& value) -> std::string {
    const auto number = NumberOf(value);
    if (number && *number >= least && *number <= most) return "";
    return NotAllowed(value, fmt::format("a number from {:g} to {:g}", least, most));
  };
}

}  // namespace tacit::console
