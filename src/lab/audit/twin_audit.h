#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "lab/audit/likelihood_audit.h"
#include "wiring/assembly.h"

namespace tacit::lab {

// The audit of a learner that chooses its next release by its earlier ones, or keeps state between
// them: models of the next item, vocabularies, clips that adapt, held periods of users. The learner
// is run beside its twin, which has the canary where the learner has not, and is given all that
// left (twin_noise.h); so the sums of both worlds are known at every release. What follows from the
// releases must be the same in both, to the last bit: parameters, optimiser and released state are
// compared after every step, and a difference tells the worlds apart for certain.
//
// A unit that is in some steps of a period has a third twin, for the period's first step: it is in
// what opens the period and not in the step.
Result<std::unique_ptr<LikelihoodAudit>> MakeTwinAudit(
    std::shared_ptr<const wiring::Assembly> assembly, size_t index, LikelihoodAuditOptions options);

}  // namespace tacit::lab
