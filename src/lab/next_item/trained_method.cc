#include "lab/next_item/trained_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "lab/next_item/period_feed.h"
#include "lab/next_item/trained_model.h"
#include "model/sequence/trained_scorer.h"
#include "noise/lent_noise.h"
#include "privacy/calibrate.h"
#include "privacy/mu.h"
#include "privacy/pld.h"
#include "train/sequence/sequence_learner.h"
#include "train/sequence/sequence_trainer.h"
#include "train/sequence/unit_sampler.h"

namespace tacit::lab {
namespace {

constexpr double kNoPromise = std::numeric_limits<double>::infinity();

// A train::SequenceLearner with what it needs to live in an experiment.
class SequenceInLab {
 public:
  SequenceInLab(uint32_t catalogue, uint32_t context, WorkerPool& workers)
      : feed_(catalogue, context), backend_(ops::MakeCpuBackend(workers)) {}

  bool made() const { return learner_.has_value(); }
  // `noise` gives the public seed. kInvalidArgument names what makes no model.
  Status Make(train::SequenceLearnerOptions options, noise::NoiseSource& noise) {
    options.histories = feed_.histories();
    // Public coins and first weights differ from run to run.
    options.training.seed = static_cast<uint64_t>(noise.Uniform() * 0x1p53);
    TACIT_RETURN_IF_ERROR(train::CheckOptions(options));
    auto lent = std::make_unique<noise::LentNoise>();
    lent_ = lent.get();
    learner_.emplace(std::move(options), feed_.reader(), std::move(lent), *backend_, nullptr, 0);
    return {};
  }

  // Learns from a period in steps that take each user with this probability.
  Status Learn(const StreamPeriod& period, uint64_t steps, double rate, noise::NoiseSource& noise,
               const std::function<void(uint64_t steps)>& after_step = {}) {
    const noise::LentNoise::Loan loan(*lent_, noise);
    TACIT_RETURN_IF_ERROR(feed_.Begin(period, learner_->opening_charge() ? &*learner_ : nullptr));
    train::UnitSampler sampler(period.histories.units(), rate, noise::MakeNoiseSource());
    for (uint64_t step = 1; step <= steps; ++step) {
      TACIT_RETURN_IF_ERROR(rate == 1 ? feed_.StepOfAll(*learner_)
                                      : feed_.Step(*learner_, sampler.Sample()));
      if (after_step) after_step(step);
    }
    Publish();
    return {};
  }

  void Publish() { learner_->Publish(&scorer_); }
  const privacy::Bill& bill() const { return feed_.bill(); }
  void Score(std::span<const uint32_t> history, std::span<float> scores) const {
    // The same products ran in training.
    TACIT_CHECK(scorer_.Score(history, scores).has_value(), "a trained model scores");
  }

 private:
  PeriodFeed feed_;
  const std::unique_ptr<ops::Backend> backend_;
  noise::LentNoise* lent_ = nullptr;  // owned by the learner
  std::optional<train::SequenceLearner> learner_;
  model::TrainedScorer scorer_;
};

class TrainedMethod final : public SequenceMethod {
 public:
  TrainedMethod(std::string_view name, const SequenceSetting& setting)
      : name_(name), setting_(setting), constants_(setting_.trained) {}

  Result<double> Fit(const model::Histories& train, const EpsilonDelta& privacy,
                     noise::NoiseSource& noise, WorkerPool& workers,
                     const std::function<void(double)>& progress) override;
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    learner_->Score(history, scores);
  }
  void Watch(double epochs, std::function<void(double)> look) override {
    look_epochs_ = epochs;
    look_ = std::move(look);
  }

 private:
  Result<train::SequenceLearnerOptions> Plan(const model::Histories& train, bool is_private) const;
  Status Calibrate(const EpsilonDelta& privacy, train::SequenceLearnerOptions* plan) const;
  Result<double> Spent(const EpsilonDelta& privacy) const;
  void Look(double epochs, bool last);

