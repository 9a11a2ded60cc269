#include "lab/next_item/counted_method.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "lab/next_item/lent_noise.h"
#include "lab/next_item/period_driver.h"
#include "model/transitions/scorer.h"
#include "privacy/mu.h"
#include "train/counts/item_histogram.h"
#include "train/counts/transitions_learner.h"
#include "train/ranking/ranked_learner.h"

namespace tacit::lab {
namespace {

using model::transitions::PublicItems;

// The noise multiplier of a period that may spend `mu`.
double NoiseOf(double mu) { return std::isinf(mu) ? 0 : privacy::kMuMargin / mu; }

// Hands each period to a learner, which is made for the first one, as one step.
class PeriodMethod : public StreamMethod {
 public:
  PeriodMethod(const SequenceSetting& setting, WorkerPool& workers)
      : setting_(setting),
        workers_(workers),
        driver_(setting.catalogue->items(), setting.transitions.lags) {}

  uint32_t context() const override { return setting_.transitions.lags; }
  void SetHooks(LearnHooks hooks) override { hooks_ = std::move(hooks); }
  train::Learner* learner() override { return learner_.get(); }

  Result<privacy::Spending> Learn(const StreamPeriod& period, double mu, noise::NoiseSource& noise,
                                  WorkerPool&) override {
    TACIT_RETURN_IF_ERROR(privacy::CheckMu(mu));
    if (learner_ == nullptr) {
      auto lent = std::make_unique<LentNoise>();
      lent_ = lent.get();
      TACIT_ASSIGN(learner_, Make(period, mu, noise, std::move(lent)));
    }
    const LentNoise::Loan loan(*lent_, noise);
    TACIT_RETURN_IF_ERROR(driver_.Begin(period, nullptr));
    TACIT_RETURN_IF_ERROR(driver_.StepOnce(*learner_));
    Learnt();
    return driver_.bill().Whole();
  }

 protected:
  virtual Result<std::unique_ptr<train::Learner>> Make(
      const StreamPeriod& first, double mu, noise::NoiseSource& noise,
      std::unique_ptr<noise::NoiseSource> lent) = 0;
  virtual void Learnt() {}

  const SequenceSetting setting_;
  WorkerPool& workers_;
  LearnHooks hooks_;
  PeriodDriver driver_;

 private:
  LentNoise* lent_ = nullptr;  // owned by the learner
  std::unique_ptr<train::Learner> learner_;
};

class TransitionsMethod final : public PeriodMethod {
 public:
  TransitionsMethod(const SequenceSetting& setting, bool described, WorkerPool& workers)
      : PeriodMethod(setting, workers), described_(described) {}

  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    scorer_->Score(history, scores);
  }

 private:
  Result<std::unique_ptr<train::Learner>> Make(const StreamPeriod&, double mu, noise::NoiseSource&,
                                               std::unique_ptr<noise::NoiseSource> lent) override {
    auto catalogue = described_ ? std::shared_ptr<const PublicItems>(std::shared_ptr<const void>(),
                                                                     setting_.catalogue)
                                : std::make_shared<const PublicItems>(setting_.catalogue->items());
    auto learner = std::make_unique<train::TransitionsLearner>(
        train::TransitionsLearnerOptions{.id = "transitions",
                                         .index = LearnerIndex(0),
                                         .catalogue = std::move(catalogue),
                                         .model = setting_.transitions,
                                         .noise_multiplier = NoiseOf(mu),
                                         .histories = driver_.histories(),
                                         .asked_most = 0,
                                         .progress = hooks_.progress},
        driver_.reader(), std::move(lent), workers_);
    learner_ = learner.get();
    return learner;
  }
  void Learnt() override {
    scorer_.emplace(learner_->released().estimate(), setting_.transitions, workers_);
  }

  const bool described_;
  const train::TransitionsLearner* learner_ = nullptr;
  std::optional<model::transitions::Scorer> scorer_;
};

class RankedMethod final : public PeriodMethod {
 public:
  using PeriodMethod::PeriodMethod;

  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    learner_->Score(history, scores);
  }

 private:
  Result<std::unique_ptr<train::Learner>> Make(const StreamPeriod& first, double mu,
                                               noise::NoiseSource& noise,
                                               std::unique_ptr<noise::NoiseSource> lent) override {
    // The release's approximate share of the work.
    constexpr double kReleased = 0.1;
    train::RankedLearnerOptions options{
        .id = std::string(kRankedMethod),
        .index = LearnerIndex(0),
        .catalogue = {std::shared_ptr<const void>(), setting_.catalogue},
        .model = train::CountsBesideRanker(setting_.transitions),
        .noise_multiplier = NoiseOf(mu),
        .ranker = train::WithCandidates(setting_.ranked, setting_.catalogue->described()),
        // The number of users in a stream's period is private.
        .expected_units = hooks_.at_once
                              ? static_cast<double>(std::max<size_t>(1, first.histories.units()))
                              : setting_.trained.batch_private,
        .seed = static_cast<uint64_t>(noise.Uniform() * 0x1p53),
        .histories = driver_.histories(),
        .asked_most = 0,
        .progress = [this](double share) { hooks_.progress(kReleased * share); },
        .after_step = [this](uint64_t taken) { AfterStep(taken, kReleased); }};
    TACIT_RETURN_IF_ERROR(train::CheckOptions(options));
    next_look_ = hooks_.look_every;
    auto learner = std::make_unique<train::RankedLearner>(std::move(options), driver_.reader(),
                                                          std::move(lent), workers_);
    learner_ = learner.get();
    return learner;
  }

  void AfterStep(uint64_t taken, double released) {
    const auto steps = static_cast<double>(taken), all = static_cast<double>(setting_.ranked.steps);
    if (hooks_.look && (steps >= next_look_ || steps == all)) {
      hooks_.look(steps);
      next_look_ += hooks_.look_every;
    }
    hooks_.progress(released + (1 - released) * steps / all);
  }

  double next_look_ = 0;
  const train::RankedLearner* learner_ = nullptr;
};

// Adds up the histograms of all periods; gives the same answer to every user.
class PopularityMethod final : public StreamMethod {
 public:
  explicit PopularityMethod(const SequenceSetting& setting)
      : options_(setting.transitions), scores_(setting.catalogue->items()) {}

  Result<privacy::Spending> Learn(const StreamPeriod& period, double mu, noise::NoiseSource& noise,
                                  WorkerPool&) override {
    TACIT_RETURN_IF_ERROR(model::CheckHistories(period.histories));
    const train::ItemHistogram histogram =
        train::ReleaseItems(period.histories, period.known, options_.popularity_items, mu, noise);
    for (size_t item = 0; item < scores_.size(); ++item)
      scores_[item] = static_cast<float>(options_.forget * scores_[item] + histogram.sums[item]);
    return privacy::Spending::Of(histogram.charge, 1);
  }

  void Score(std::span<const uint32_t>, std::span<float> scores) const override {
    std::ranges::copy(scores_, scores.begin());
  }

 private:
  const model::transitions::Options options_;
  std::vector<float> scores_;
};

}  // namespace

std::unique_ptr<StreamMethod> MakeCountedMethod(std::string_view name,
                                                const SequenceSetting& setting,
                                                WorkerPool& workers) {
  TACIT_CHECK(setting.catalogue != nullptr);
  if (name == "popularity") return std::make_unique<PopularityMethod>(setting);
  if (name == kRankedMethod) return std::make_unique<RankedMethod>(setting, workers);
  return std::make_unique<TransitionsMethod>(setting, name == "transitions", workers);
}

}  // namespace tacit::lab
