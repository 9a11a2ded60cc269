#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "app/evaluate/sequence_data.h"
#include "app/evaluate/sequence_method.h"
#include "base/worker_pool.h"

namespace tacit::app {

// How near the top the right answers came, means over the users asked about.
struct RankingQuality {
  double ndcg10 = 0;  // 1 / log2(place + 1), of places 1 to 10
  double hit10 = 0;   // how many are among the first ten
  uint64_t users = 0;
};

// The answer's place among all items but those of the history; 1 is the first. Items of the same
// score come before it, so that nothing is gained by telling none apart. What is no number comes
// last. The answer counts though it may be in the history.
size_t PlaceOf(uint32_t answer, std::span<const uint32_t> history, std::span<const float> scores);

// What an answer at this place counts for.
struct Credit {
  double ndcg10 = 0, hit10 = 0;
};
Credit CreditOf(size_t place);

// Asks the method about every user of the split.
RankingQuality MeasureRanking(const SequenceMethod& method, const SequenceSplit& split,
                              WorkerPool& workers);

}  // namespace tacit::app
