// Trained sequence models that learn from a stream, period by period.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>

#include "lab/next_item/methods.h"
#include "lab/next_item/stream_replay.h"
#include "lab/next_item/trained_method.h"
#include "mechanism/clipper.h"
#include "model/sequence/sequence_model.h"
#include "support/fixed_noise.h"
#include "support/process.h"
#include "support/silent_noise.h"

namespace tacit::lab {
namespace {

using testing::HasSubstr;
using Items = std::vector<uint32_t>;

constexpr uint32_t kStreamItems = 30;
constexpr double kNone = std::numeric_limits<double>::infinity();
// The grid's steps for a multiplier below 128, in units of the bound.
constexpr double kGradientStep = 0x1p-30, kHistogramStep = 0x1p-20;

TrainedConstants SmallStream() {
  TrainedConstants constants = TrainedConstants::ForStreams();
  constants.length = 8;
  constants.width = 16;
  constants.blocks = 1;
  constants.epochs_private = 4;
  constants.learning_rate_private = 0.03;
  constants.epochs_plain = 20;
  constants.dropout_plain = 0.1;
  constants.histogram_share = 0.5;
  constants.batch_private = 20;
  return constants;
}

// Constants that release nothing but the gradient, without coins.
TrainedConstants GradientAlone() {
  TrainedConstants constants = SmallStream();
  constants.popularity_start = constants.random_crops = false;
  constants.dropout_private = 0;
  return constants;
}

// A period as it is handed to a method.
struct Period {
  model::Histories histories{.items = {}, .end = {}, .catalogue = kStreamItems};
  Items known;

  void Add(uint32_t who, const Items& before, const Items& fresh) {
    for (const Items* part : {&before, &fresh})
      histories.items.insert(histories.items.end(), part->begin(), part->end());
    histories.end.push_back(histories.items.size());
    known.push_back(static_cast<uint32_t>(before.size()));
    histories.id.push_back(who);
  }
  StreamPeriod view() const { return {histories, known}; }
};

// Users of more items than a window has, except for `without`.
Period ManyItems(uint32_t users, uint32_t without) {
  Period period;
  for (uint32_t who = 0; who < users; ++who) {
    Items before(who % 4), fresh(9 + who % 12);
    for (uint32_t i = 0; i < before.size(); ++i) before[i] = (who + i) % kStreamItems;
    for (uint32_t i = 0; i < fresh.size(); ++i)
      fresh[i] = (5 * who + (1 + who % 3) * i) % kStreamItems;
    if (who != without) period.Add(who, before, fresh);
  }
  return period;
}

// Draws nothing, and keeps every sum that was to be noised, with the noise it was to have.
class Recorder final : public noise::SilentNoise {
 public:
  struct Release {
    double stddev = 0;  // in steps
    std::vector<int64_t> sums;
  };
  void Rekey() override { releases.emplace_back(); }
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    Release& release = releases.back();
    release.stddev = stddev;
    release.sums.insert(release.sums.end(), values.begin(), values.end());
  }
  std::vector<Release> releases;
};

// mu^2 of all of them, each of a user's norm 1: histograms, and at the end a number of steps.
double Composed(const std::vector<Recorder::Release>& releases, size_t steps) {
  double sum = 0;
  for (size_t i = 0; i < releases.size(); ++i)
    sum += std::pow(
        (i + steps < releases.size() ? kHistogramStep : kGradientStep) * releases[i].stddev, -2);
  return sum;
}

// The distance between two releases, in units of the bound.
double Apart(const Recorder::Release& a, const Recorder::Release& b, double step) {
  EXPECT_EQ(a.sums.size(), b.sums.size());
  double squared = 0;
  for (size_t i = 0; i < a.sums.size(); ++i)
    squared += std::pow(static_cast<double>(a.sums[i] - b.sums[i]) * step, 2);
  return std::sqrt(squared);
}

class TrainedStreamTest : public testing::Test {
 protected:
  SequenceSetting With(const TrainedConstants& constants) const {
    return {.catalogue = &catalogue_, .transitions = {}, .trained = constants, .ranked = {}};
  }
  std::unique_ptr<StreamMethod> Make(std::string_view name, const TrainedConstants& constants) {
    return MakeTrainedMethod(name, With(constants), workers_);
  }
  double Learn(StreamMethod& method, const Period& period, double mu, noise::NoiseSource& noise) {
    const auto spent = method.Learn(period.view(), mu, noise, workers_);
    EXPECT_TRUE(spent) << spent.error().message;
    return spent ? spent->mu_squared : 0;
  }
  // Returns the releases of a first period.
  std::vector<Recorder::Release> Releases(std::string_view name, const TrainedConstants& constants,
                                          const Period& period) {
    Recorder recorder;
    Learn(*Make(name, constants), period, 1, recorder);
    return recorder.releases;
  }
  std::string Refusal(StreamMethod& method, double mu) {
    const auto spent = method.Learn(ManyItems(5, 5).view(), mu, *noise_, workers_);
    if (spent) return "";
    EXPECT_EQ(spent.error().code, ErrorCode::kInvalidArgument);
    return spent.error().message;
  }
  std::vector<float> Scores(const StreamMethod& method, const Items& history) {
    std::vector<float> scores(kStreamItems);
    method.Score(history, scores);
    return scores;
  }

