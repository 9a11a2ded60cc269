#pragma once

#include <cstddef>
#include <cstdint>

#include "base/threads/worker_pool.h"
#include "lab/next_item/method.h"
#include "lab/next_item/sequence_data.h"

namespace tacit::lab {

// Quality of the ranking of correct answers: means over the users asked about.
struct RankingQuality {
  double ndcg10 = 0;  // 1 / log2(place + 1), for places 1 to 10
  double hit10 = 0;   // share of answers among the first ten
  uint64_t users = 0;
};

// The credit for a correct answer at this place.
struct Credit {
  double ndcg10 = 0, hit10 = 0;
};
Credit CreditOf(size_t place);

// Asks about every user of the split.
RankingQuality MeasureRanking(const ItemScores& method, const SequenceSplit& split,
                              WorkerPool& workers);

}  // namespace tacit::lab
