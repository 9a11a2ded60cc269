#pragma once

#include <cstdint>
#include <functional>

#include "audit/judgement.h"
#include "base/result.h"

namespace tacit::lab {

// One run in one of the two worlds, by this worker: the ln of the likelihood ratio of what left.
using RunOnceIn = std::function<Result<double>(size_t worker, bool canary)>;

// Makes `runs` runs in each world, by `workers` threads, and appends what they say.
Status RunInBothWorlds(uint64_t runs, uint32_t workers, const RunOnceIn& once,
                       audit::RunStatistics* statistics);

}  // namespace tacit::lab
