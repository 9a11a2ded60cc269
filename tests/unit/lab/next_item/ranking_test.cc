#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "lab/next_item/sequence_ranking.h"
#include "model/ranking/place.h"

namespace tacit::lab {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(PlaceOf, CountsWhatIsUnseenAndNotBelow) {
  const std::vector<float> scores = {5, 4, 3, 2, 1};
  EXPECT_EQ(model::PlaceOf(0, {}, scores), 1u);
  EXPECT_EQ(model::PlaceOf(4, {}, scores), 5u);
  EXPECT_EQ(model::PlaceOf(4, std::vector<uint32_t>{0, 1, 1, 0, 0}, scores), 3u);
  EXPECT_EQ(model::PlaceOf(2, std::vector<uint32_t>{2, 4}, scores), 3u)
      << "the answer counts, seen or not";
}

TEST(PlaceOf, NothingIsGainedByTellingNoneApart) {
  EXPECT_EQ(model::PlaceOf(1, {}, std::vector<float>(50, 0.5f)), 50u);
  EXPECT_EQ(model::PlaceOf(1, {}, std::vector<float>{1, kNan, 2}), 3u);
  EXPECT_EQ(model::PlaceOf(0, {}, std::vector<float>{1, kNan, 2}), 2u);
}

// Scores that a table holds.
class TableMethod final : public ItemScores {
 public:
  explicit TableMethod(std::vector<std::vector<float>> by_last) : by_last_(std::move(by_last)) {}
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    std::ranges::copy(by_last_[history.back()], scores.begin());
  }

 private:
  const std::vector<std::vector<float>> by_last_;
};

TEST(MeasureRanking, IsWhatASortOfAllItemsSays) {
  constexpr uint32_t kItems = 40, kUsers = 300;
  std::mt19937_64 random(1);
  std::vector<std::vector<float>> table(kItems, std::vector<float>(kItems));
  for (auto& row : table)
    for (float& score : row) score = static_cast<float>(random() % 1'000'000);
  SequenceSplit split;
  split.train.catalogue = kItems;
  double ndcg = 0, hits = 0;
  for (uint32_t user = 0; user < kUsers; ++user) {
    std::vector<uint32_t> history(1 + random() % 8);
    for (uint32_t& item : history) item = static_cast<uint32_t>(random() % kItems);
    uint32_t answer = 0;
    do answer = static_cast<uint32_t>(random() % kItems);
    while (std::ranges::count(history, answer) > 0);
    split.train.items.insert(split.train.items.end(), history.begin(), history.end());
    split.train.end.push_back(split.train.items.size());
    split.user.push_back(user);
    split.answer.push_back(answer);
    std::vector<uint32_t> order;
    for (uint32_t item = 0; item < kItems; ++item)
      if (std::ranges::count(history, item) == 0) order.push_back(item);
    std::ranges::sort(order, std::greater<>(),
                      [&](uint32_t i) { return table[history.back()][i]; });
    for (size_t place = 0; place < 10; ++place)
      if (order[place] == answer) {
        ndcg += 1 / std::log2(2 + static_cast<double>(place));
        hits += 1;
      }
  }
  WorkerPool workers({.workers = 2});
  const RankingQuality quality = MeasureRanking(TableMethod(table), split, workers);
  EXPECT_EQ(quality.users, kUsers);
  EXPECT_NEAR(quality.ndcg10, ndcg / kUsers, 1e-12);
  EXPECT_NEAR(quality.hit10, hits / kUsers, 1e-12);
  EXPECT_GT(quality.hit10, 0.15);
}

}  // namespace
}  // namespace tacit::lab
