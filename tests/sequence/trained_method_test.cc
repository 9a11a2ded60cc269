// Trained sequence models behind the seam of tacit evaluate sequence.
#include "app/evaluate/trained_method.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "app/evaluate/sequence_data.h"
#include "app/evaluate/sequence_ranking.h"
#include "noise/noise.h"
#include "support/silent_noise.h"

namespace tacit::app {
namespace {

// Users who go round a circle of items, each from his own place.
model::Histories Circles() {
  model::Histories histories;
  histories.catalogue = 30;
  for (uint32_t user = 0; user < 300; ++user) {
    for (uint32_t i = 0; i < 12; ++i) histories.items.push_back((7 * user + i) % 30);
    histories.end.push_back(histories.items.size());
  }
  return histories;
}

TrainedConstants Small() {
  TrainedConstants constants;
  constants.length = 8;
  constants.width = 16;
  constants.blocks = 1;
  constants.dropout = 0.1f;
  constants.epochs = 30;
  constants.batch_private = 150;
  constants.batch_plain = 30;
  constants.learning_rate_private = 0.02f;
  constants.learning_rate_plain = 0.01f;
  return constants;
}

class TrainedMethodTest : public testing::Test {
 protected:
  double Fit(SequenceMethod& method, double epsilon) {
    double shown = 0;
    const auto spent = method.Fit(split_.train, {.epsilon = epsilon, .delta = 1e-5}, *noise_,
                                  workers_, [&](double share) {
                                    EXPECT_GE(share, shown);
                                    shown = share;
                                  });
    EXPECT_TRUE(spent) << spent.error().message;
    EXPECT_EQ(shown, 1);
    return spent ? *spent : 0;
  }

  const SequenceSplit split_ = LeaveLastOut(Circles(), false);
  WorkerPool workers_{WorkerPool::Options{2, false}};
  std::unique_ptr<noise::NoiseSource> noise_ = noise::MakeNoiseSource(workers_);
};

TEST_F(TrainedMethodTest, EveryModelLearnsWithoutPrivacy) {
  for (const std::string_view name : TrainedMethodNames()) {
    const auto method = MakeTrainedMethod(name, Small());
    EXPECT_TRUE(std::isinf(Fit(*method, std::numeric_limits<double>::infinity())));
    EXPECT_GT(MeasureRanking(*method, split_, workers_).hit10, 0.95) << name;
  }
}

// Sampled, and with everybody in every step.
TEST_F(TrainedMethodTest, WhatIsSpentIsWhatWasPromised) {
  for (const double batch : {150.0, 1000.0})
    for (const std::string_view name : {"dpformer", "transformer"}) {
      TrainedConstants constants = Small();
      constants.batch_private = batch;
      constants.epochs = 4;
      for (const double epsilon : {1.0, 8.0}) {
        const double spent = Fit(*MakeTrainedMethod(name, constants), epsilon);
        EXPECT_LE(spent, epsilon) << name;
        EXPECT_GT(spent, 0.95 * epsilon) << name;
      }
    }
}

// What Re-Attention's histogram was before its noise.
class Sums final : public noise::SilentNoise {
 public:
  void AddGridGaussian(double, std::span<int64_t> values) override {
    sums.insert(sums.end(), values.begin(), values.end());
  }
  std::vector<int64_t> sums;
};

// However often a user's items come again; if each time counted, one user would move it further.
TEST_F(TrainedMethodTest, AUserMovesTheHistogramOfItemsByAtMostOne) {
  model::Histories histories = Circles();
  TrainedConstants constants = Small();
  constants.epochs = 1;
  const auto sums = [&](const std::vector<uint32_t>& first) {
    std::ranges::copy(first, histories.items.begin());
    Sums noise;
    const auto spent =
        MakeTrainedMethod("dpformer", constants)
            ->Fit(histories, {.epsilon = 4, .delta = 1e-5}, noise, workers_, [](double) {});
    EXPECT_TRUE(spent) << spent.error().message;
    EXPECT_EQ(noise.sums.size(), 30u);
    return noise.sums;
  };
  // Both users' vectors are known: what is common cancels, what is not has norm 1.
  const auto one = sums(std::vector<uint32_t>(12, 3));
  const auto other = sums({3, 3, 3, 3, 3, 3, 8, 8, 8, 8, 8, 8});
  constexpr double kStep = 0x1p-20;
  const auto moved = [&](size_t item) { return static_cast<double>(one[item] - other[item]); };
  EXPECT_NEAR(moved(3) * kStep, 1 - std::sqrt(0.5), 1e-5) << "1 and 1 / sqrt(2)";
  EXPECT_NEAR(moved(8) * kStep, -std::sqrt(0.5), 1e-5);
  histories.items.erase(histories.items.begin(), histories.items.begin() + 12);
  for (uint64_t& end : histories.end) end -= 12;
  const auto without = sums({});
  double squared = 0;
  for (size_t item = 0; item < 30; ++item)
    squared += std::pow(static_cast<double>(other[item] - without[item]) * kStep, 2);
  EXPECT_LE(squared, 1);
  EXPECT_GT(squared, 0.999);
}

TEST_F(TrainedMethodTest, MoreEpsilonTellsMore) {
  TrainedConstants constants = Small();
  const auto hit = [&](double epsilon) {
    const auto method = MakeTrainedMethod("dpformer", constants);
    Fit(*method, epsilon);
    return MeasureRanking(*method, split_, workers_).hit10;
  };
  EXPECT_GT(hit(200), hit(0.05) + 0.2);
}

// Kept runs of other constants are not taken for these.
TEST_F(TrainedMethodTest, RunsAreKnownByTheirConstants) {
  SequenceSetting setting, other;
  other.trained.epochs = 7;
  EXPECT_NE(SequenceMethodIdentity("gru", setting), SequenceMethodIdentity("gru", other));
  EXPECT_NE(SequenceMethodIdentity("gru", setting), SequenceMethodIdentity("lstm", setting));
  EXPECT_EQ(SequenceMethodIdentity("popularity", setting),
            SequenceMethodIdentity("popularity", other));
  other.transitions.stage_cells[1] = 0.2;
  EXPECT_NE(SequenceMethodIdentity("transitions", setting),
            SequenceMethodIdentity("transitions", other));
}

TEST_F(TrainedMethodTest, ScoresFromAnyThread) {
  TrainedConstants constants = Small();
  constants.epochs = 1;
  const auto method = MakeTrainedMethod("transformer", constants);
  Fit(*method, 8);
  std::vector<std::vector<float>> scores(4, std::vector<float>(30));
  std::vector<std::thread> threads;
  for (auto& mine : scores)
    threads.emplace_back([&] {
      const std::vector<uint32_t> history = {1, 2, 3};
      for (int i = 0; i < 50; ++i) method->Score(history, mine);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : scores) EXPECT_EQ(mine, scores[0]);
}

}  // namespace
}  // namespace tacit::app
