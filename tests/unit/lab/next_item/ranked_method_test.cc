// Counts with a ranker, through the interface of tacit evaluate sequence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>

#include "lab/next_item/methods.h"
#include "lab/next_item/sequence_data.h"
#include "lab/next_item/sequence_ranking.h"
#include "noise/noise.h"
#include "noise/stream_noise.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"

namespace tacit::lab {
namespace {

constexpr uint32_t kItems = 480;

// Every user likes one genre of twelve and takes every other item from it: what came last shows
// less than all of a history does.
struct Tastes {
  Tastes() {
    std::mt19937_64 random(2);
    for (uint32_t i = 0; i < kItems; ++i)
      texts.push_back({.id = static_cast<int64_t>(random() % 10'000),
                       .title = "a title",
                       .genres = {std::string(1, static_cast<char>('a' + i % 12))}});
    histories.catalogue = kItems;
    for (uint32_t user = 0; user < 1500; ++user) {
      const auto genre = random() % 12;
      std::vector<uint8_t> had(kItems);
      for (int i = 0; i < 30; ++i) {
        uint32_t item = 0;
        do {
          item = static_cast<uint32_t>(random() % (kItems / 12) * 12 +
                                       (random() % 2 == 0 ? random() % 12 : genre));
        } while (had[item] > 0);
        had[item] = 1;
        histories.items.push_back(item);
      }
      histories.end.push_back(histories.items.size());
    }
  }
  std::vector<model::transitions::ItemText> texts;
  model::Histories histories;
};

class RankedMethodTest : public testing::Test {
 protected:
  double Fit(SequenceMethod& method, double epsilon, noise::NoiseSource& noise) {
    double shown = 0;
    const auto spent = method.Fit(split_.train, {.epsilon = epsilon, .delta = 1e-5}, noise,
                                  workers_, [&](double share) {
                                    EXPECT_GE(share, shown);
                                    shown = share;
                                  });
    EXPECT_TRUE(spent) << spent.error().message;
    EXPECT_EQ(shown, 1);
    return spent ? *spent : 0;
  }

  const Tastes tastes_;
  const model::transitions::PublicItems catalogue_{tastes_.texts};
  const SequenceSplit split_ = LeaveLastOut(tastes_.histories, false);
  SequenceSetting setting_{
      .catalogue = &catalogue_, .transitions = {}, .trained = {}, .ranked = {}};
  WorkerPool workers_{WorkerPool::Options{2, false}};
  std::unique_ptr<noise::NoiseSource> noise_ = std::make_unique<noise::FixedNoise>(1);
};

// The ranker uses a profile of the user's genres.
TEST_F(RankedMethodTest, UnderNoiseItIsBetterThanTheCountsItBeginsWith) {
  setting_.ranked.steps = 60;
  SequenceMethod counts("transitions", setting_), ranked("transitions+ranker", setting_);
  EXPECT_LE(Fit(counts, 8, *noise_), 8);
  EXPECT_LE(Fit(ranked, 8, *noise_), 8);
  const double before = MeasureRanking(counts, split_, workers_).hit10;
  const double after = MeasureRanking(ranked, split_, workers_).hit10;
  EXPECT_GT(after, before + 0.02) << before;
}

// Records the queries asked for, one by one, given that every query is on vectors of norm 1.
class Queries final : public noise::SilentNoise {
 public:
  explicit Queries(noise::NoiseSource& noise) : noise_(noise) {}
  // A query begins here; its blocks have the same noise.
  void ForParts(size_t n, const Part& part) override {
    begins_ = true;
    if (n > 0) part(0, n, *this);
  }
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    if (begins_) stddevs.push_back(stddev);
    begins_ = false;
    noise_.AddGridGaussian(stddev, values);
  }
  double Uniform() override { return noise_.Uniform(); }
  std::vector<double> stddevs;

