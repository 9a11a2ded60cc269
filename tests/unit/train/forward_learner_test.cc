// DP-FP through the click learner: the update against loops in float64, the noise of every slot,
// and that nothing but noised slots sees a feature.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <random>

#include "mechanism/forward/forward.h"
#include "mechanism/private_step.h"
#include "support/silent_noise.h"
#include "train/click/click_learner.h"
#include "train/click/memory_rows.h"
#include "unit/model/loop_model.h"

namespace tacit::train {
namespace {

constexpr double kShownClip = 0.8, kShownSigma = 2;
constexpr size_t kShownBatch = 8, kShownNumbers = 5;
const std::atomic<bool> kLearnOn = false;

// Notes what noise was asked for. `replaced`: the released numbers are what this says, in place
// of all before.
class NotedNoise final : public noise::SilentNoise {
 public:
  explicit NotedNoise(bool replaced = false) : replaced_(replaced) {}
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    stddevs.push_back(stddev);
    numbers += values.size();
    for (size_t i = 0; replaced_ && i < values.size(); ++i)
      values[i] = static_cast<int64_t>(i % 1000) * 1'000'000;
  }
  std::vector<double> stddevs;
  size_t numbers = 0;

 private:
  const bool replaced_;
};

class WatchedRows final : public store::WorkingRows {
 public:
  explicit WatchedRows(store::RowLayout layout) : rows_(std::move(layout)) {}
  Status Gather(std::span<const uint64_t> rows, std::span<float*> out) override {
    return rows_.Gather(rows, out);
  }
  void MarkChanged(std::span<const uint64_t> rows) override { changed += rows.size(); }
  std::shared_ptr<const store::RowDelta> TakeDelta() override { return rows_.TakeDelta(); }
  Stats stats() const override { return rows_.stats(); }

  size_t changed = 0;

 private:
  MemoryRows rows_;
};

// By SGD at rate 1: the update is what the model moves by.
struct ForwardTrial {
  ClickOptions options;
  WorkerPool workers{{.workers = 1}};
  std::unique_ptr<ops::Backend> backend = ops::MakeCpuBackend(workers);
  std::unique_ptr<WatchedRows> rows;
  NotedNoise* noise = nullptr;
  std::unique_ptr<ClickLearner> learner;

  explicit ForwardTrial(bool replaced = false, bool forward = true) {
    options.id = "ctr";
    options.index = LearnerIndex(0);
    options.model.space.AddTable("a", 50, 3);
    options.model.space.AddTable("b", 20, 2);
    options.model.dense_width = kShownNumbers;
    options.model.hidden = {12, 7};
    options.model.input_clip = forward ? kShownClip : 0;
    options.optimizer = {.kind = OptimizerNamed("sgd"), .learning_rate = 1, .row_learning_rate = 1};
    rows =
        std::make_unique<WatchedRows>(MakeRowLayout(options, model::Pctr(options.model, *backend)));
    auto mechanism =
        forward ? mechanism::MakeForward({.clip = kShownClip,
                                          .sigma = kShownSigma,
                                          .expected_batch = static_cast<double>(kShownBatch)})
                : mechanism::MakeAdaFest(options.model.space,
                                         {.sigma_selection = 1,
                                          .sigma_gradient = kShownSigma,
                                          .clip_selection = 1,
                                          .clip_gradient = kShownClip,
                                          .threshold = INFINITY,
                                          .expected_batch = static_cast<double>(kShownBatch)});
    auto noted = std::make_unique<NotedNoise>(replaced);
    noise = noted.get();
    learner = std::make_unique<ClickLearner>(options, std::move(mechanism), std::move(noted),
                                             *backend, *rows, nullptr);
  }
  size_t width() const { return 3 + 2 + kShownNumbers; }

