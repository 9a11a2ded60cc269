#include "lab/next_item/trained_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "lab/next_item/lent_noise.h"
#include "lab/next_item/period_driver.h"
#include "model/sequence/trained_scorer.h"
#include "privacy/calibrate.h"
#include "privacy/mu.h"
#include "train/sequence/unit_sampler.h"
#include "wiring/plans/next_item_plan.h"

namespace tacit::lab {
namespace {

using StartKind = train::SequenceStartOptions::Kind;

constexpr std::string_view kCountedTransformer = "transitions+transformer";
constexpr std::array<std::string_view, 6> kNames = {"dpformer", "transformer", "transformer-untied",
                                                    "gru",      "lstm",        kCountedTransformer};

tl::unexpected<Error> RefuseModel(std::string why) {
  return Fail(ErrorCode::kInvalidArgument, std::move(why));
}

// The release at a period's opening.
StartKind StartOf(std::string_view name, const TrainedConstants& c, bool is_private) {
  if (BeginsWithCounts(name)) return StartKind::kCounts;
  const bool corrects = is_private && name == "dpformer" && c.kappa > 0;
  return c.popularity_start || corrects ? StartKind::kPopularity : StartKind::kNone;
}

// The opening's share of a period's mu^2.
double OpeningShare(StartKind kind, const TrainedConstants& c) {
  if (kind == StartKind::kCounts) return c.counts_share;
  return kind == StartKind::kPopularity ? c.histogram_share * c.histogram_share : 0;
}

// Checks the share of a release before the steps: both the release and the steps must get enough
// for noise that fits a grid.
Status CheckStart(StartKind kind, const TrainedConstants& c) {
  constexpr double kShareLeast = 1e-6;
  if (kind == StartKind::kNone) return {};
  const bool counts = kind == StartKind::kCounts;
  const double share = counts ? c.counts_share : c.histogram_share;
  if (!(share >= kShareLeast && share <= 1 - kShareLeast))
    return RefuseModel(fmt::format("{} {}: no share of {} between 0 and 1, or within {} of either",
                                   counts ? "counts_share" : "histogram_share", share,
                                   counts ? "mu^2" : "mu", kShareLeast));
  if (counts || !c.popularity_start || c.label_smoothing == 0) return {};
  return RefuseModel(
      "popularity_start: labels that are smoothed are of no popularity; set one of it and "
      "label_smoothing off");
}

// The learner as a daemon's configuration has it.
config::Learner ConfigOf(std::string_view name, const TrainedConstants& c, bool is_private) {
  using Encoder = config::Sequence::Encoder;
  config::Learner learner;
  learner.id = name;
  learner.model.kind = config::ModelKind::kSequence;
  learner.model.compute = c.bf16 ? "bf16" : "f32";
  config::Sequence& model = learner.model.sequence;
  model = c;
  if (name == "gru") model.encoder = Encoder::kGru;
  if (name == "lstm") model.encoder = Encoder::kLstm;
  model.tied = name != "transformer-untied";
  model.re_attention = name == "dpformer" ? c.kappa : 0;
  model.dropout = is_private ? c.dropout_private : c.dropout_plain;
  learner.optimizer = c.optimizer;
  learner.optimizer.learning_rate = is_private ? c.learning_rate_private : c.learning_rate_plain;
  learner.mechanism = c.mechanism;
  learner.mechanism.kind = config::MechanismKind::kNone;
  if (!is_private) return learner;
  if (c.subtract_noise) learner.optimizer.kind = config::OptimizerKind::kAdamBc;
  learner.optimizer.ema = c.average_decay_private;
  learner.mechanism.kind = config::MechanismKind::kDpSgd;
  learner.mechanism.clipping = c.normalised_clip ? config::Mechanism::Clipping::kAutomatic
                                                 : config::Mechanism::Clipping::kFlat;
  learner.mechanism.gradient_clip = c.clip_norm;
  return learner;
}

// The steps of a period.
struct Pace {
  double batch = 0;  // the divisor of an update
  double rate = 1;   // the probability that a step takes a user
  uint64_t steps = 0;
};

class TrainedMethod final : public StreamMethod {
 public:
  TrainedMethod(std::string_view name, const SequenceSetting& setting, WorkerPool& workers)
      : name_(name),
        setting_(setting),
        backend_(ops::MakeCpuBackend(workers)),
        driver_(setting.catalogue->items(), context()) {}

