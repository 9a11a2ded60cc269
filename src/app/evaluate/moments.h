#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tacit::app {

// Of a figure over the seeds of an experiment.
struct Moments {
  double mean = 0;
  std::optional<double> std = {};  // sample deviation; a single value has none
  static Moments Of(const std::vector<double>& values);
};

// {"mean", "std"}; null where there is none.
boost::json::object MomentsJson(const Moments& moments);
// "11.79 ± 0.05": of a share, in per cent.
std::string PercentText(const Moments& moments);

}  // namespace tacit::app
