#pragma once

#include <array>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "ops/backend.h"

// The same audit, of sums that the click model makes itself: units of several records go through
// its forward pass, its norms and its weighted f32 product, and then through a mechanism's noise.
// The auditor chooses what the model is given: parameters, records and who has them.
namespace tacit::audit {

struct Record {
  std::array<float, 2> numbers{};
  float label = 0;
};
using UnitRecords = std::vector<Record>;

enum class ClipFault {
  kNone,
  kNormOfTheSum,  // scales by what the rows of a unit leave when they have cancelled
};

struct ProductCase {
  std::string name;
  std::vector<UnitRecords> others;
  UnitRecords canary;
  ops::Precision precision = ops::Precision::kF32;
  ClipFault fault = ClipFault::kNone;
  bool reaches = true;  // whether the canary adds a whole clip
  bool proves = true;   // of a fault: whether the noisy runs prove it too
};

struct ProductFinding {
  double charged_mu = 0;
  MuBound mu;
  double moved = 0;  // by how much the canary moves the sum before noise, in clips
  bool Exceeds() const { return mu.lower > charged_mu; }
};

// Cases that must stay under their charge, and those planted that must not.
std::vector<ProductCase> RightProducts();
std::vector<ProductCase> FaultyProducts();

ProductFinding AuditProduct(const ProductCase& audited, const AuditOptions& options);

std::string Describe(const ProductCase& audited, const ProductFinding& finding);

}  // namespace tacit::audit