  // The length of a window, whose last item predicts the first new one; or the lags of counted
  // pairs.
  uint32_t context() const override {
    const uint32_t length = setting_.trained.length;
    return BeginsWithCounts(name_) ? std::max(length, setting_.transitions.lags) : length;
  }
  void SetHooks(LearnHooks hooks) override { hooks_ = std::move(hooks); }
  train::Learner* learner() override { return learner_ ? &*learner_ : nullptr; }
  Result<privacy::Spending> Learn(const StreamPeriod& period, double mu, noise::NoiseSource& noise,
                                  WorkerPool& workers) override;
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    // The same products ran in training.
    TACIT_CHECK(scorer_.Score(history, scores).has_value(), "a trained model scores");
  }

 private:
  bool is_private() const { return std::isfinite(mu_); }
  Result<Pace> PaceOf(size_t units) const;
  Status Check(double mu) const;
  Status Begin(const Pace& pace, noise::NoiseSource& noise);
  Status SetNoise(const Pace& pace, train::SequenceLearnerOptions* plan) const;
  void Look(uint64_t taken, const Pace& pace);

  const std::string name_;
  const SequenceSetting setting_;
  const std::unique_ptr<ops::Backend> backend_;
  LearnHooks hooks_;
  double next_look_ = 0;
  double mu_ = 0;  // of every period, set in the first one
  PeriodDriver driver_;
  LentNoise* lent_ = nullptr;  // owned by the learner
  std::optional<train::SequenceLearner> learner_;
  model::TrainedScorer scorer_;
};

// A private period of a stream is gone through as if nobody knew how many users it has.
Result<Pace> TrainedMethod::PaceOf(size_t units) const {
  constexpr double kStepsMost = 1e9;
  const TrainedConstants& c = setting_.trained;
  const auto users = static_cast<double>(units);
  const bool everybody = is_private() && !hooks_.at_once;
  Pace pace{.batch = is_private() ? c.batch_private : c.batch_plain};
  if (hooks_.at_once) pace.batch = std::min(users, pace.batch);
  if (!everybody) pace.rate = std::min(1.0, pace.batch / std::max(1.0, users));
  if (units == 0 && !everybody) return pace;
  const double steps = (is_private() ? c.epochs_private : c.epochs_plain) / pace.rate;
  if (!(steps > 0 && steps <= kStepsMost))
    return RefuseModel(
        fmt::format("{}: {:.4g} steps; there are some, and {:g} at most",
                    is_private() ? "epochs_private, batch_private" : "epochs_plain, batch_plain",
                    steps, kStepsMost));
  pace.steps = static_cast<uint64_t>(std::max<int64_t>(1, std::llround(steps)));
  return pace;
}

Status TrainedMethod::Check(double mu) const {
  TACIT_RETURN_IF_ERROR(privacy::CheckMu(mu));
  if (!learner_ || mu == mu_) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("a period of mu {} among those of {}: one optimiser needs one level of "
                          "noise",
                          mu, mu_));
}

// Sets what holds for all periods.
Status TrainedMethod::Begin(const Pace& pace, noise::NoiseSource& noise) {
  TACIT_ASSIGN(auto plan, LearnerOf(name_, setting_, is_private()));
  plan.histories = driver_.histories();
  plan.draw = {.rate = pace.rate};
  train::SequenceTrainingOptions& training = plan.training;
  training.expected_batch = pace.batch;
  // The rate rises in the first period. Then it stays, since the number of periods is unknown.
  training.schedule = {.steps = std::max<uint64_t>(1, pace.steps),
                       .warm_up = setting_.trained.warm_up,
                       .decays = hooks_.at_once.has_value()};
  // Public coins and first weights differ from run to run.
  training.seed = static_cast<uint64_t>(noise.Uniform() * 0x1p53);
  TACIT_RETURN_IF_ERROR(SetNoise(pace, &plan));
  TACIT_RETURN_IF_ERROR(train::CheckOptions(plan));
  auto lent = std::make_unique<LentNoise>();
  lent_ = lent.get();
  learner_.emplace(std::move(plan), driver_.reader(), std::move(lent), *backend_, nullptr, 0);
  next_look_ = hooks_.look_every;
  return {};
}

