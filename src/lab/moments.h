#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tacit::lab {

// Mean and deviation of a figure over the seeds of an experiment.
struct Moments {
  double mean = 0;
  std::optional<double> std = {};  // sample deviation; a single value has none
  static Moments Of(const std::vector<double>& values);
};

// {"mean", "std"}; the deviation of a single value is null.
boost::json::object MomentsJson(const Moments& moments);
// A share in per cent: "11.79 ± 0.05".
std::string PercentText(const Moments& moments);

}  // namespace tacit::lab
