#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "config/config.h"
#include "mechanism/mechanism.h"
#include "train/feed.h"
#include "train/optimizer.h"

// From the configuration of a learner to its rooms' options.
namespace tacit::app {

// The mechanism of a learner; noise calibrated to its promise unless the configuration fixes it.
Result<std::unique_ptr<mechanism::Mechanism>> MakeMechanism(const config::Config& config,
                                                            size_t index, const RowSpace& space);

train::OptimizerOptions MakeOptimizer(const config::Optimizer& optimizer);

// How a learner's records enter its steps. `has_files`: the source has file ends, which stand at
// the end of a step.
train::FeedOptions::Learner::MakeParticipation MakeParticipationOf(
    const config::Participation& participation, bool has_files);

}  // namespace tacit::app