  const model::transitions::PublicItems catalogue_{kStreamItems};
  WorkerPool workers_{WorkerPool::Options{2, false}};
  std::unique_ptr<noise::NoiseSource> noise_ = std::make_unique<noise::FixedNoise>(1);
};

// By the noise that every release was given, of every period, one without users among them.
TEST_F(TrainedStreamTest, APeriodSpendsWhatItMayAndSaysSo) {
  TrainedConstants none = SmallStream();
  none.popularity_start = false;
  for (const double mu : {0.3, 2.0})
    for (const auto& [name, constants, releases] :
         {std::tuple{"dpformer", SmallStream(), 5},
          {"gru", SmallStream(), 5},
          {"transformer", none, 4},
          {"transitions+transformer", SmallStream(), 9}}) {
      const auto method = Make(name, constants);
      bool first = true;
      for (const Period& period : {ManyItems(20, 20), Period(), ManyItems(3, 3)}) {
        Recorder recorder;
        const double spent = Learn(*method, period, mu, recorder);
        // So few make counts look at popularity twice in the first period.
        const size_t looks = releases == 9 && first ? 1 : 0;
        first = false;
        EXPECT_EQ(recorder.releases.size(), static_cast<size_t>(releases) + looks) << name;
        EXPECT_NEAR(Composed(recorder.releases, 4) / (mu * mu), 1, 1e-9) << name;
        EXPECT_NEAR(spent / (mu * mu), 1, 1e-9) << name;
        EXPECT_LE(spent, mu * mu);
        // Planted: a step more than was charged.
        recorder.releases.push_back(recorder.releases.back());
        EXPECT_GT(Composed(recorder.releases, 5), 1.02 * mu * mu);
      }
    }
}

// The bound holds beside any other users, and with any coins: crops at random,
// dropout.
TEST_F(TrainedStreamTest, AUserMovesAReleaseByAtMostItsBound) {
  TrainedConstants constants = SmallStream();
  constants.crops = 2;
  constants.dropout_private = 0.2;
  const auto histogram = [&](const Period& period) {
    return Releases("dpformer", constants, period)[0];
  };
  const Period all = ManyItems(20, 20), without = ManyItems(20, 7);
  const double by_histogram = Apart(histogram(all), histogram(without), kHistogramStep);
  EXPECT_LE(by_histogram, 1);
  EXPECT_GT(by_histogram, 0.999);
  // The first step's: later ones depend on what was released before them.
  constants.popularity_start = false;
  const auto step = [&](const Period& period) {
    return Releases("transformer", constants, period)[0];
  };
  const double by_step = Apart(step(all), step(without), kGradientStep);
  EXPECT_LE(by_step, 1);
  EXPECT_GT(by_step, 0.9) << "a long gradient is cut to about its bound";
  // Planted: users who are known by their places draw others' coins when one is gone.
  Period moved = without;
  std::iota(moved.histories.id.begin(), moved.histories.id.end(), 0u);
  EXPECT_GT(Apart(step(all), step(moved), kGradientStep), 1);
  // Planted: a user who is there twice.
  Period twice = all;
  const auto items = all.histories.Of(7);
  twice.Add(7, {items.begin(), items.begin() + all.known[7]},
            {items.begin() + all.known[7], items.end()});
  EXPECT_GT(Apart(step(twice), step(without), kGradientStep), 1.5);
}

// From the file on: a user's coins are the same with or without a user who came before.
TEST_F(TrainedStreamTest, AUserOfAFileMovesAStepByAtMostItsBound) {
  const test::TempDir dir;
  TrainedConstants constants = SmallStream();
  constants.crops = 2;
  constants.dropout_private = 0.2;
  constants.popularity_start = false;
  const Period users = ManyItems(20, 20);
  const auto step = [&](uint32_t without, bool fault) {
    size_t events = 0;
    {
      std::ofstream file(dir / "data");
      for (uint32_t who = 0; who < 20; ++who)
        for (const uint32_t item : users.histories.Of(who)) {
          if (who == without) break;
          file << "user" << who << " " << item << " 5 1\n";
          ++events;
        }
      file << "last 0 5 2\n";  // of the period that is not learnt
    }
    auto stream = ReadSequenceStream(dir / "data");
    EXPECT_TRUE(stream);
    EXPECT_EQ(stream->data.histories.catalogue, kStreamItems);
    if (fault) stream->data.histories.id.clear();
    Recorder recorder;
    const auto method = Make("transformer", constants);
    EXPECT_TRUE(ReplayStream(*stream,
                             {.period_events = events, .user_periods = 1, .mu = 1, .context = 8},
                             *method, recorder, workers_, [](double) {}));
    return recorder.releases.front();
  };
  for (const uint32_t without : {0u, 7u}) {
    const double apart = Apart(step(20, false), step(without, false), kGradientStep);
    EXPECT_LE(apart, 1) << without;
    EXPECT_GT(apart, 0.9) << without;
    // Planted: users who are known by their places in the file.
    EXPECT_GT(Apart(step(20, true), step(without, true), kGradientStep), 1.5) << without;
  }
}

// The latest window of each, by loops.
class WindowsByHand final : public model::SequenceUnits {
 public:
  WindowsByHand(const Period& period, size_t length) : period_(period), length_(length) {}
  size_t units() const override { return period_.histories.units(); }
  uint64_t Id(size_t unit) const override { return unit; }
  size_t Cost(size_t) const override { return 1; }
  void Rows(size_t unit, uint64_t, model::UnitRows* rows) const override {
    const auto items = period_.histories.Of(unit);
    rows->Clear();
    const size_t begin = items.size() > length_ + 1 ? items.size() - 1 - length_ : 0;
    float targets = 0;
    for (size_t i = begin; i + 1 < items.size(); ++i) {
      const bool fresh = i + 1 >= period_.known[unit];
      rows->item.push_back(items[i]);
      rows->position.push_back(static_cast<uint32_t>(length_ - (items.size() - 1 - i)));
      rows->target.push_back(fresh ? items[i + 1] : model::kNoItem);
      rows->weight.push_back(fresh ? 1.0f : 0.0f);
      targets += rows->weight.back();
    }
    for (float& weight : rows->weight) weight /= std::max(1.0f, targets);
    if (rows->size() > 0) rows->crop_end.push_back(static_cast<uint32_t>(rows->size()));
  }

