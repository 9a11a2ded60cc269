#include "audit/engine.h"

namespace tacit::audit {
namespace {

using Heavy = EngineCase::Heavy;
using Rows = mechanism::Recipe::Rows;
using Clip = mechanism::Recipe::Clip;
using ops::Precision;

}  // namespace

std::vector<EngineCase> RightEngineCases() {
  std::vector<EngineCase> cases;
  const auto add = [&](EngineCase one) { cases.push_back(std::move(one)); };
  add({.name = "dp-sgd"});
  add({.name = "dp-sgd, rows alone", .heavy = Heavy::kRows});
  add({.name = "dp-sgd, dense canary, bf16",
       .precision = Precision::kBf16,
       .heavy = Heavy::kNumbers});
  add({.name = "dp-sgd, clip per layer", .clip = Clip::kPerLayer});
  add({.name = "dp-sgd, units of several records in chunks", .records = 2, .chunk_examples = 96});
  add({.name = "adafest", .rows = Rows::kThreshold});
  add({.name = "adafest, automatic clip, dense canary",
       .rows = Rows::kThreshold,
       .clip = Clip::kAutomatic,
       .heavy = Heavy::kNumbers});
  add({.name = "adafest, few rows written, in a cache",
       .rows = Rows::kThreshold,
       .density = Density::kTenth,
       .cached = true});
  add({.name = "adafest, units of several records in chunks",
       .rows = Rows::kThreshold,
       .records = 2,
       .chunk_examples = 96});
  add({.name = "adafest+, clip per layer",
       .rows = Rows::kThreshold,
       .has_vocabulary = true,
       .clip = Clip::kPerLayer});
  add({.name = "fest, public vocabulary, a unit of nothing for the canary",
       .rows = Rows::kInside,
       .has_vocabulary = true,
       .null_unit = true});
  add({.name = "fest, in a cache",
       .rows = Rows::kInside,
       .has_vocabulary = true,
       .heavy = Heavy::kRows,
       .cached = true});
  return cases;
}

std::vector<EngineCase> FaultyEngineCases() {
  std::vector<EngineCase> cases;
  const auto plant = [&](EngineFault fault, EngineCase one) {
    one.fault = fault;
    cases.push_back(std::move(one));
  };
  plant(EngineFault::kRecordsAsUnits, {.name = "records clipped one by one", .records = 3});
  plant(EngineFault::kRecordsAsUnits,
        {.name = "records clipped one by one, adafest", .rows = Rows::kThreshold, .records = 2});
  plant(EngineFault::kSameKey, {.name = "every step under the same key"});
  plant(EngineFault::kSameKey,
        {.name = "every step under the same key, adafest", .rows = Rows::kThreshold});
  plant(EngineFault::kHalfSigma, {.name = "half of the noise"});
  return cases;
}

}  // namespace tacit::audit
