#pragma once

#include <boost/json.hpp>
#include <cmath>

namespace tacit::app {

// JSON has no infinity: what is unbounded is null.
inline boost::json::value FiniteOrNull(double number) {
  return std::isfinite(number) ? boost::json::value(number) : boost::json::value(nullptr);
}

}  // namespace tacit::app
