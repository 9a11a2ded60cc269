#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "config/config.h"
#include "mechanism/mechanism.h"
#include "privacy/charge.h"
#include "stream/steps/participation.h"
#include "train/feed.h"
#include "train/optimizer.h"
#include "wiring/mechanism_kinds.h"

// Turns the configuration of a learner into options for its rooms.
namespace tacit::wiring {

// The mechanism of a learner, its noise calibrated to the promise unless the configuration fixes
// it. It keeps a reference to `space`.
Result<std::unique_ptr<mechanism::Mechanism>> MakeMechanism(
    const config::Config& config, size_t index, const RowSpace& space,
    std::span<const MechanismMaker> kinds = AllMechanisms());

// Pairs kinds of the configuration and of train by their names.
train::OptimizerOptions MakeOptimizer(
    const config::Optimizer& optimizer,
    std::span<const train::OptimizerKind> kinds = train::AllOptimizers());

// Bounds on a unit's participation in a learner's steps, for the ledger.
privacy::Bounds BoundsOf(const config::Learner& learner, const config::Source& source);

// The same bounds for a learner of unit user, to be enforced. `allowances` must outlive everything
// made from the result.
stream::UserOptions UsersOf(const config::Learner& learner, const config::Source& source,
                            const SipHash::Key& key, stream::AllowanceBook& allowances);

// The circumstances of a learner's participation beside its configuration.
struct ParticipationSetting {
  bool has_files = false;                         // the source has file ends, which end a step
  std::optional<stream::UserOptions> users = {};  // for unit user
  uint64_t offsets_per_part = 0;                  // of `once`, as stream::OnceOptions has it
  bool begins_anew = false;                       // as in stream::AllocationOptions
};
// Decides how a learner's records enter its steps.
train::FeedOptions::Learner::MakeParticipation MakeParticipationOf(
    const config::Participation& participation, const ParticipationSetting& setting);

}  // namespace tacit::wiring
