#pragma once

#include <memory>
#include <string_view>

#include "lab/next_item/stream_method.h"

namespace tacit::lab {

// The learner that counts every period: transitions, transitions-no-items or popularity.
// `setting`'s catalogue and `workers` must outlive it.
std::unique_ptr<StreamMethod> MakeCountedStream(std::string_view name,
                                                const SequenceSetting& setting,
                                                WorkerPool& workers);

}  // namespace tacit::lab
