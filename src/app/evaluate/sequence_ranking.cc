#include "app/evaluate/sequence_ranking.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tacit::app {
namespace {

constexpr size_t kPlaces = 10;

}  // namespace

size_t PlaceOf(uint32_t answer, std::span<const uint32_t> history, std::span<const float> scores) {
  const float own = scores[answer];
  // True of an answer that is no number, whatever the other.
  const auto before = [&](float score) { return score >= own || std::isnan(own); };
  auto place = static_cast<size_t>(std::ranges::count_if(scores, before));
  if (!before(own)) ++place;
  std::vector<uint32_t> seen(history.begin(), history.end());
  std::ranges::sort(seen);
  const auto repeated = std::ranges::unique(seen);
  seen.erase(repeated.begin(), repeated.end());
  for (const uint32_t item : seen)
    if (item != answer && before(scores[item])) --place;
  return place;
}

Credit CreditOf(size_t place) {
  if (place > kPlaces) return {};
  return {.ndcg10 = 1 / std::log2(static_cast<double>(place) + 1), .hit10 = 1};
}

RankingQuality MeasureRanking(const SequenceMethod& method, const SequenceSplit& split,
                              WorkerPool& workers) {
  const size_t asked = split.user.size();
  std::vector<size_t> places(asked);
  workers.Run(asked, [&](size_t begin, size_t end, size_t) {
    std::vector<float> scores(split.train.catalogue);
    for (size_t i = begin; i < end; ++i) {
      const auto history = split.train.Of(split.user[i]);
      method.Score(history, scores);
      places[i] = PlaceOf(split.answer[i], history, scores);
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

}  // namespace tacit::app
