#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "mechanism/private_step.h"
#include "noise/noise.h"
#include "support/fixed_noise.h"
#include "train/click/click_learner.h"
#include "train/click/host_click_engine.h"
#include "train/click/memory_rows.h"
#include "train/learner/position.h"
#include "train/trainer.h"
#include "unit/train/distant_engine.h"
#include "unit/train/remembering_store.h"

// The step loop against a store that only remembers.
namespace tacit::train {

inline RowSpace SmallSpace() {
  RowSpace space;
  space.AddTable("a", 40, 3);
  space.AddTable("b", 10, 2);
  return space;
}

// The product's noise; counts its keys.
class CountingNoise final : public noise::NoiseSource {
 public:
  explicit CountingNoise(int* rekeys) : rekeys_(rekeys) {}
  void AddGaussian(double stddev, std::span<float> values) override {
    noise_->AddGaussian(stddev, values);
  }
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    noise_->AddGridGaussian(stddev, values);
  }
  void FillGaussian(std::span<double> out) override { noise_->FillGaussian(out); }
  double Uniform() override { return noise_->Uniform(); }
  bool Bernoulli(double p) override { return noise_->Bernoulli(p); }
  void FillKey(std::span<uint8_t, 32> key) override { noise_->FillKey(key); }
  uint64_t GeometricSkip(double p) override { return noise_->GeometricSkip(p); }
  double GaussianTail(double lower) override { return noise_->GaussianTail(lower); }
  void Rekey() override {
    ++*rekeys_;
    noise_->Rekey();
  }

 private:
  const std::unique_ptr<noise::NoiseSource> noise_ = std::make_unique<noise::FixedNoise>(1);
  int* const rekeys_;
};

// The system's time; something may happen whenever it is looked at.
class HookedClock final : public Clock {
 public:
  TimePoint Now() const override {
    if (hook) hook();
    return SystemClock().Now() + ahead;
  }
  int64_t UnixMillis() const override { return SystemClock().UnixMillis(); }

  std::function<void()> hook;
  Duration ahead{};  // of the system's time
};

// A trainer over random steps of 32 events, DP-AdaFEST with this noise.
class TrainerTest : public testing::Test {
 protected:
  explicit TrainerTest() {
    workers_ = std::make_unique<WorkerPool>(WorkerPool::Options{.workers = 1});
    backend_ = ops::MakeCpuBackend(*workers_);
  }

  void Make(double sigma, double epsilon, std::chrono::milliseconds interval) {
    Make({{"ctr", sigma, epsilon}}, interval, std::nullopt);
  }

  struct Setup {
    std::string id;
    double sigma = 0, epsilon = 0;
    bool adapts = false;  // its clip follows the norms
    float rate = OptimizerOptions().learning_rate;
    stream::Position position = {};  // of its last commit
  };
  void Make(const std::vector<Setup>& setups, std::chrono::milliseconds interval,
            std::optional<privacy::TotalBudget> total) {
    store_ = std::make_unique<RememberingStore>();
    TrainerOptions options{.budgets = {},
                           .total_budget = total,
                           .topic = "log",
                           .commit_interval = interval,
                           .commit_each_period = commit_each_period_,
                           .idle_priority = false,
                           .has_days = has_days_};
    options.advise = [this](std::span<const stream::PartitionOffset> reached,
                            const store::Snapshot&) {
      advised_.emplace_back(reached.begin(), reached.end());
    };
    options.on_published = [this] { ++published_; };
    options.on_exhausted = [this](LearnerIndex learner) { exhausted_.push_back(learner.value); };
    std::vector<ResumedLearner> learners;
    for (const Setup& setup : setups) {
      learners.push_back({MakeLearner(setup, learners.size()), setup.position});
      options.budgets.push_back({.epsilon = setup.epsilon, .delta = 1e-6});
    }
    if (breaker_) {
      breaker_->index = LearnerIndex(static_cast<uint16_t>(setups.size()));
      store_->Add(std::string(kBreakerAccount), store::RowLayout());
      options.breaker =
          std::make_unique<Breaker>(*breaker_, std::make_unique<noise::FixedNoise>(3));
    }
    if (quality_) {
      options.qualities.resize(setups.size());
      quality_->index = LearnerIndex(static_cast<uint16_t>(setups.size()));
      store_->Add(QualityAccount(quality_->learner), store::RowLayout());
      options.qualities[0] =
          std::make_unique<PrivateQuality>(*quality_, std::make_unique<noise::FixedNoise>(4));
    }
    trainer_ = std::make_unique<Trainer>(std::move(options), std::move(learners), *store_, clock_,
                                         registry_, progress_);
  }
  static BreakerOptions BreakerOf(double epsilon) {
    return {.index = LearnerIndex(1),
            .topic = "log",
            .share = .5,
            .window = 64,
            .noise_multiplier = 4,
            .epsilon = epsilon,
            .delta = 1e-6};
  }
  // Two steps of 32 records, then the end of their window, and so on.
  Result<Outcome> RunWindows(const std::vector<uint64_t>& unreadable) {
    BoundedQueue<LearnerStep> steps(100);
    for (uint64_t i = 0; i < unreadable.size(); ++i) {
      EXPECT_TRUE(steps.Push(MakeStep(2 * i, 64 * i)));
      EXPECT_TRUE(steps.Push(MakeStep(2 * i + 1, 64 * i + 32)));
      EXPECT_TRUE(
          steps.Push({.learner = LearnerIndex(0),
                      .batch = {},
                      .source_identity = "identity of window " + std::to_string(i),
                      .window_end = WindowEnd{{{0, 64 * i, 64 * (i + 1)}}, unreadable[i]}}));
    }
    steps.Close();
    return trainer_->Run(steps);
  }

