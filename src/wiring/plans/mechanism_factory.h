#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "config/config.h"
#include "mechanism/mechanism.h"
#include "model/sum_map.h"
#include "privacy/charge.h"
#include "privacy/ledger.h"
#include "stream/steps/participation.h"
#include "train/intake.h"
#include "train/optimizer/optimizer.h"
#include "wiring/plans/model_plan.h"

// Turns the configuration of a learner into options for its rooms.
namespace tacit::wiring {

// The noise multiplier that a learner's promise calls for, once it is found: that takes up to
// seconds, and a plan makes many mechanisms. A value.
struct FoundNoise {
  std::optional<double> of_step = {};
};

// The mechanism of a learner, its noise calibrated to the promise unless the configuration fixes
// it. It keeps a reference to `space`. `found`, of the same learner, is filled in where it is
// empty, and saves time; without it the noise is found anew.
Result<std::unique_ptr<mechanism::Mechanism>> MakeMechanism(const PlanParts& parts,
                                                            const RowSpace& space,
                                                            FoundNoise* found = nullptr);

// Pairs kinds of the configuration and of train by their names.
train::OptimizerOptions MakeOptimizer(
    const config::Optimizer& optimizer,
    std::span<const train::OptimizerKind> kinds = train::AllOptimizers());

// The map by which a mechanism is configured to sum gradients.
model::SumMapOptions MakeSumMap(const config::Mechanism& mechanism);

// The bounds on a user's participation that a ledger has of a learner of unit user, to be enforced.
// `allowances` must outlive everything made from the result.
stream::UserOptions UsersOf(const config::Participation& participation,
                            const privacy::Bounds& bounds, const SipHash::Key& key,
                            stream::AllowanceBook& allowances);

// The circumstances of a learner's participation beside its configuration.
struct ParticipationSetting {
  bool has_files = false;                         // the source has file ends, which end a step
  std::optional<stream::UserOptions> users = {};  // for unit user
  uint64_t offsets_per_part = 0;                  // of `once`, as stream::OnceOptions has them
  uint64_t opening_offsets = 0;
  uint64_t growing_from = 0;
  bool begins_anew = false;  // as in stream::AllocationOptions
};
// Decides how a learner's records enter its steps.
train::IntakeOptions::Learner::MakeParticipation MakeParticipationOf(
    const config::Participation& participation, const ParticipationSetting& setting);

}  // namespace tacit::wiring
