#include "lab/next_item/sequence_ranking.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/ranking/place.h"

namespace tacit::lab {

Credit CreditOf(size_t place) {
  return {.ndcg10 = model::GainAt(place), .hit10 = place <= model::kPlacesCounted ? 1.0 : 0.0};
}

RankingQuality MeasureRanking(const ItemScores& method, const SequenceSplit& split,
                              WorkerPool& workers) {
  const size_t asked = split.user.size();
  std::vector<size_t> places(asked);
  workers.Run(asked, [&](size_t begin, size_t end, size_t) {
    std::vector<float> scores(split.train.catalogue);
    for (size_t i = begin; i < end; ++i) {
      const auto history = split.train.Of(split.user[i]);
      method.Score(history, scores);
      places[i] = model::PlaceOf(split.answer[i], history, scores);
    }
  });
  RankingQuality quality{.users = asked};
  for (const size_t place : places) {
    const Credit credit = CreditOf(place);
    quality.ndcg10 += credit.ndcg10;
    quality.hit10 += credit.hit10;
  }
  quality.ndcg10 /= static_cast<double>(std::max<size_t>(1, asked));
  quality.hit10 /= static_cast<double>(std::max<size_t>(1, asked));
  return quality;
}

}  // namespace tacit::lab
