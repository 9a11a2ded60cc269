#pragma once

#include <memory>

#include "base/threads/worker_pool.h"
#include "store/rows/working_rows.h"
#include "train/learner/part_summer.h"
#include "train/linear/linear_query.h"

namespace tacit::train {

// Sums up parts for a linear learner of these options (LinearPart), on the threads of the pool.
// `rows` have weight, last move and its period, and are not changed. Both must outlive it.
std::unique_ptr<PartSummer> MakeLinearPartSummer(const LinearLearnerOptions& options,
                                                 store::WorkingRows& rows, WorkerPool& workers);

}  // namespace tacit::train
