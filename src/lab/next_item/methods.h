#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/worker_pool.h"
#include "lab/next_item/sequence_method.h"
#include "lab/next_item/stream_method.h"

// All learners of `tacit evaluate sequence`, by name.
namespace tacit::lab {

// The method names: transitions (the shaped count model), transitions-no-items (the same without
// item descriptions), popularity (one histogram, the same answer for all), transitions+ranker (the
// counts with a ranker), and those of trained_model.h.
std::span<const std::string_view> SequenceMethodNames();
// kInvalidArgument, with the nearest name, for an unknown name.
Status CheckSequenceMethod(std::string_view name);
// Returns true if a method counts, and so has no epochs. REQUIRES a name in SequenceMethodNames.
bool LearnsAtOnce(std::string_view name);
// The identity of a method in stored runs: its name and all its constants.
std::string SequenceMethodIdentity(std::string_view name, const SequenceSetting& setting);
// REQUIRES a name in SequenceMethodNames.
std::unique_ptr<SequenceMethod> MakeSequenceMethod(std::string_view name,
                                                   const SequenceSetting& setting);

// The identity of a method over a stream in stored runs: its name and all its constants.
std::string StreamMethodIdentity(std::string_view name, const SequenceSetting& setting);
// REQUIRES a checked name. `setting`'s catalogue and `workers` must outlive the method.
std::unique_ptr<StreamMethod> MakeStreamMethod(std::string_view name,
                                               const SequenceSetting& setting, WorkerPool& workers);

}  // namespace tacit::lab
