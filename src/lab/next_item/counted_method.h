#pragma once

#include <memory>
#include <string_view>

#include "lab/next_item/constants.h"
#include "lab/next_item/method.h"

namespace tacit::lab {

inline constexpr std::string_view kRankedMethod = "transitions+ranker";

// The learners that release counts of a period as one step: transitions
// (train::TransitionsLearner), transitions-no-items, which knows only the number of items,
// popularity, and transitions+ranker (train::RankedLearner). REQUIRES one of these names.
// `setting`'s catalogue and `workers` must outlive it.
std::unique_ptr<StreamMethod> MakeCountedMethod(std::string_view name,
                                                const SequenceSetting& setting,
                                                WorkerPool& workers);

}  // namespace tacit::lab
