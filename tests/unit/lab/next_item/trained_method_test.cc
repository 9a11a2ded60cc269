// Trained sequence models through the interface of tacit evaluate sequence.
#include "lab/next_item/trained_method.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>
#include <tuple>

#include "lab/next_item/methods.h"
#include "lab/next_item/sequence_data.h"
#include "lab/next_item/sequence_ranking.h"
#include "noise/noise.h"
#include "support/fixed_noise.h"
#include "support/process.h"
#include "support/sequence_trainer.h"
#include "support/silent_noise.h"

namespace tacit::lab {
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
  constants.dropout_private = constants.dropout_plain = 0.1;
  constants.epochs_private = constants.epochs_plain = 30;
  constants.batch_private = 150;
  constants.batch_plain = 30;
  constants.learning_rate_private = 0.02;
  constants.learning_rate_plain = 0.01;
  return constants;
}

class TrainedMethodTest : public testing::Test {
 protected:
  SequenceSetting With(const TrainedConstants& constants) const {
    return {.catalogue = &catalogue_, .transitions = {}, .trained = constants, .ranked = {}};
  }
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

  const model::transitions::PublicItems catalogue_{30};
  const SequenceSplit split_ = LeaveLastOut(Circles(), false);
  WorkerPool workers_{WorkerPool::Options{2, false}};
  std::unique_ptr<noise::NoiseSource> noise_ = std::make_unique<noise::FixedNoise>(1);
};

TEST_F(TrainedMethodTest, EveryModelLearnsWithoutPrivacy) {
  for (const std::string_view name : TrainedMethodNames()) {
    SequenceMethod method(name, With(Small()));
    EXPECT_TRUE(std::isinf(Fit(method, std::numeric_limits<double>::infinity())));
    EXPECT_GT(MeasureRanking(method, split_, workers_).hit10, 0.95) << name;
  }
}

// Sampled, and with every user in every step.
TEST_F(TrainedMethodTest, WhatIsSpentIsWhatWasPromised) {
  for (const double batch : {150.0, 1000.0})
    for (const std::string_view name : {"dpformer", "transformer"}) {
      TrainedConstants constants = Small();
      constants.batch_private = batch;
      constants.epochs_private = constants.epochs_plain = 4;
      for (const double epsilon : {1.0, 8.0}) {
        SequenceMethod method(name, With(constants));
        const double spent = Fit(method, epsilon);
        EXPECT_LE(spent, epsilon) << name;
        EXPECT_GT(spent, 0.95 * epsilon) << name;
      }
    }
}

// Low-rank carriers of any kind learn, and spend what DP-SGD does.
TEST_F(TrainedMethodTest, CarriersLearnAtTheSamePrice) {
  for (const std::string_view from : {"history", "random"}) {
    SequenceSetting setting = With(Small());
    ASSERT_TRUE(setting.Set(fmt::format("carriers={}", from)));
    ASSERT_TRUE(setting.Set("carrier_rank=2"));
    const auto plan = LearnerOf("transformer", setting, true);
    ASSERT_TRUE(plan) << plan.error().message;
    ASSERT_TRUE(plan->training.sum_map);
    EXPECT_EQ(plan->training.sum_map.rank, 2u);
    EXPECT_NE(setting.TrainedText().find(fmt::format("carriers {} carrier_rank 2", from)),
              std::string::npos);
    SequenceMethod plain("transformer", setting);
    EXPECT_TRUE(std::isinf(Fit(plain, std::numeric_limits<double>::infinity())));
    EXPECT_GT(MeasureRanking(plain, split_, workers_).hit10, 0.95) << from;
    setting.trained.epochs_private = 4;
    SequenceMethod guarded("dpformer", setting);
    const double spent = Fit(guarded, 8);
    EXPECT_LE(spent, 8);
    EXPECT_GT(spent, 0.95 * 8);
    // Nothing is said of a rank that saves nothing; one that carries nothing is refused.
    ASSERT_TRUE(setting.Set("carrier_rank=0"));
    const auto refused =
        SequenceMethod("gru", setting)
            .Fit(split_.train, {.epsilon = 8, .delta = 1e-5}, *noise_, workers_, [](double) {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("carriers of rank 0"), std::string::npos);
  }
  SequenceSetting setting = With(Small());
  const Status unknown = setting.Set("carriers=weights");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "--set carriers=weights: it is none, history or random");
}