// Divides a period's mu between its opening and its steps. Steps that sample are calibrated to what
// the opening leaves of the promise.
Status TrainedMethod::SetNoise(const Pace& pace, train::SequenceLearnerOptions* plan) const {
  if (!is_private()) return {};
  const privacy::PeriodNoise noise = privacy::DividePeriod(
      mu_, OpeningShare(plan->start.kind, setting_.trained), std::max<uint64_t>(1, pace.steps));
  plan->start.noise_multiplier = noise.opening;
  plan->training.privacy.sigma = noise.step;
  if (!hooks_.at_once) return {};
  privacy::CalibrationTarget target{.epsilon = hooks_.at_once->epsilon,
                                    .delta = hooks_.at_once->delta,
                                    .sampling_rate = pace.rate,
                                    .steps = pace.steps};
  if (noise.opening > 0) target.beside = {{privacy::Event::Gaussian(noise.opening), 1}};
  TACIT_ASSIGN(plan->training.privacy.sigma, privacy::CalibrateSteps(std::move(target)));
  return {};
}

Result<privacy::Spending> TrainedMethod::Learn(const StreamPeriod& period, double mu,
                                               noise::NoiseSource& noise, WorkerPool&) {
  TACIT_RETURN_IF_ERROR(Check(mu));
  if (!learner_) mu_ = mu;
  TACIT_ASSIGN(const Pace pace, PaceOf(period.histories.units()));
  if (!learner_) TACIT_RETURN_IF_ERROR(Begin(pace, noise));
  const LentNoise::Loan loan(*lent_, noise);
  TACIT_RETURN_IF_ERROR(driver_.Begin(period, learner_->opening_charge() ? &*learner_ : nullptr));
  train::UnitSampler sampler(period.histories.units(), pace.rate, noise::MakeNoiseSource());
  for (uint64_t step = 1; step <= pace.steps; ++step) {
    TACIT_RETURN_IF_ERROR(pace.rate == 1 ? driver_.StepOfAll(*learner_)
                                         : driver_.Step(*learner_, sampler.Sample()));
    Look(step, pace);
  }
  learner_->Publish(&scorer_);
  return driver_.bill().Whole();
}

void TrainedMethod::Look(uint64_t taken, const Pace& pace) {
  const double epochs = static_cast<double>(taken) * pace.rate;
  if (hooks_.look && (epochs >= next_look_ || taken == pace.steps)) {
    learner_->Publish(&scorer_);
    hooks_.look(epochs);
    while (next_look_ <= epochs) next_look_ += hooks_.look_every;
  }
  hooks_.progress(static_cast<double>(taken) / static_cast<double>(pace.steps));
}

}  // namespace

std::span<const std::string_view> TrainedMethodNames() { return kNames; }

bool BeginsWithCounts(std::string_view name) { return name == kCountedTransformer; }

Result<train::SequenceLearnerOptions> LearnerOf(std::string_view name,
                                                const SequenceSetting& setting, bool is_private) {
  TACIT_CHECK(std::ranges::find(kNames, name) != kNames.end(), "a name that was checked");
  const TrainedConstants& c = setting.trained;
  const StartKind start = StartOf(name, c, is_private);
  TACIT_RETURN_IF_ERROR(CheckStart(start, c));
  auto options = wiring::SequenceWithoutNoise(ConfigOf(name, c, is_private), LearnerIndex(0),
                                              setting.catalogue->items());
  options.asked_most = 0;
  if (c.pre_norm) options.training.model.norm = model::SequenceOptions::Norm::kPre;
  // Counts rate items similar to those seen as likely, and so the seen items themselves.
  if (start == StartKind::kCounts) options.training.model.mask_seen = true;
  const std::shared_ptr<const model::transitions::PublicItems> catalogue(
      std::shared_ptr<const void>(), setting.catalogue);
  options.training.described = model::DescribedStart(catalogue, c.described_share);
  options.start = {.kind = start,
                   .forget = setting.transitions.forget,
                   .popularity_is_prior = c.popularity_start,
                   .counts_weight = c.counts_weight,
                   .counts = setting.transitions,
                   .catalogue = catalogue};
  return options;
}

std::unique_ptr<StreamMethod> MakeTrainedMethod(std::string_view name,
                                                const SequenceSetting& setting,
                                                WorkerPool& workers) {
  TACIT_CHECK(setting.catalogue != nullptr);
  return std::make_unique<TrainedMethod>(name, setting, workers);
}

}  // namespace tacit::lab