  const std::string name_;
  const SequenceSetting setting_;
  const TrainedConstants& constants_;
  double look_epochs_ = 0, next_look_ = 0;
  std::function<void(double)> look_;
  std::optional<SequenceInLab> learner_;
};

// Plans everything but the noise.
Result<train::SequenceLearnerOptions> TrainedMethod::Plan(const model::Histories& train,
                                                          bool is_private) const {
  const TrainedConstants& c = constants_;
  const auto users = static_cast<double>(train.units());
  TACIT_ASSIGN(auto plan, LearnerOf(name_, setting_, train.catalogue, is_private));
  train::SequenceTrainingOptions& training = plan.training;
  training.expected_batch = std::min(users, is_private ? c.batch_private : c.batch_plain);
  const double steps =
      (is_private ? c.epochs_private : c.epochs_plain) * users / training.expected_batch;
  TACIT_ASSIGN(
      training.schedule.steps,
      StepsOf(is_private ? "epochs_private, batch_private" : "epochs_plain, batch_plain", steps));
  training.schedule.decays = true;
  plan.sampling_rate = training.expected_batch / users;
  // Checks first what would be refused at any noise, so that nothing is released for it.
  training.privacy.sigma = 1;
  TACIT_RETURN_IF_ERROR(train::CheckOptions(training, train.units()));
  return plan;
}

// Sets the noise of the opening, by its share of the promise, and that of each step.
Status TrainedMethod::Calibrate(const EpsilonDelta& privacy,
                                train::SequenceLearnerOptions* plan) const {
  privacy::CalibrationTarget target{.epsilon = privacy.epsilon,
                                    .delta = privacy.delta,
                                    .sampling_rate = plan->sampling_rate,
                                    .steps = plan->training.schedule.steps};
  if (plan->start.kind != train::SequenceStartOptions::Kind::kNone) {
    plan->start.noise_multiplier =
        privacy::DividePeriod(MuOf(privacy), OpeningShare(plan->start.kind, constants_), 1).opening;
    target.beside = {{privacy::Event::Gaussian(plan->start.noise_multiplier), 1}};
  }
  TACIT_ASSIGN(plan->training.privacy.sigma, privacy::CalibrateSteps(std::move(target)));
  return {};
}

// The epsilon of the steps actually taken, not of those planned.
Result<double> TrainedMethod::Spent(const EpsilonDelta& privacy) const {
  constexpr double kSlack = 1 + 1e-9;
  TACIT_ASSIGN(const double spent,
               privacy::PldUpperEpsilon(learner_->bill().Events(), privacy::Adjacency::kAddRemove,
                                        Delta(privacy.delta)));
  if (spent <= privacy.epsilon * kSlack) return spent;
  return Fail(ErrorCode::kRefused,
              fmt::format("epsilon {} was promised and {} spent", privacy.epsilon, spent));
}

Result<double> TrainedMethod::Fit(const model::Histories& train, const EpsilonDelta& privacy,
                                  noise::NoiseSource& noise, WorkerPool& workers,
                                  const std::function<void(double)>& progress) {
  const bool is_private = std::isfinite(privacy.epsilon);
  TACIT_RETURN_IF_ERROR(CheckEpsilonDelta(privacy));
  TACIT_RETURN_IF_ERROR(model::CheckHistories(train));
  TACIT_ASSIGN(train::SequenceLearnerOptions plan, Plan(train, is_private));
  if (is_private) TACIT_RETURN_IF_ERROR(Calibrate(privacy, &plan));
  const double rate = plan.sampling_rate, batch = plan.training.expected_batch;
  const uint64_t steps = plan.training.schedule.steps;
  learner_.emplace(train.catalogue, 0, workers);
  TACIT_RETURN_IF_ERROR(learner_->Make(std::move(plan), noise));
  next_look_ = look_epochs_;
  const std::vector<uint32_t> known(train.units());
  TACIT_RETURN_IF_ERROR(learner_->Learn({train, known}, steps, rate, noise, [&](uint64_t taken) {
    Look(static_cast<double>(taken) * batch / static_cast<double>(train.units()), taken == steps);
    progress(static_cast<double>(taken) / static_cast<double>(steps));
  }));
  return is_private ? Spent(privacy) : kNoPromise;
}

void TrainedMethod::Look(double epochs, bool last) {
  if (!look_ || (epochs < next_look_ && !last)) return;
  learner_->Publish();
  look_(epochs);
  while (next_look_ <= epochs) next_look_ += look_epochs_;
}

class TrainedStream final : public StreamMethod {
 public:
  TrainedStream(std::string_view name, const SequenceSetting& setting, WorkerPool& workers)
      : name_(name),
        setting_(setting),
        constants_(setting_.trained),
        learner_(setting.catalogue->items(), context(), workers) {}

