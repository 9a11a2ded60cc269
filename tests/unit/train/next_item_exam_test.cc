// The questions to a next-item model, and the baselines beside it, are held against loops over
// lists.
#include "train/counts/next_item_exam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "train/learner/baseline.h"

namespace tacit::train {
namespace {

using ItemList = std::vector<uint32_t>;

// A step of these users: each one's items of before, and the new ones.
StepHistories ExamStep(uint32_t catalogue,
                       const std::vector<std::pair<ItemList, ItemList>>& users) {
  StepHistories step;
  step.histories.catalogue = catalogue;
  for (const auto& [before, fresh] : users) {
    auto& items = step.histories.items;
    items.insert(items.end(), before.begin(), before.end());
    items.insert(items.end(), fresh.begin(), fresh.end());
    step.histories.end.push_back(items.size());
    step.before.push_back(static_cast<uint32_t>(before.size()));
  }
  return step;
}

// The baselines over lists of all that came.
class NaiveBaselines {
 public:
  void Learn(const std::vector<std::pair<ItemList, ItemList>>& users) {
    for (const auto& [before, fresh] : users) {
      ItemList all = before;
      for (const uint32_t item : fresh) {
        ++times_[item];
        if (!all.empty()) ++followed_[{all.back(), item}];
        all.push_back(item);
      }
    }
  }
  size_t PopularPlace(uint32_t answer, const ItemList& history, uint32_t catalogue) {
    return Place(answer, history, catalogue,
                 [&](uint32_t item) { return std::pair(0, times_[item]); });
  }
  size_t SuccessorPlace(uint32_t answer, const ItemList& history, uint32_t catalogue) {
    return Place(answer, history, catalogue, [&](uint32_t item) {
      const int followed = followed_[{history.back(), item}];
      return std::pair(followed, followed > 0 ? 0 : times_[item]);
    });
  }

 private:
  template <class Score>
  static size_t Place(uint32_t answer, const ItemList& history, uint32_t catalogue,
                      const Score& score) {
    size_t place = 1;
    for (uint32_t item = 0; item < catalogue; ++item)
      if (item != answer && std::ranges::count(history, item) == 0 && score(item) >= score(answer))
        ++place;
    return place;
  }

