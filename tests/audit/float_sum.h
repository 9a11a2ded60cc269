#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "audit/engine.h"
#include "ops/backend.h"

// An adversary who writes all records of a step but one, in order, and knows the model. He pushes
// one number of the dense sum to just below a power of two. The victim's record carries it over.
// Then come records that each take a little less off than half of what a float can hold there: they
// are lost above the power of two and count below it. In one long sum of floats the victim moves it
// by as many clips as there are records of that kind, times their size. All records share a row of
// the one table, whose sum is measured with the dense one. An engine takes the steps.
namespace tacit::audit {

enum class SumFault {
  kNone,
  kOneSum,     // all rows are added up in floats, as one
  kByRecords,  // blocks are this many records of the step, not this many offsets
  kOneBlock,   // an engine that does not know the blocks: it adds short pieces, which is no leak
};

struct FloatSumCase {
  size_t offsets = 0;  // of the step
  std::vector<uint32_t> hidden = {};
  ops::Precision precision = ops::Precision::kF32;
  uint32_t carrier_rank = 0;  // 0: no carriers
  SumFault fault = SumFault::kNone;
};

// Makes the engine that is attacked, of parts that outlive it.
using AttackedEngine = std::function<std::unique_ptr<train::ClickEngine>(const EngineParts& parts)>;
// The processor's engine, with products and sums by this backend.
AttackedEngine HostEngineOn(ops::Backend& backend);

// Returns by how many clips the victim moves the step's sum, before noise: the most of some steps
// that the adversary tries. All records are units of their own.
double MostMoved(const FloatSumCase& attacked, const AttackedEngine& make);

}  // namespace tacit::audit
