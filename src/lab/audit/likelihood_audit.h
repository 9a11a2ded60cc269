#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "audit/judgement.h"
#include "base/result.h"
#include "config/config.h"
#include "noise/noise.h"
#include "privacy/event.h"
#include "train/learner/learner.h"
#include "wiring/plans/model_plan.h"

// The white-box audit of a configured learner: its own model, mechanism, units and participation,
// as wiring makes them, run again and again with a canary and without it.
namespace tacit::lab {

struct LikelihoodAuditOptions {
  uint32_t workers = 2;
  // Makes the noise of a worker; if null, the product's.
  std::function<std::unique_ptr<noise::NoiseSource>(size_t worker)> source = {};
  // Makes the learner of a plan; if null, the plan does. A test plants a fault by it. (Learners of
  // the next item, vocabularies, adaptive clips and held periods of users.)
  std::function<Result<std::unique_ptr<train::Learner>>(const wiring::ModelPlan&,
                                                        wiring::LearnerParts)>
      learner = {};
};

// An auditor who knows the model, all records but one unit's (the canary's), and who of the others
// is in which step. He sees the numbers that leave, with their noise (the counts by which rows are
// chosen included), and makes of them the ln of the likelihood ratio of the canary's being there.
// One run is what a promise is charged for at once: a step of `once`, a period of `poisson` or
// `allocate`. The canary's records are chosen to fill the clip.
class LikelihoodAudit {
 public:
  // kRefused, with the reason, for a learner that cannot be audited in this way.
  static Result<std::unique_ptr<LikelihoodAudit>> Make(config::Config config,
                                                       const std::string& learner,
                                                       LikelihoodAuditOptions options = {});
  virtual ~LikelihoodAudit() = default;

  // The charge of one run.
  virtual const std::vector<privacy::CountedEvent>& events() const = 0;
  virtual double delta() const = 0;
  // "a step of once on an event"
  virtual std::string run_text() const = 0;
  // The share of the charge's mu that the canary moves the sums by before noise, in a step that it
  // is in: no audit with it proves more.
  virtual double reach() const = 0;
  // Makes this many runs in each world, and appends them.
  virtual Status Run(uint64_t runs, audit::RunStatistics* statistics) = 0;
};

}  // namespace tacit::lab