  std::vector<float> Step(const stream::StepBatch& step) {
    const auto before = learner->CopyDense();
    StepReport report;
    const auto taken = learner->TakeStep(step, kLearnOn, &report);
    EXPECT_TRUE(taken && *taken);
    EXPECT_EQ(report.rows_written, 0u);
    const auto after = learner->CopyDense();
    std::vector<float> moved(after->parameters.size());
    for (size_t i = 0; i < moved.size(); ++i)
      moved[i] = before->parameters[i] - after->parameters[i];
    return moved;
  }
};

stream::StepBatch RecordsOf(size_t events, uint64_t features, uint64_t labels, float size = 1) {
  std::mt19937_64 random(features), coin(labels);
  std::normal_distribution<float> normal(0, size);
  stream::StepBatch step;
  step.examples.dense_width = kShownNumbers;
  step.examples.slots = 2;
  step.ranges = {{0, 0, kShownBatch}};
  for (size_t i = 0; i < events; ++i) {
    step.examples.offset.push_back(i);
    step.examples.timestamp_ms.push_back(0);
    step.examples.label.push_back(static_cast<float>(coin() % 2));
    for (size_t d = 0; d < kShownNumbers; ++d) step.examples.dense.push_back(normal(random));
    step.examples.row.push_back(random() % 50);
    step.examples.slot_end.push_back(static_cast<uint32_t>(2 * i + 1));
    step.examples.row.push_back(50 + random() % 20);
    step.examples.slot_end.push_back(static_cast<uint32_t>(2 * i + 2));
    step.unit_of.push_back(static_cast<uint32_t>(i));
  }
  step.units = static_cast<uint32_t>(events);
  return step;
}

// The inputs of a record, clipped, in float64.
std::vector<double> ClippedInput(const ForwardTrial& trial, const stream::StepBatch& step,
                                 size_t i) {
  std::vector<double> input;
  const RowSpace& space = trial.options.model.space;
  for (size_t slot = 0; slot < 2; ++slot) {
    const uint64_t id = step.examples.row[2 * i + slot];
    std::vector<float> row(space.tables()[slot].dim);
    InitialRow(trial.options.seed, id, 0.05f, row);
    input.insert(input.end(), row.begin(), row.end());
  }
  for (size_t d = 0; d < kShownNumbers; ++d)
    input.push_back(step.examples.dense[i * kShownNumbers + d]);
  const double length = std::sqrt(model::testing::SquaredLength(input));
  for (double& x : input) x *= std::min(1.0, kShownClip / length);
  return input;
}

TEST(ForwardLearner, LearnsFromClippedRepresentationsAsLoopsDo) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    ForwardTrial trial;
    // Some records are shorter than the clip, some longer.
    const auto step = RecordsOf(seed % kShownBatch + 1, seed, seed, 0.4f);
    const auto parameters = trial.learner->CopyDense()->parameters;
    const std::vector<double> dense(parameters.begin(), parameters.end());
    const model::testing::LoopModel loops{
        .space = {}, .dense_width = static_cast<uint32_t>(trial.width()), .hidden = {12, 7}};
    std::vector<double> want(dense.size());
    for (size_t i = 0; i < step.examples.size(); ++i) {
      const auto gradient = model::testing::LoopBackward(
          loops,
          {.dense = ClippedInput(trial, step, i), .slots = {}, .label = step.examples.label[i]},
          dense, {});
      for (size_t d = 0; d < want.size(); ++d) want[d] += gradient.dense[d] / kShownBatch;
    }
    const auto moved = trial.Step(step);
    for (size_t d = 0; d < want.size(); ++d) ASSERT_NEAR(moved[d], want[d], 1e-5) << d;
    EXPECT_EQ(trial.rows->changed, 0u) << "embeddings lie below the noise";
  }
}

TEST(ForwardLearner, EveryNumberOfEverySlotGetsNoiseHoweverManyRecordsThereAre) {
  for (const auto& [events, slots] :
       {std::pair<size_t, size_t>{0, 8}, {1, 8}, {8, 8}, {9, 16}, {20, 24}}) {
    ForwardTrial trial;
    trial.Step(RecordsOf(events, 3, 3));
    EXPECT_EQ(trial.noise->numbers, slots * trial.width()) << events;
    const double step = mechanism::MakeGrid(kShownClip, kShownClip * kShownSigma).step;
    for (const double stddev : trial.noise->stddevs)
      EXPECT_NEAR(stddev * step, kShownSigma * kShownClip, 1e-9);
  }
}

