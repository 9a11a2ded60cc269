#pragma once

#include <limits>

// Private to this room and its tests.
namespace tacit::privacy {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace tacit::privacy