// A learner that cannot be made, from all at once or from a stream, says so before anything is
// released.
TEST_F(TrainedMethodTest, ConstantsThatMakeNoModelAreRefusedByName) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  noise::SilentNoise silence;
  const std::vector<uint32_t> known(split_.train.units());
  model::Histories histories = split_.train;
  for (size_t user = 0; user < histories.units(); ++user) histories.id.push_back(user);
  for (const auto& [learner, epsilon, setting, named] :
       std::vector<std::tuple<std::string_view, double, std::string, std::string>>{
           {"dpformer", 8, "average_decay_private=1", "average_decay 1"},
           {"dpformer", 8, "average_decay_private=-0.5", "average_decay -0.5"},
           {"dpformer", 8, "variance_floor=0", "variance_floor 0"},
           {"dpformer", 8, "variance_floor=-1", "variance_floor -1"},
           {"dpformer", 8, "histogram_share=1e-320", "histogram_share 1e-320"},
           {"dpformer", 8, "clip_norm=1e308", "clip_norm 1e+308"},
           {"dpformer", 8, "clip_norm=1e-320", "clip_norm 1e-320"},
           {"dpformer", 8, "kappa=1e300", "kappa inf"},
           {"dpformer", 8, "epochs_private=1e300", "epochs_private"},
           {"dpformer", 8, "epochs_private=-7", "epochs_private"},
           {"dpformer", 8, "batch_private=1e-300", "batch"},
           {"dpformer", 8, "beta1=1", "beta1 1"},
           {"dpformer", 8, "beta2=2", "beta2 2"},
           {"dpformer", 8, "learning_rate_private=1e300", "learning_rate inf"},
           {"dpformer", 8, "learning_rate_private=-1", "learning_rate -1"},
           {"gru", kNone, "epochs_plain=1e300", "epochs_plain"},
           {"gru", kNone, "batch_plain=5e-324", "batch_plain"},
           {"gru", kNone, "batch_plain=1e-300", "batch_plain"},
           {"gru", kNone, "learning_rate_plain=1e300", "learning_rate inf"},
           {"gru", kNone, "width=4294967295", "width 4294967295"},
           {"gru", kNone, "crops=4294967295", "crops 4294967295"},
           {"gru", kNone, "length=4294967295", "length 4294967295"},
           {"gru", kNone, "blocks=4294967295", "blocks 4294967295"},
           {"transitions+transformer", 8, "counts_share=-1", "counts_share -1"},
           {"transitions+transformer", 8, "counts_share=1e-16", "counts_share 1e-16"},
           {"transitions+transformer", 8, "counts_weight=1e300", "counts_weight 1e+300"}}) {
    SequenceSetting all = With(Small());
    ASSERT_TRUE(all.Set(setting)) << setting;
    const auto at_once =
        SequenceMethod(learner, all)
            .Fit(histories, {.epsilon = epsilon, .delta = 1e-5}, silence, workers_, [](double) {});
    const auto stream = MakeStreamMethod(learner, all, workers_)
                            ->Learn({histories, known}, epsilon, silence, workers_);
    ASSERT_FALSE(at_once || stream) << learner << " " << setting;
    for (const Error& error : {at_once.error(), stream.error()}) {
      EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
      EXPECT_NE(error.message.find(named), std::string::npos) << error.message;
    }
  }
}

// Records Re-Attention's histogram before its noise.
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
  constants.epochs_private = constants.epochs_plain = 1;
  const auto sums = [&](const std::vector<uint32_t>& first) {
    std::ranges::copy(first, histories.items.begin());
    Sums noise;
    const auto spent =
        SequenceMethod("dpformer", With(constants))
            .Fit(histories, {.epsilon = 4, .delta = 1e-5}, noise, workers_, [](double) {});
    EXPECT_TRUE(spent) << spent.error().message;
    EXPECT_GT(noise.sums.size(), 30u);
    noise.sums.resize(30);  // before the steps'
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
    SequenceMethod method("dpformer", With(constants));
    Fit(method, epsilon);
    return MeasureRanking(method, split_, workers_).hit10;
  };
  EXPECT_GT(hit(200), hit(0.05) + 0.2);
}

