#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

// Words for numbers, where text.h has none.
namespace tacit {

// The form of a word beside this count: "is" for 1, "are" for 2.
inline std::string_view WordFor(uint64_t count, std::string_view one, std::string_view more) {
  return count == 1 ? one : more;
}

// A share as "12.3 %". Rounding makes neither nothing nor all of it: it is "under 0.1 %" then, or
// "over 99.9 %".
inline std::string PercentText(double share) {
  if (share > 0 && share < 0.0005) return "under 0.1 %";
  if (share < 1 && share >= 0.9995) return "over 99.9 %";
  return fmt::format("{:.1f} %", 100 * share);
}

}  // namespace tacit
