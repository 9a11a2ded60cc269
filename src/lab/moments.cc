#include "lab/moments.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <numeric>

namespace tacit::lab {

namespace json = boost::json;

Moments Moments::Of(const std::vector<double>& values) {
  Moments m;
  m.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - m.mean) * (value - m.mean);
  if (values.size() > 1) m.std = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return m;
}

json::object MomentsJson(const Moments& moments) {
  return {{"mean", moments.mean},
          {"std", moments.std ? json::value(*moments.std) : json::value(nullptr)}};
}

std::string PercentText(const Moments& moments) {
  return moments.std ? fmt::format("{:.2f} ± {:.2f}", 100 * moments.mean, 100 * *moments.std)
                     : fmt::format("{:.2f}", 100 * moments.mean);
}

}  // namespace tacit::lab