// Kept runs of other constants are not taken for these.
TEST_F(TrainedMethodTest, RunsAreKnownByTheirConstants) {
  SequenceSetting setting, other;
  other.trained.epochs_private = 7;
  EXPECT_NE(SequenceMethodIdentity("gru", setting), SequenceMethodIdentity("gru", other));
  EXPECT_NE(SequenceMethodIdentity("gru", setting), SequenceMethodIdentity("lstm", setting));
  EXPECT_EQ(SequenceMethodIdentity("popularity", setting),
            SequenceMethodIdentity("popularity", other));
  other.transitions.stage_cells[1] = 0.2;
  EXPECT_NE(SequenceMethodIdentity("transitions", setting),
            SequenceMethodIdentity("transitions", other));
}

TEST_F(TrainedMethodTest, ConstantsAreSetByName) {
  SequenceSetting all;
  for (const char* setting :
       {"width=16", "mask_seen=false", "learning_rate_private=0.25", "ranker_steps=3"})
    EXPECT_TRUE(all.Set(setting));
  EXPECT_EQ(all.trained.width, 16u);
  EXPECT_FALSE(all.trained.mask_seen);
  EXPECT_EQ(all.trained.learning_rate_private, 0.25);
  EXPECT_EQ(all.ranked.steps, 3u);
  const auto refused = [&](const char* setting, const char* why) {
    const Status status = all.Set(setting);
    ASSERT_FALSE(status) << setting;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().message.find(why), std::string::npos) << status.error().message;
  };
  refused("widht=32", "did you mean 'width'?");
  refused("width", "NAME=VALUE");
  refused("width=-1", "--set width=-1: it is a whole number");
  refused("width=3.5", "whole number");
  refused("dropout_plain=x", "it is a number");
  refused("dropout_plain=inf", "it is a number");
  refused("mask_seen=1", "true or false");
  refused("carriers=1", "it is none, history or random");
  EXPECT_EQ(all.trained.width, 16u) << "what is refused changes nothing";
  // Each makes another model of it.
  for (const std::string_view name : SequenceSetting::Names()) {
    SequenceSetting other, another;
    const auto one_of = [&](SequenceSetting& setting, auto... values) {
      return (setting.Set(fmt::format("{}={}", name, values)) || ...);
    };
    ASSERT_TRUE(one_of(other, "1", "true", "random"));
    ASSERT_TRUE(one_of(another, "7", "false", "history"));
    EXPECT_NE(other.TrainedText() + other.RankedText(),
              another.TrainedText() + another.RankedText())
        << name;
  }
}

// From the file on: a user's coins are the same with or without a user who came before.
TEST_F(TrainedMethodTest, AUserOfAFileMovesAStepByAtMostItsBound) {
  const test::TempDir dir;
  const auto backend = ops::MakeCpuBackend(workers_);
  const auto step = [&](uint32_t without, bool fault) {
    {
      std::ofstream file(dir / "data");
      for (uint32_t user = 0; user < 40; ++user)
        for (uint32_t i = 0; i < 20 && user != without; ++i)
          file << "user" << user << " " << (7 * user + (1 + user % 3) * i) % 30 << "\n";
    }
    SequenceSplit split = LeaveLastOut(ReadSequences(dir / "data")->histories, false);
    EXPECT_EQ(split.train.catalogue, 30u);
    if (fault) split.train.id.clear();
    train::SequenceTrainingOptions options =
        LearnerOf("transformer", With(Small()), true)->training;
    options.expected_batch = static_cast<double>(split.train.units());
    options.schedule.steps = 1;
    options.privacy.sigma = 1;
    auto noise = std::make_unique<Sums>();
    const auto& sums = noise->sums;
    train::SequenceTrainer trainer(options, split.train, *backend, std::move(noise),
                                   std::make_unique<noise::FixedNoise>(2));
    train::SequenceStepReport report;
    EXPECT_TRUE(trainer.Step(&report));
    return sums;
  };
  const auto apart = [&](uint32_t without, bool fault) {
    const auto all = step(40, fault), others = step(without, fault);
    EXPECT_EQ(all.size(), others.size());
    double squared = 0;
    for (size_t i = 0; i < all.size(); ++i)
      squared += std::pow(static_cast<double>(all[i] - others[i]) * 0x1p-30, 2);
    return std::sqrt(squared);
  };
  for (const uint32_t without : {0u, 7u}) {
    EXPECT_LE(apart(without, false), 1) << without;
    EXPECT_GT(apart(without, false), 0.9) << without;
    // Planted: users who are known by their places in the file.
    EXPECT_GT(apart(without, true), 1.5) << without;
  }
}