// For any features, the same released slots make the same model. Labels do not; nor would a
// step that has its noise in gradients, which this comparison finds out.
TEST(ForwardLearner, FeaturesReachTheModelThroughNoisedSlotsAlone) {
  const auto learnt = [](bool forward, uint64_t features, uint64_t labels) {
    ForwardTrial trial(/*replaced=*/forward, forward);
    trial.Step(RecordsOf(6, features, labels));
    trial.Step(RecordsOf(6, features + 50, labels + 1));
    return trial.learner->CopyDense()->parameters;
  };
  const auto want = learnt(true, 1, 4);
  EXPECT_NE(want, ForwardTrial().learner->CopyDense()->parameters) << "nothing is learnt";
  for (uint64_t features = 2; features < 6; ++features)
    EXPECT_EQ(learnt(true, features, 4), want) << features;
  EXPECT_NE(learnt(true, 1, 5), want) << "labels are used as they are";
  EXPECT_NE(learnt(false, 2, 4), learnt(false, 1, 4)) << "the comparison sees nothing";
}

double LongestSlot(const std::vector<float>& slots, size_t width) {
  double longest = 0;
  for (size_t at = 0; at < slots.size(); at += width) {
    double squared = 0;
    for (size_t i = at; i < at + width; ++i) squared += double{slots[i]} * slots[i];
    longest = std::max(longest, std::sqrt(squared));
  }
  return longest;
}

TEST(ForwardLearner, NoSlotIsLongerThanTheClipAndOneWithoutAClipIsFoundOut) {
  const auto mechanism =
      mechanism::MakeForward({.clip = kShownClip, .sigma = kShownSigma, .expected_batch = 4});
  const mechanism::RepresentationNoise& noised = *mechanism->representation();
  std::mt19937_64 random(9);
  std::normal_distribution<float> normal;
  constexpr size_t kWidth = 37;
  for (const float size : {1e-3f, 0.1f, 1.0f, 1e9f, 3e37f}) {
    std::vector<float> slots(20 * kWidth);
    for (float& x : slots) x = size * normal(random);
    slots[0] = std::nanf("");
    slots[kWidth] = std::numeric_limits<float>::infinity();
    std::vector<float> released = slots;
    noise::SilentNoise silent;
    noised.Add(silent, kWidth, released);
    EXPECT_LE(LongestSlot(released, kWidth), kShownClip * (1 + 1e-7)) << size;
    for (size_t i = 0; i < 2 * kWidth; ++i) EXPECT_EQ(released[i], 0) << "no numbers: empty";
    if (size >= 1) {
      EXPECT_GT(LongestSlot(released, kWidth), 0.99 * kShownClip);
      // Planted: the grid alone.
      std::vector<float> unclipped(slots.begin() + 2 * kWidth, slots.end());
      mechanism::Release(noised.grid, 1, silent, unclipped);
      EXPECT_GT(LongestSlot(unclipped, kWidth), kShownClip * 2) << size;
    }
  }
}

TEST(ForwardLearner, AnswersAreOfClippedInputs) {
  ForwardTrial trial;
  stream::StepBatch large = RecordsOf(1, 3, 3, 100);
  StepReport report;
  ASSERT_TRUE(trial.learner->Preview(large, &report));
  const float logit = report.logits[0];
  // Numbers so large that embeddings do not count: twice as large is the same direction.
  for (float& x : large.examples.dense) x *= 2;
  ASSERT_TRUE(trial.learner->Preview(large, &report));
  EXPECT_NEAR(report.logits[0], logit, 1e-3);
}

TEST(ForwardLearner, AStepIsChargedForItsRepresentationsAndSaysWhatIsNotCovered) {
  const privacy::Charge charge = ForwardTrial().learner->charge();
  EXPECT_EQ(charge.noise_multiplier, kShownSigma);
  EXPECT_EQ(charge.mechanism, privacy::MechanismKind::kForward);
  EXPECT_TRUE(privacy::NotCovered(charge.mechanism).starts_with("labels are not covered"));
  EXPECT_EQ(privacy::NotCovered(privacy::MechanismKind::kDpSgd), "");
}

}  // namespace
}  // namespace tacit::train
