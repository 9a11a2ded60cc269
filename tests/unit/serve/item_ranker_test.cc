#include "serve/items/item_ranker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "recommend_fakes.h"

namespace tacit::serve {
namespace {

// All items sorted, then what is left out dropped.
std::vector<RankedItem> Naive(std::span<const float> scores, const std::set<uint32_t>& left_out,
                              size_t count) {
  std::vector<uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::greater<>(), [&](uint32_t item) { return scores[item]; });
  std::vector<RankedItem> best;
  for (const uint32_t item : order)
    if (!left_out.contains(item) && best.size() < count) best.push_back({item, scores[item]});
  return best;
}

void ExpectEqual(std::span<const RankedItem> found, const std::vector<RankedItem>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].item, expected[i].item) << i;
    ASSERT_EQ(found[i].score, expected[i].score) << i;
  }
}

std::vector<float> Scores(const FakeItems::State& state, std::span<const uint32_t> history,
                          uint32_t items) {
  std::vector<float> scores;
  for (uint32_t item = 0; item < items; ++item)
    scores.push_back(FakeItems::Fake(state.text, history, item));
  return scores;
}

// Barred items are never there, for any caller; for a user the number of items depends on what is
// barred and not on his history.
TEST(ItemRanker, WhatIsBarredIsNotRecommended) {
  std::mt19937 random(8);
  constexpr uint32_t kBarredItems = 40;
  const auto model = std::make_shared<const FakeItems>(kBarredItems);
  const FakeItems::State state("state", kBarredItems);
  ItemRanker ranker(model);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> history(random() % 60);
    for (uint32_t& item : history) item = random() % kBarredItems;
    std::vector<uint8_t> barred(kBarredItems);
    std::set<uint32_t> out;
    for (uint32_t i = 0; i < kBarredItems; ++i)
      if (random() % 3 < static_cast<uint32_t>(round) % 4) barred[i] = 1, out.insert(i);
    const size_t allowed = kBarredItems - out.size();
    const uint32_t count = 1 + random() % 50;
    const auto of_user = ranker.OfUser(state, history, count, true, barred);
    ASSERT_TRUE(of_user.has_value());
    EXPECT_EQ(of_user->size(), std::min<size_t>(count, (allowed + 1) / 2));
    for (const RankedItem& item : *of_user) EXPECT_EQ(barred[item.item], 0);
    if (!history.empty()) out.insert(history.begin(), history.end());
    const auto found = ranker.OfHistory(state, history, count, true, barred);
    ASSERT_TRUE(found.has_value());
    ExpectEqual(*found, Naive(Scores(state, history, kBarredItems), out, count));
    const auto plain = ranker.OfHistory(state, history, count, true);
    ASSERT_TRUE(plain.has_value());
    ExpectEqual(*plain, Naive(Scores(state, history, kBarredItems),
                              std::set<uint32_t>(history.begin(), history.end()), count));
  }
}

TEST(ItemRanker, RanksAsSortingDoes) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const uint32_t items : {1u, 2u, 9u, 60u, 500u}) {
    const auto model = std::make_shared<const FakeItems>(items);
    const FakeItems::State state("state " + std::to_string(items), items);
    ItemRanker ranker(model);
    for (int round = 0; round < 200; ++round) {
      std::vector<uint32_t> history(random() % 30);
      for (uint32_t& item : history) item = random() % items;
      const uint32_t count = 1 + random() % 70;
      const bool exclude = random() % 2 == 0;
      const std::vector<float> scores = Scores(state, history, items);
      const std::set<uint32_t> seen(history.begin(), history.end());
      const auto found = ranker.OfHistory(state, history, count, exclude);
      ASSERT_TRUE(found.has_value());
      ExpectEqual(*found, Naive(scores, exclude ? seen : std::set<uint32_t>(), count));
    }
  }
}

// As many for one who is not known as for one who has seen nearly all there is.
TEST(ItemRanker, WhetherAUserIsKnownDoesNotShowInTheNumberOfItems) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const uint32_t items : {1u, 2u, 3u, 9u, 60u}) {
    const auto model = std::make_shared<const FakeItems>(items);
    const FakeItems::State state("state", items);
    ItemRanker ranker(model);
    for (int round = 0; round < 200; ++round) {
      std::vector<uint32_t> history(random() % (3 * items));
      for (uint32_t& item : history) item = random() % items;
      const uint32_t asked = 1 + random() % 70;
      const uint32_t count = std::min(asked, (items + 1) / 2);
      // The latest items are left out, as many as may be.
      std::set<uint32_t> left_out;
      for (auto item = history.rbegin(); item != history.rend(); ++item)
        if (left_out.size() < items - count) left_out.insert(*item);
      const auto found = ranker.OfUser(state, history, asked, true);
      ASSERT_TRUE(found.has_value());
      ASSERT_EQ(found->size(), count);
      ExpectEqual(*found, Naive(Scores(state, history, items), left_out, count));
      const auto all = ranker.OfUser(state, history, asked, false);
      ASSERT_TRUE(all.has_value());
      ExpectEqual(*all, Naive(Scores(state, history, items), {}, count));
    }
  }
}

TEST(ItemRanker, AnEmptyHistoryIsAColdStart) {
  const auto model = std::make_shared<const FakeItems>(40);
  const FakeItems::State state("cold", 40);
  ItemRanker ranker(model);
  const std::vector<RankedItem> expected = Naive(state.cold_start(), {}, 12);
  for (const bool exclude : {true, false}) {
    ExpectEqual(*ranker.OfHistory(state, {}, 12, exclude), expected);
    ExpectEqual(*ranker.OfUser(state, {}, 12, exclude), expected);
  }
}

}  // namespace
}  // namespace tacit::serve
