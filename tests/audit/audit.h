#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "audit/adversary.h"
#include "audit/mu_bound.h"
#include "audit/runner.h"
#include "audit/setting.h"
#include "mechanism/clipper.h"
#include "mechanism/mechanism.h"
#include "mechanism/vocabulary.h"

namespace tacit::audit {

// A mechanism, and the parts of it whose released state is looked at. They live in the mechanism.
struct Subject {
  std::unique_ptr<mechanism::Mechanism> mechanism;
  const mechanism::Vocabulary* vocabulary = nullptr;
  const mechanism::Clipper* clipper = nullptr;
};

// One mechanism on one instance.
struct Case {
  std::string name = {};
  Setting setting = {};
  std::function<Subject(const Setting&)> make = {};
  Evidence evidence = {};
  bool two_steps = false;  // a step without the canary goes before
  bool null_unit = false;  // in the other world the canary is a unit of nothing, and not gone
  ModelFault model_fault = ModelFault::kNone;
};

struct AuditOptions {
  uint64_t runs = 400'000;           // in each world, of which thresholds are judged
  uint64_t runs_of_choice = 40'000;  // in each world, of which they are chosen
  double alpha = 1e-9;               // of each rate's bound
  uint64_t seed = 1;
  size_t workers = 2;
};

struct Finding {
  double charged_mu = 0;  // what the mechanism says that it costs
  std::array<MuBound, kStatistics> mu;

  // The statistic that proves most.
  Statistic Most() const;
  double lower() const { return mu[Most()].lower; }
  // Proof that it costs more than it says. False alarm: at most 2 alpha per statistic.
  bool Exceeds() const { return lower() > charged_mu; }
  // Proof that the test sees at least this share of what is charged.
  bool Reaches(double share) const { return mu[kLikelihood].lower >= share * charged_mu; }
};

// The cost of a run of the case by its charges: sqrt(sum 1/sigma^2 + 2 rho).
double ChargedMu(const mechanism::Mechanism& mechanism);

// Runs the case in both worlds. The same seed gives the same finding for the same `workers`.
Finding RunAudit(const Case& audited, const AuditOptions& options);

// "adafest: charged mu 0.268; likelihood: above 0.235 (seen 0.257, shift 0.258); ..."
std::string Describe(const Case& audited, const Finding& finding);

}  // namespace tacit::audit