 private:
  noise::NoiseSource& noise_;
  bool begins_ = true;
};

TEST_F(RankedMethodTest, ReleaseAndStepsTogetherAreWhatWasPromised) {
  setting_.ranked.steps = 7;
  setting_.ranked.share = 0.2;
  for (const double epsilon : {1.0, 8.0}) {
    Queries noise(*noise_);
    SequenceMethod ranked("transitions+ranker", setting_);
    const double spent = Fit(ranked, epsilon, noise);
    EXPECT_LE(spent, epsilon);
    EXPECT_GT(spent, 0.9999 * epsilon);
    // Queries of the counts on histograms' grids, then seven steps on a gradient's. Popularity is
    // looked at twice, since these items hardly differ in it.
    constexpr size_t kQueries = 9;
    ASSERT_EQ(noise.stddevs.size(), kQueries + 7) << epsilon;
    const double mu = MuOf({.epsilon = epsilon, .delta = 1e-5});
    double counts = 0, ranker = 0;
    for (size_t q = 0; q < kQueries; ++q) counts += std::pow(noise.stddevs[q] * 0x1p-20, -2);
    constexpr double kGradientStep = 0x1p-30;
    for (size_t q = kQueries; q < kQueries + 7; ++q)
      ranker += std::pow(noise.stddevs[q] * kGradientStep, -2);
    EXPECT_NEAR(counts, 0.8 * mu * mu, 1e-6);
    EXPECT_NEAR(ranker, 0.2 * mu * mu, 1e-6);
  }
}

// A ranker of items that nothing is public of learns on few candidates, and puts few in order.
TEST_F(RankedMethodTest, CandidatesFollowFromWhatIsKnownOfItems) {
  const auto candidates = [](const train::RankerOptions& options, bool described) {
    const train::RankerOptions filled = train::WithCandidates(options, described);
    return std::pair(*filled.candidates, *filled.orders);
  };
  EXPECT_EQ(candidates({}, true), std::pair(uint64_t{100}, uint64_t{200}));
  EXPECT_EQ(candidates({}, false), std::pair(uint64_t{20}, uint64_t{20}));
  EXPECT_EQ(candidates({.candidates = 7}, false), std::pair(uint64_t{7}, uint64_t{20}));
  EXPECT_EQ(candidates({.orders = 7}, true), std::pair(uint64_t{100}, uint64_t{7}));

  setting_.ranked.steps = 3;
  const model::transitions::PublicItems undescribed(catalogue_.items());
  for (const bool described : {true, false}) {
    setting_.catalogue = described ? &catalogue_ : &undescribed;
    SequenceMethod ranked("transitions+ranker", setting_);
    Fit(ranked, 8, *noise_);
    std::vector<float> scores(kItems);
    ranked.Score(split_.train.Of(0), scores);
    EXPECT_EQ(std::ranges::count_if(scores, [](float score) { return score >= 1; }),
              described ? 200 : 20);
  }
}

// Items that are no candidates come after those that are.
TEST_F(RankedMethodTest, EveryItemHasAScore) {
  setting_.ranked.steps = 3;
  setting_.ranked.orders = 20;
  SequenceMethod ranked("transitions+ranker", setting_);
  Fit(ranked, std::numeric_limits<double>::infinity(), *noise_);
  std::vector<float> scores(kItems);
  ranked.Score(split_.train.Of(0), scores);
  size_t before = 0;
  for (const float score : scores) {
    EXPECT_TRUE(std::isfinite(score));
    EXPECT_GE(score, -1);
    before += score >= 1;
  }
  EXPECT_EQ(before, 20u);
  ranked.Score({}, scores);
  EXPECT_EQ(scores, std::vector<float>(kItems, -1)) << "nothing is known of who has no history";
}

// Noise is then all there is to learn from; steps of full length would shuffle the candidates.
TEST_F(RankedMethodTest, FewPeopleLeaveTheOrderOfTheCounts) {
  model::Histories few;
  few.catalogue = kItems;
  for (size_t user = 0; user < 20; ++user) {
    const auto items = split_.train.Of(user);
    few.items.insert(few.items.end(), items.begin(), items.end());
    few.end.push_back(few.items.size());
  }
  // The likeliest item of each of a hundred histories, after the same release of counts.
  const auto first = [&](double learning_rate) {
    setting_.ranked.learning_rate = learning_rate;
    auto drawn = noise::FixedNoise(7);
    Queries noise(drawn);  // that keeps its key
    SequenceMethod ranked("transitions+ranker", setting_);
    const auto spent =
        ranked.Fit(few, {.epsilon = 0.5, .delta = 1e-5}, noise, workers_, [](double) {});
    EXPECT_TRUE(spent) << spent.error().message;
    std::vector<size_t> likeliest;
    for (size_t user = 0; user < 100; ++user) {
      std::vector<float> scores(kItems);
      ranked.Score(split_.train.Of(user), scores);
      likeliest.push_back(static_cast<size_t>(std::ranges::max_element(scores) - scores.begin()));
    }
    return likeliest;
  };
  const auto counts = first(1e-9);
  const auto same = [&](const std::vector<size_t>& other) {
    return std::inner_product(counts.begin(), counts.end(), other.begin(), 0, std::plus<>(),
                              std::equal_to<>());
  };
  EXPECT_GE(same(first(train::RankerOptions().learning_rate)), 90);
  EXPECT_LT(same(first(100)), 60) << "and that is not for want of noise";
}

TEST_F(RankedMethodTest, ItIsWatchedStepByStep) {
  setting_.ranked.steps = 6;
  SequenceMethod ranked("transitions+ranker", setting_);
  std::vector<double> looks;
  ranked.Watch(2, [&](double steps) { looks.push_back(steps); });
  Fit(ranked, 4, *noise_);
  EXPECT_EQ(looks, (std::vector<double>{2, 4, 6}));
}

}  // namespace
}  // namespace tacit::lab