// Before it has learnt anything, a transformer whose embeddings are small ranks as the counts do.
TEST_F(TrainedMethodTest, LogitsBeginWithThoseOfCounts) {
  TrainedConstants constants = Small();
  constants.epochs_plain = constants.epochs_private = 0.1;
  constants.learning_rate_plain = constants.learning_rate_private = 0;
  SequenceMethod begun("transitions+transformer", With(constants));
  SequenceMethod never("transformer", With(constants));
  constexpr double kNone = std::numeric_limits<double>::infinity();
  Fit(begun, kNone);
  Fit(never, kNone);
  EXPECT_GT(MeasureRanking(begun, split_, workers_).hit10, 0.95);
  EXPECT_LT(MeasureRanking(never, split_, workers_).hit10, 0.8);
  // Popularity is among what counts know: it is not begun with a second time.
  std::vector<float> nothing(30, 1);
  begun.Score({}, nothing);
  EXPECT_EQ(nothing, std::vector<float>(30));
  // The release and the steps are paid for out of one promise.
  for (const double share : {0.2, 0.9}) {
    constants.counts_share = share;
    constants.epochs_private = 4;
    SequenceMethod method("transitions+transformer", With(constants));
    const double spent = Fit(method, 5);
    EXPECT_LE(spent, 5);
    EXPECT_GT(spent, 4.75);
  }
}

// Each look on the way sees the model so far, and the last look sees the one that is kept.
TEST_F(TrainedMethodTest, IsWatchedAsItLearns) {
  TrainedConstants constants = Small();
  constants.epochs_plain = 6;
  SequenceMethod method("transformer", With(constants));
  const std::vector<uint32_t> history = {4, 5, 6};
  std::vector<float> scores(30);
  std::vector<double> epochs;
  std::vector<std::vector<float>> seen;
  method.Watch(2, [&](double epoch) {
    epochs.push_back(epoch);
    method.Score(history, scores);
    seen.push_back(scores);
  });
  Fit(method, std::numeric_limits<double>::infinity());
  EXPECT_EQ(epochs, (std::vector<double>{2, 4, 6}));
  EXPECT_NE(seen[0], seen[1]);
  EXPECT_NE(seen[1], seen[2]);
  method.Score(history, scores);
  EXPECT_EQ(seen[2], scores);
}

// Logits that begin as a released histogram rank first what many have, with biases or without.
TEST_F(TrainedMethodTest, LogitsMayBeginAsWhatIsPopular) {
  TrainedConstants constants = Small();
  constants.epochs_private = 0.5;
  constants.learning_rate_private = 0;
  model::Histories histories = split_.train;
  for (size_t i = 0; i < histories.items.size(); i += 4) histories.items[i] = 17;
  for (const bool item_bias : {false, true}) {
    constants.item_bias = item_bias;
    SequenceMethod method("transformer", With(constants));
    ASSERT_TRUE(
        method.Fit(histories, {.epsilon = 8, .delta = 1e-5}, *noise_, workers_, [](double) {}));
    std::vector<float> scores(30);
    method.Score({}, scores);
    EXPECT_EQ(std::ranges::max_element(scores) - scores.begin(), 17);
  }
}

TEST_F(TrainedMethodTest, ScoresFromAnyThread) {
  TrainedConstants constants = Small();
  constants.epochs_private = constants.epochs_plain = 1;
  SequenceMethod method("transformer", With(constants));
  Fit(method, 8);
  std::vector<std::vector<float>> scores(4, std::vector<float>(30));
  std::vector<std::thread> threads;
  for (auto& mine : scores)
    threads.emplace_back([&] {
      const std::vector<uint32_t> history = {1, 2, 3};
      for (int i = 0; i < 50; ++i) method.Score(history, mine);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : scores) EXPECT_EQ(mine, scores[0]);
}

}  // namespace
}  // namespace tacit::lab