  std::unique_ptr<Learner> MakeLearner(const Setup& setup, size_t index) {
    ClickOptions options{
        .id = setup.id,
        .index = LearnerIndex(static_cast<uint16_t>(index)),
        .model = {.space = SmallSpace(), .dense_width = 2, .hidden = {8, 4}},
        .seed = 3,
        .optimizer = {.learning_rate = setup.rate, .row_learning_rate = setup.rate}};
    space_ = options.model.space;
    const model::Pctr shape(options.model, *backend_);
    store_->Add(setup.id, MakeRowLayout(options, shape));
    const double sigma = setup.sigma * std::sqrt(2.0);
    const mechanism::QuantileOptions quantile = {.sigma_query = 10, .expected_batch = 32};
    auto mechanism = mechanism::MakePrivateStep(
        space_, mechanism::MakeThresholdRows(space_, {.sigma = sigma, .clip = 1, .threshold = 1}),
        setup.adapts ? mechanism::MakeQuantileClipper(quantile, sigma)
                     : mechanism::MakeFlatClipper(1, sigma),
        {.sigma_gradient = sigma, .expected_batch = 32});
    mechanism_ = mechanism.get();
    auto noise = std::make_unique<CountingNoise>(&rekeys_);
    auto engine = std::make_unique<DistantEngine>(
        MakeHostClickEngine({options.model, options.optimizer}, *mechanism, *noise, *backend_,
                            store_->working_rows(options.index), InitialDense(options, shape)),
        &distant_);
    return std::make_unique<ClickLearner>(options, std::move(mechanism), std::move(noise),
                                          std::move(engine));
  }

  // Runs this many steps; each is a commit.
  Result<Outcome> RunSteps(uint64_t count) {
    BoundedQueue<LearnerStep> steps(100);
    for (uint64_t i = 0; i < count; ++i) EXPECT_TRUE(steps.Push(MakeStep(i, i * 32)));
    steps.Close();
    return trainer_->Run(steps);
  }

  LearnerStep MakeStep(uint64_t index, uint64_t first_offset, size_t events = 32,
                       uint16_t learner = 0) {
    LearnerStep step;
    step.learner = LearnerIndex(learner);
    step.source_identity = "identity " + std::to_string(index);
    event::Batch& batch = step.batch.examples;
    batch.dense_width = 2;
    batch.slots = 2;
    for (size_t i = 0; i < events; ++i) {
      batch.offset.push_back(first_offset + i);
      batch.timestamp_ms.push_back(0);
      batch.label.push_back(static_cast<float>(random_() % 2));
      batch.dense.insert(batch.dense.end(), {1.0f, 0.5f});
      batch.row.insert(batch.row.end(), {random_() % 40, 40 + random_() % 10});
      const auto end = static_cast<uint32_t>(batch.row.size());
      batch.slot_end.insert(batch.slot_end.end(), {end - 1, end});
      step.batch.unit_of.push_back(static_cast<uint32_t>(i));
    }
    step.batch.units = static_cast<uint32_t>(events);
    step.batch.ranges = {{0, first_offset, first_offset + 32}};
    step.batch.after.step = index + 1;
    step.batch.after.next = {{0, first_offset + 32, first_offset + 32}};
    return step;
  }

  std::mt19937_64 random_{11};
  HookedClock clock_;
  DistantEngine::Record distant_;
  metrics::Registry registry_;
  Progress progress_{2};
  RowSpace space_;
  int rekeys_ = 0;
  std::vector<uint16_t> exhausted_;
  bool commit_each_period_ = false;
  bool has_days_ = true;  // the stream is of files
  std::optional<BreakerOptions> breaker_;
  std::optional<QualityOptions> quality_;  // of the first learner; nothing if it has none
  size_t published_ = 0;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<RememberingStore> store_;
  std::unique_ptr<Trainer> trainer_;
  mechanism::Mechanism* mechanism_ = nullptr;                  // of the learner made last
  std::vector<std::vector<stream::PartitionOffset>> advised_;  // commit by commit
};

}  // namespace tacit::train
