#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "audit/cases.h"
#include "mechanism/recipe.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"
#include "train/engines/click_engine.h"

// The audit of a whole engine: records go in, and the update comes out of its optimiser's state.
// The engine does all that is between: forward pass, gradients, selection, clip, sums, noise.
namespace tacit::audit {

// One thing that is wrong around the engine. Faults within it are planted by the program that links
// it.
enum class EngineFault {
  kNone,
  kRecordsAsUnits,  // each record of a unit is clipped by itself, and then they are added up
  kSameKey,         // every step has the key of the first one
  kHalfSigma,       // half of the noise that is paid for
};

struct EngineCase {
  // The part of a canary's gradient that is large.
  enum class Heavy { kRows, kNumbers, kBoth };
  std::string name = {};
  mechanism::Recipe::Rows rows = mechanism::Recipe::Rows::kEvery;
  // Leaves out the rows of one table, of which every canary has one.
  bool has_vocabulary = false;
  Density density = Density::kHalf;  // of kThreshold
  double split = 2;                  // of kThreshold: sigma of the selection over the gradient's
  mechanism::Recipe::Clip clip = mechanism::Recipe::Clip::kFlat;
  ops::Precision precision = ops::Precision::kF32;
  Heavy heavy = Heavy::kBoth;
  size_t records = 1;      // of a canary
  bool null_unit = false;  // in the other world a canary is a unit of nothing, and not gone
  // An engine may have these: the most examples that go through the model at a time, and rows that
  // lie in a cache, as small as it gets.
  uint32_t chunk_examples = 1024;
  bool cached = false;
  EngineFault fault = EngineFault::kNone;
};

struct EngineAuditOptions {
  double mu = 3;          // that a step pays for
  size_t canaries = 128;  // in a step
  uint64_t runs = 6500;   // of canaries in each world, about, by which thresholds are judged
  uint64_t runs_of_choice = 800;
  double alpha = 1e-9;
  uint64_t seed = 1;
};

// The parts that an engine is made of. All of them outlive it.
struct EngineParts {
  const train::ClickEngineOptions& options;
  mechanism::Mechanism& mechanism;
  noise::NoiseSource& noise;
  store::WorkingRows& rows;
  const store::DenseState& dense;
};
using EngineMaker =
    std::function<std::unique_ptr<train::ClickEngine>(const EngineParts&, const EngineCase&)>;

// Every case that an engine must stay under its charge in, and show 80 % of it.
std::vector<EngineCase> RightEngineCases();
// Those that must be proved to cost more than they say, with every engine.
std::vector<EngineCase> FaultyEngineCases();

// Many canaries in a step, each with rows and a number of its own, so that noise of its own is on
// what it moves; a coin says of each whether it is there. The adversary of one knows the coins of
// all others. So each is a run, and runs are independent.
Finding AuditEngine(const EngineCase& audited, const EngineAuditOptions& options,
                    const EngineMaker& make);
std::string Describe(const EngineCase& audited, const Finding& finding);

}  // namespace tacit::audit