  std::map<uint32_t, int> times_;
  std::map<std::pair<uint32_t, uint32_t>, int> followed_;
};

ItemList SomeItems(std::mt19937_64& random, uint32_t catalogue, size_t most) {
  ItemList items(random() % (most + 1));
  for (uint32_t& item : items)
    item = static_cast<uint32_t>(std::min(random() % catalogue, random() % catalogue));
  return items;
}

TEST(NextItemBaselinesTest, AreTheCountsOfAllThatCame) {
  constexpr uint32_t kCatalogue = 14;  // so that no item has more successors than are kept
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    NextItemBaselines baselines(kCatalogue);
    NaiveBaselines naive;
    for (int step = 0; step < 20; ++step) {
      std::vector<std::pair<ItemList, ItemList>> users(random() % 5);
      for (auto& [before, fresh] : users) {
        before = SomeItems(random, kCatalogue, 4);
        fresh = SomeItems(random, kCatalogue, 4);
      }
      baselines.Learn(ExamStep(kCatalogue, users));
      naive.Learn(users);
      ItemList history = SomeItems(random, kCatalogue, 5);
      history.push_back(static_cast<uint32_t>(random() % kCatalogue));
      for (uint32_t answer = 0; answer < kCatalogue; ++answer) {
        const auto places = baselines.PlacesOf(answer, history);
        EXPECT_EQ(places.popular, naive.PopularPlace(answer, history, kCatalogue));
        EXPECT_EQ(places.successor, naive.SuccessorPlace(answer, history, kCatalogue));
      }
    }
  }
}

// Frequent successors are kept among rare ones, where everything follows one item.
TEST(NextItemBaselinesTest, FrequentSuccessorsStay) {
  constexpr uint32_t kCatalogue = 1000, kFrequent = 8;
  std::mt19937_64 random(1);
  NextItemBaselines baselines(kCatalogue);
  for (int i = 0; i < 20'000; ++i) {
    const auto frequent = static_cast<uint32_t>(1 + random() % kFrequent);
    const auto rare =
        static_cast<uint32_t>(1 + kFrequent + random() % (kCatalogue - kFrequent - 1));
    baselines.Learn(ExamStep(kCatalogue, {{{0}, {i % 2 == 0 ? frequent : rare}}}));
  }
  for (uint32_t item = 1; item <= kFrequent; ++item)
    EXPECT_LE(baselines.PlacesOf(item, ItemList{0}).successor, size_t{kFrequent});
}

constexpr uint32_t kExamItems = 30;

// Places an item by its number: item 0 is the best, for any history.
Status ByNumber(NextItemExam::Histories histories, const NextItemExam::Take& take) {
  for (size_t i = 0; i < histories.size(); ++i) {
    std::vector<float> scores(kExamItems);
    for (uint32_t item = 0; item < kExamItems; ++item) scores[item] = -static_cast<float>(item);
    take(i, scores);
  }
  return {};
}

TEST(NextItemExamTest, AsksForTheFirstNewItemOfThoseWithAHistory) {
  NextItemExam exam(kExamItems, 10);
  // One has no history, one nothing new; the others' answers are 2, in place 3, and 12, which with
  // the seen item 1 left out is in place 12.
  const StepHistories step =
      ExamStep(kExamItems, {{{}, {4}}, {{7}, {7, 7}}, {{20}, {2, 0}}, {{1}, {1, 12, 0}}});
  StepReport report;
  ASSERT_TRUE(exam.Ask(step, ByNumber, &report));
  EXPECT_EQ(report.ranked.asked, 2u);
  EXPECT_EQ(report.ranked.without_history, 1u);
  EXPECT_EQ(report.ranked.without_news, 1u);
  EXPECT_EQ(report.ranked.without_model, 0u);
  EXPECT_EQ(report.ranked.model.hits, 1u);
  EXPECT_DOUBLE_EQ(report.ranked.model.gain, 0.5);  // 1 / log2(4)
  EXPECT_DOUBLE_EQ(report.ranked.Hit(report.ranked.model), 0.5);
  EXPECT_DOUBLE_EQ(report.ranked.Ndcg(report.ranked.model), 0.25);
  // The baselines had seen nothing, so all items were alike; now they have.
  EXPECT_EQ(report.ranked.popular.hits, 0u);
  report = {};
  ASSERT_TRUE(exam.Ask(ExamStep(kExamItems, {{{20}, {2}}}), ByNumber, &report));
  EXPECT_EQ(report.ranked.popular.hits, 1u);
  EXPECT_DOUBLE_EQ(report.ranked.successor.gain, 1) << "2 came after 20 before";
}

TEST(NextItemExamTest, AsksNoMoreThanItMayAndAllThatAreHeldOut) {
  const StepHistories step = ExamStep(kExamItems, {{{20}, {2}}, {{21}, {2}}, {{22}, {2}}});
  StepReport report;
  NextItemExam exam(kExamItems, 2);
  ASSERT_TRUE(exam.AskHeldOut(step, ByNumber, &report));
  EXPECT_EQ(report.ranked.asked, 3u);
  report = {};
  ASSERT_TRUE(exam.Ask(step, ByNumber, &report));
  EXPECT_EQ(report.ranked.asked, 2u);
  EXPECT_EQ(report.ranked.popular.hits, 0u) << "what is held out is not learnt from";
  report = {};
  NextItemExam silent(kExamItems, 0);
  ASSERT_TRUE(silent.Ask(step, ByNumber, &report));
  EXPECT_EQ(report.ranked.asked, 0u);
}

// A model that has learnt nothing yet is not asked; its baselines learn.
TEST(NextItemExamTest, WithoutAModelTheBaselinesLearn) {
  NextItemExam exam(kExamItems, 10);
  const StepHistories step = ExamStep(kExamItems, {{{20}, {2}}});
  StepReport report;
  ASSERT_TRUE(exam.Ask(step, nullptr, &report));
  EXPECT_EQ(report.ranked.asked, 0u);
  EXPECT_EQ(report.ranked.without_model, 1u);
  ASSERT_TRUE(exam.Ask(step, ByNumber, &report));
  EXPECT_EQ(report.ranked.popular.hits, 1u);
}

// A model that has diverged predicts nothing, and must not look perfect.
TEST(NextItemExamTest, AnAnswerThatIsNoNumberIsNoHit) {
  const auto hits = [](float own, float others) {
    NextItemExam exam(kExamItems, 1);
    StepReport report;
    EXPECT_TRUE(exam.Ask(
        ExamStep(kExamItems, {{{0}, {3}}}),
        [&](NextItemExam::Histories, const NextItemExam::Take& take) -> Status {
          std::vector<float> scores(kExamItems, others);
          scores[3] = own;
          take(0, scores);
          return {};
        },
        &report));
    return report.ranked.model.hits;
  };
  EXPECT_EQ(hits(NAN, NAN), 0u);
  EXPECT_EQ(hits(NAN, 0), 0u);
  EXPECT_EQ(hits(1, NAN), 1u) << "others that are no numbers come after it";
  EXPECT_EQ(hits(0, 0), 0u) << "as good as all others";
}

TEST(NextItemExamTest, PopularityWinsWhereItIsMoreThanChance) {
  const auto below = [](uint64_t model, uint64_t popular) {
    return IsBelowPopularity(
        {.asked = 1000, .model = {.hits = model}, .popular = {.hits = popular}});
  };
  EXPECT_FALSE(below(0, 0));
  EXPECT_FALSE(below(100, 100));
  EXPECT_FALSE(below(100, 110));
  EXPECT_TRUE(below(100, 120));
}

// As many hits in worse places: a model that is behind by NDCG alone.
TEST(NextItemExamTest, PopularityWinsByThePlacesOfItsHitsToo) {
  const auto below = [](double model, double popular) {
    return IsBelowPopularity({.asked = 1000,
                              .model = {.hits = 100, .gain = model},
                              .popular = {.hits = 100, .gain = popular}});
  };
  EXPECT_FALSE(below(50, 50));
  EXPECT_FALSE(below(50, 60));
  EXPECT_TRUE(below(50, 62));
}

}  // namespace
}  // namespace tacit::train
