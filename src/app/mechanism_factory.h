#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/result.h"
#include "config/config.h"
#include "mechanism/mechanism.h"
#include "privacy/charge.h"
#include "stream/participation.h"
#include "train/feed.h"
#include "train/optimizer.h"

// From the configuration of a learner to its rooms' options.
namespace tacit::app {

// The mechanism of a learner; noise calibrated to its promise unless the configuration fixes it.
Result<std::unique_ptr<mechanism::Mechanism>> MakeMechanism(const config::Config& config,
                                                            size_t index, const RowSpace& space);

train::OptimizerOptions MakeOptimizer(const config::Optimizer& optimizer);

// How much of a learner's steps a unit is in at most; for the ledger.
privacy::Bounds BoundsOf(const config::Learner& learner, const config::Source& source);

// The same for a learner of unit user, to be enforced. `allowances` must outlive what is made of
// it.
stream::UserOptions UsersOf(const config::Learner& learner, const config::Source& source,
                            const SipHash::Key& key, stream::AllowanceBook& allowances);

// How a learner's records enter its steps. `has_files`: the source has file ends, which stand at
// the end of a step. `users`: of unit user.
train::FeedOptions::Learner::MakeParticipation MakeParticipationOf(
    const config::Participation& participation, bool has_files,
    const std::optional<stream::UserOptions>& users = std::nullopt);

}  // namespace tacit::app
