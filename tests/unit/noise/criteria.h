#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "noise/noise.h"
#include "planted_noise.h"

// The properties that noise must have, as criteria: for the product's sources, for the device's,
// and for sources with a fault planted in them, on which they must fail.
namespace tacit::noise::testing {

using MakeSource = std::function<std::unique_ptr<NoiseSource>()>;

struct Criterion {
  const char* name;
  // Returns the fault, or "". Draws enough numbers, times `share`, to find every fault of `finds`;
  // a source that is too slow for that is asked for a share of them.
  std::string (*check)(const MakeSource& make, double share);
  std::vector<Fault> finds;
};

const std::vector<Criterion>& AllCriteria();

}  // namespace tacit::noise::testing