 private:
  const Period& period_;
  const size_t length_;
};

TEST_F(TrainedStreamTest, EarlierItemsAreReadAndNotPredicted) {
  Period period;
  period.Add(3, {}, {1, 2, 3, 4});
  period.Add(4, {5, 6, 7}, {8, 9});
  period.Add(9, {1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11, 3});
  period.Add(11, {1}, {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const TrainedConstants constants = GradientAlone();
  const auto by_hand = [&](const Period& of) {
    const train::SequenceTrainingOptions options =
        LearnerOf("transformer", With(constants), true)->training;
    const auto backend = ops::MakeCpuBackend(workers_);
    model::SequenceModel model(options.model, *backend);
    const auto clipper = mechanism::MakeAutomaticClipper(1, 2);
    model::SequenceSum sum;
    // The seed is what silence is for a uniform number.
    EXPECT_TRUE(model.ClippedSum(model.layout().Initial(uint64_t{1} << 52),
                                 WindowsByHand(of, constants.length), {}, clipper->rule(), &sum));
    return sum.steps;
  };
  const auto learnt = Releases("transformer", constants, period)[0].sums;
  EXPECT_EQ(learnt, by_hand(period));
  // Planted: all of it is new.
  Period fault = period;
  std::ranges::fill(fault.known, 0u);
  EXPECT_NE(learnt, by_hand(fault));
  // One item that nothing is before, and none at all.
  Period more = period;
  more.Add(20, {}, {17});
  more.Add(21, {17, 18}, {});
  EXPECT_EQ(Releases("transformer", constants, more)[0].sums, learnt);
}

TEST_F(TrainedStreamTest, APeriodWithoutAnybodyIsNoisedLikeAnyOther) {
  const auto method = Make("dpformer", SmallStream());
  EXPECT_NEAR(Learn(*method, Period(), 1, *noise_), 1, 1e-9) << "the first, even";
  const auto begun = Scores(*method, {1, 2});
  Learn(*method, ManyItems(20, 20), 1, *noise_);
  const auto before = Scores(*method, {1, 2});
  EXPECT_NE(before, begun);
  EXPECT_NEAR(Learn(*method, Period(), 1, *noise_), 1, 1e-9);
  EXPECT_NE(Scores(*method, {1, 2}), before);
}

// The stream's events as they come: users who go round a circle of items, a few at a time.
SequenceStream Circles(uint32_t users, uint32_t each) {
  std::mt19937_64 random(5);
  SequenceStream stream;
  for (uint32_t first = 0; first < users; first += 10)
    for (uint32_t i = 0; i < 10 * each; ++i) stream.user.push_back(first + i % 10);
  auto& histories = stream.data.histories;
  histories.catalogue = kStreamItems;
  for (uint32_t user = 0; user < users; ++user) {
    const auto begin = static_cast<uint32_t>(random() % kStreamItems);
    for (uint32_t i = 0; i < each; ++i) histories.items.push_back((begin + i) % kStreamItems);
    histories.end.push_back(histories.items.size());
  }
  return stream;
}

// A method, and what it says after each period to one who asks what follows 4, 5, 6.
class Probed final : public StreamMethod {
 public:
  explicit Probed(std::unique_ptr<StreamMethod> method) : method_(std::move(method)) {}
  uint32_t context() const override { return method_->context(); }
  Result<privacy::Spending> Learn(const StreamPeriod& period, double mu, noise::NoiseSource& noise,
                                  WorkerPool& workers) override {
    TACIT_ASSIGN(privacy::Spending spent, method_->Learn(period, mu, noise, workers));
    said.emplace_back(kStreamItems);
    Score(Items{4, 5, 6}, said.back());
    return spent;
  }
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    method_->Score(history, scores);
  }
  std::vector<std::vector<float>> said;

 private:
  const std::unique_ptr<StreamMethod> method_;
};

// The same stream up to the end of a period is the same model, before any continuation.
TEST_F(TrainedStreamTest, PredictsBeforeItLearns) {
  const StreamPlan plan{.period_events = 240, .user_periods = 1, .mu = 1, .context = 8};
  const auto said = [&](const SequenceStream& stream) {
    Recorder recorder;
    Probed method(Make("dpformer", SmallStream()));
    const auto outcome = ReplayStream(stream, plan, method, recorder, workers_, [](double) {});
    EXPECT_TRUE(outcome);
    return method.said;
  };
  SequenceStream stream = Circles(80, 12);
  const auto before = said(stream);
  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(said(stream), before);
  // The items of the users who come in the second period.
  for (size_t i = 12 * 20; i < 12 * 40; ++i) stream.data.histories.items[i] = i % 2;
  const auto after = said(stream);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_NE(after[1], before[1]);
}

double Hit10(StreamMethod& method, const SequenceStream& stream, double mu,
             noise::NoiseSource& noise, WorkerPool& workers) {
  const StreamPlan plan{
      .period_events = 600, .user_periods = 1, .mu = mu, .context = method.context()};
  const auto outcome = ReplayStream(stream, plan, method, noise, workers, [](double) {});
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome) return 0;
  EXPECT_LE(outcome->mu_squared, mu * mu);
  return outcome->all.hit10;
}

TEST_F(TrainedStreamTest, WithoutPrivacyWhatFollowsIsLearnt) {
  const SequenceStream stream = Circles(250, 12);
  const auto popularity = MakeStreamMethod("popularity", With({}), workers_);
  EXPECT_LT(Hit10(*popularity, stream, kNone, *noise_, workers_), 0.6);
  for (const std::string_view name : TrainedMethodNames()) {
    TrainedConstants constants = SmallStream();
    constants.learning_rate_plain = 0.01;
    constants.batch_plain = 8;
    EXPECT_GT(Hit10(*Make(name, constants), stream, kNone, *noise_, workers_), 0.9) << name;
  }
}

TEST_F(TrainedStreamTest, MoreEpsilonTellsMore) {
  const SequenceStream stream = Circles(250, 12);
  TrainedConstants constants = SmallStream();
  constants.epochs_private = 30;
  const auto hit = [&](double mu) {
    return Hit10(*Make("dpformer", constants), stream, mu, *noise_, workers_);
  };
  EXPECT_GT(hit(100), hit(0.05) + 0.2);
}

TEST_F(TrainedStreamTest, WhatMakesNoModelIsRefused) {
  const auto refusal = [&](auto change) {
    TrainedConstants constants = SmallStream();
    change(&constants);
    return Refusal(*Make("dpformer", constants), 1);
  };
  EXPECT_THAT(refusal([](auto* c) { c->histogram_share = 1; }), HasSubstr("histogram_share 1"));
  EXPECT_THAT(refusal([](auto* c) { c->histogram_share = 0; }), HasSubstr("histogram_share 0"));
  EXPECT_THAT(refusal([](auto* c) { c->label_smoothing = 0.1; }), HasSubstr("label_smoothing"));
  EXPECT_THAT(refusal([](auto* c) { c->batch_private = 0; }), HasSubstr("expected_batch 0"));
  TrainedConstants counts = SmallStream();
  counts.counts_share = 1;
  EXPECT_THAT(Refusal(*Make("transitions+transformer", counts), 1), HasSubstr("counts_share 1"));
  EXPECT_THAT(Refusal(*Make("gru", SmallStream()), 1e-9), HasSubstr("mu 1e-09"));
  const auto method = Make("gru", SmallStream());
  Learn(*method, ManyItems(5, 5), 1, *noise_);
  EXPECT_THAT(Refusal(*method, 2), HasSubstr("a period of mu 2"));
  EXPECT_THAT(Refusal(*method, kNone), HasSubstr("a period of mu inf"));
}

// Logits that begin with counts rank as counts do, before anything is learnt; the period's own.
TEST_F(TrainedStreamTest, CountsAreBegunWithAnewInEveryPeriod) {
  TrainedConstants constants = SmallStream();
  constants.learning_rate_plain = 0;
  constants.epochs_plain = 1;
  constants.counts_weight = 100;  // the model's own logits, of random rows, decide nothing
  const auto method = Make("transitions+transformer", constants);
  const auto best = [&](const Items& history) {
    const auto scores = Scores(*method, history);
    return std::ranges::max_element(scores) - scores.begin();
  };
  Period first, second;
  for (uint32_t who = 0; who < 20; ++who) first.Add(who, {}, {1, 2, 3});
  for (uint32_t who = 20; who < 90; ++who) second.Add(who, {9, 10}, {11});
  Learn(*method, first, kNone, *noise_);
  EXPECT_EQ(best({1}), 2);
  const auto before = Scores(*method, {10});
  Learn(*method, second, kNone, *noise_);
  EXPECT_EQ(best({10}), 11) << "from what was known before";
  EXPECT_NE(Scores(*method, {10}), before);
  EXPECT_EQ(best({1}), 2) << "which is not forgotten";
}

// Kept runs of other constants are not taken for these.
TEST_F(TrainedStreamTest, RunsAreKnownByWhatIsForgottenToo) {
  SequenceSetting setting, other;
  other.transitions.forget = 0.5;
  EXPECT_NE(StreamMethodIdentity("gru", setting), StreamMethodIdentity("gru", other));
  EXPECT_EQ(SequenceMethodIdentity("gru", setting), SequenceMethodIdentity("gru", other));
  // Once is enough.
  EXPECT_EQ(StreamMethodIdentity("transitions+transformer", setting),
            SequenceMethodIdentity("transitions+transformer", setting));
  EXPECT_NE(StreamMethodIdentity("transitions+transformer", setting),
            StreamMethodIdentity("transitions+transformer", other));
}

}  // namespace
}  // namespace tacit::lab
