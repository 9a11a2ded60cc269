#pragma once

#include <boost/json.hpp>
#include <cmath>

namespace tacit::console {

// Returns null for an infinite number, which JSON cannot express.
inline boost::json::value FiniteOrNull(double number) {
  return std::isfinite(number) ? boost::json::value(number) : boost::json::value(nullptr);
}

}  // namespace tacit::console