  // The length of a window, whose last item predicts the first new one; or the lags of counted
  // pairs.
  uint32_t context() const override {
    return BeginsWithCounts(name_) ? std::max(constants_.length, setting_.transitions.lags)
                                   : constants_.length;
  }
  Result<double> Learn(const StreamPeriod& period, double mu, noise::NoiseSource& noise,
                       WorkerPool& workers) override;
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    learner_.Score(history, scores);
  }

 private:
  bool is_private() const { return std::isfinite(mu_); }
  // The probability that a step of this period takes a user, and the number of those steps.
  double Rate(const StreamPeriod& period) const {
    const auto users = static_cast<double>(period.histories.units());
    return is_private() ? 1.0 : std::min(1.0, constants_.batch_plain / std::max(1.0, users));
  }
  Result<uint64_t> Steps(const StreamPeriod& period) const;
  Status Check(const StreamPeriod& period, double mu) const;
  Status Begin(const StreamPeriod& period, noise::NoiseSource& noise);

  const std::string name_;
  const SequenceSetting setting_;
  const TrainedConstants& constants_;
  double mu_ = 0;  // of every period, set in the first one
  SequenceInLab learner_;
};

Result<uint64_t> TrainedStream::Steps(const StreamPeriod& period) const {
  if (is_private()) return StepsOf("epochs_private", constants_.epochs_private);
  if (period.histories.units() == 0) return 0;
  return StepsOf("epochs_plain, batch_plain", constants_.epochs_plain / Rate(period));
}

Status TrainedStream::Check(const StreamPeriod& period, double mu) const {
  TACIT_CHECK(period.histories.id.size() == period.histories.units());
  TACIT_RETURN_IF_ERROR(privacy::CheckMu(mu));
  if (!learner_.made() || mu == mu_) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("a period of mu {} among those of {}: one optimiser needs one level of "
                          "noise",
                          mu, mu_));
}

// Sets what holds for all periods.
Status TrainedStream::Begin(const StreamPeriod& period, noise::NoiseSource& noise) {
  TACIT_ASSIGN(auto plan, LearnerOf(name_, setting_, period.histories.catalogue, is_private()));
  train::SequenceTrainingOptions& training = plan.training;
  training.expected_batch = is_private() ? constants_.batch_private : constants_.batch_plain;
  // The learning rate rises in the first period and then stays, since the number of periods is
  // unknown.
  TACIT_ASSIGN(const uint64_t steps, Steps(period));
  training.schedule.steps = std::max<uint64_t>(1, steps);
  const privacy::PeriodNoise divided = privacy::DividePeriod(
      mu_, OpeningShare(plan.start.kind, constants_), training.schedule.steps);
  training.privacy.sigma = divided.step;
  plan.start.noise_multiplier = divided.opening;
  return learner_.Make(std::move(plan), noise);
}

Result<double> TrainedStream::Learn(const StreamPeriod& period, double mu,
                                    noise::NoiseSource& noise, WorkerPool&) {
  TACIT_RETURN_IF_ERROR(Check(period, mu));
  if (!learner_.made()) {
    mu_ = mu;
    TACIT_RETURN_IF_ERROR(Begin(period, noise));
  }
  TACIT_ASSIGN(const uint64_t steps, Steps(period));
  TACIT_RETURN_IF_ERROR(learner_.Learn(period, steps, Rate(period), noise));
  return is_private() ? learner_.bill().Whole().mu_squared : kNoPromise;
}

}  // namespace

std::unique_ptr<SequenceMethod> MakeTrainedMethod(std::string_view name,
                                                  const SequenceSetting& setting) {
  TACIT_CHECK(setting.catalogue != nullptr);
  return std::make_unique<TrainedMethod>(name, setting);
}

std::unique_ptr<StreamMethod> MakeTrainedStream(std::string_view name,
                                                const SequenceSetting& setting,
                                                WorkerPool& workers) {
  TACIT_CHECK(setting.catalogue != nullptr);
  return std::make_unique<TrainedStream>(name, setting, workers);
}

}  // namespace tacit::lab
