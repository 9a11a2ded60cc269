#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "model/transitions/public_items.h"
#include "model/transitions/released_model.h"

// The stored form of counts with a ranker: what a learner releases, and what is served from it.
namespace tacit::model::ranking {

struct ReleasedRanker {
  transitions::ReleasedModel counts;
  std::vector<float> parameters;  // kRankerParameters finite numbers
};

// The bytes, by the grammar in released_ranker.cc. REQUIRES kRankerParameters numbers.
std::string EncodeRanker(const transitions::ReleasedModel& counts,
                         std::span<const float> parameters);
// kCorruption: the bytes are damaged. kInvalidArgument: they are of another catalogue or of other
// options. The catalogue must outlive what is returned.
Result<ReleasedRanker> DecodeRanker(std::string_view bytes,
                                    const transitions::PublicItems& catalogue,
                                    const transitions::Options& options, WorkerPool& workers);

}  // namespace tacit::model::ranking
