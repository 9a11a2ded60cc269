#include "lab/next_item/trained_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "lab/next_item/stream_start.h"
#include "lab/next_item/trained_model.h"
#include "model/sequence/sequence_model.h"
#include "model/sequence/trained_scorer.h"
#include "noise/lent_noise.h"
#include "privacy/mu.h"
#include "train/sequence/sequence_stepper.h"
#include "train/sequence/unit_sampler.h"

namespace tacit::lab {
namespace {

Status RefuseStream(std::string why) { return Fail(ErrorCode::kInvalidArgument, std::move(why)); }

// The chosen users of a period.
class PeriodUnits final : public model::SequenceUnits {
 public:
  PeriodUnits(const model::SequenceOptions& options, const StreamPeriod& period,
              std::span<const uint64_t> chosen)
      : options_(options), period_(period), chosen_(chosen) {}

  size_t units() const override { return chosen_.size(); }
  // Neither the place in the period nor the one in the file, which depend on other users: if other
  // users changed the coins, they would change every user's gradient.
  uint64_t Id(size_t unit) const override { return period_.histories.id[chosen_[unit]]; }
  size_t Cost(size_t unit) const override {
    return std::min<size_t>(period_.histories.Of(chosen_[unit]).size(),
                            size_t{options_.length} * options_.crops) +
           1;
  }
  void Rows(size_t unit, uint64_t coins, model::UnitRows* rows) const override {
    const uint64_t u = chosen_[unit];
    model::CutNewCrops(options_, period_.histories.Of(u), period_.known[u], coins, rows);
  }

 private:
  const model::SequenceOptions& options_;
  const StreamPeriod& period_;
  const std::span<const uint64_t> chosen_;
};

class TrainedStream final : public StreamMethod {
 public:
  TrainedStream(std::string_view name, const SequenceSetting& setting, WorkerPool& workers)
      : name_(name),
        setting_(setting),
        constants_(setting_.trained),
        workers_(workers),
        backend_(ops::MakeCpuBackend(workers)) {}

  // The length of a window, whose last item predicts the first new one; or the lags of counted
  // pairs.
  uint32_t context() const override {
    return BeginsWithCounts(name_) ? std::max(constants_.length, setting_.transitions.lags)
                                   : constants_.length;
  }
  Result<double> Learn(const StreamPeriod& period, double mu, noise::NoiseSource& noise,
                       WorkerPool& workers) override;
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    // The same products ran in training.
    TACIT_CHECK(scorer_.Score(history, scores).has_value(), "a trained model scores");
  }

 private:
  bool is_private() const { return std::isfinite(mu_); }
  // The number of users in a period, or a public number in its place.
  double Users(const StreamPeriod& period) const {
    return is_private() ? constants_.batch_private : static_cast<double>(period.histories.units());
  }
  // The probability that a step of this period takes a user, and the number of those steps.
  double Rate(const StreamPeriod& period) const {
    return is_private() ? 1.0
                        : std::min(1.0, options_.expected_batch / std::max(1.0, Users(period)));
  }
  Result<uint64_t> Steps(const StreamPeriod& period) const;

  Status Check(const StreamPeriod& period, double mu) const;
  Status Begin(const StreamPeriod& period, double mu, noise::NoiseSource& noise);
  Result<double> TakeSteps(const StreamPeriod& period);

  const std::string name_;
  const SequenceSetting setting_;
  const TrainedConstants& constants_;
  WorkerPool& workers_;
  const std::unique_ptr<ops::Backend> backend_;
  // Set in the first period.
  double mu_ = 0;                       // mu of every period
  std::unique_ptr<StreamStart> start_;  // null: only steps are released
  train::SequenceTrainingOptions options_;
  noise::LentNoise* lent_ = nullptr;  // owned by the stepper
  std::optional<train::SequenceStepper> stepper_;
  model::TrainedScorer scorer_;
};

Result<uint64_t> TrainedStream::Steps(const StreamPeriod& period) const {
  if (is_private()) return StepsOf("epochs_private", constants_.epochs_private);
  if (period.histories.units() == 0) return 0;
  return StepsOf("epochs_plain, batch_plain", constants_.epochs_plain / Rate(period));
}

Status TrainedStream::Check(const StreamPeriod& period, double mu) const {
  TACIT_RETURN_IF_ERROR(model::CheckHistories(period.histories));
  const size_t units = period.histories.units();
  TACIT_CHECK(period.known.size() == units && period.histories.id.size() == units);
  TACIT_RETURN_IF_ERROR(privacy::CheckMu(mu));
  if (stepper_ && mu != mu_)
    return RefuseStream(fmt::format(
        "a period of mu {} among those of {}: one optimiser needs one level of noise", mu, mu_));
  return {};
}

// Sets what holds for all periods.
Status TrainedStream::Begin(const StreamPeriod& period, double mu, noise::NoiseSource& noise) {
  mu_ = mu;
  options_ = TrainingOf(name_, constants_, is_private());
  options_.model.catalogue = period.histories.catalogue;
  options_.expected_batch = is_private() ? constants_.batch_private : constants_.batch_plain;
  TACIT_ASSIGN(start_, MakeStreamStart(name_, setting_, is_private(), workers_));
  if (start_ != nullptr) options_.prior = start_->prior();
  // The learning rate rises in the first period and then stays, since the number of periods is
  // unknown.
  TACIT_ASSIGN(uint64_t steps, Steps(period));
  steps = std::max<uint64_t>(1, steps);
  options_.schedule.steps = steps;
  if (is_private()) {
    const double left = 1 - (start_ != nullptr ? start_->share() : 0);
    options_.privacy.sigma = privacy::kMuMargin * std::sqrt(static_cast<double>(steps) / left) / mu;
  }
  // Public coins and first weights differ from run to run.
  options_.seed = static_cast<uint64_t>(noise.Uniform() * 0x1p53);
  TACIT_RETURN_IF_ERROR(train::CheckOptions(options_));
  auto lent = std::make_unique<noise::LentNoise>();
  lent_ = lent.get();
  stepper_.emplace(options_, 1.0, *backend_, std::move(lent));
  return {};
}

Result<double> TrainedStream::TakeSteps(const StreamPeriod& period) {
  TACIT_ASSIGN(const uint64_t steps, Steps(period));
  train::UnitSampler sampler(period.histories.units(), Rate(period), noise::MakeNoiseSource());
  const uint64_t before = stepper_->steps_taken();
  train::SequenceStepReport report;
  for (uint64_t step = 0; step < steps; ++step)
    TACIT_RETURN_IF_ERROR(
        stepper_->Step(PeriodUnits(options_.model, period, sampler.Sample()), &report));
  if (!is_private()) return std::numeric_limits<double>::infinity();
  return static_cast<double>(stepper_->steps_taken() - before) * stepper_->charge().MuSquared();
}

Result<double> TrainedStream::Learn(const StreamPeriod& period, double mu,
                                    noise::NoiseSource& noise, WorkerPool&) {
  TACIT_RETURN_IF_ERROR(Check(period, mu));
  if (!stepper_) TACIT_RETURN_IF_ERROR(Begin(period, mu, noise));
  const noise::LentNoise::Loan loan(*lent_, noise);
  double before_steps = 0;
  if (start_ != nullptr) {
    TACIT_ASSIGN(before_steps, start_->Learn(period, mu, Users(period), noise, workers_));
    if (is_private() && options_.model.re_attention.kappa > 0)
      stepper_->SetItemShare(start_->ItemShares());
  }
  TACIT_ASSIGN(const double by_steps, TakeSteps(period));
  scorer_.Publish(stepper_->model().layout(), stepper_->Weights(), stepper_->parameter_noise(),
                  options_.prior);
  return before_steps + by_steps;
}

}  // namespace

std::unique_ptr<StreamMethod> MakeTrainedStream(std::string_view name,
                                                const SequenceSetting& setting,
                                                WorkerPool& workers) {
  TACIT_CHECK(setting.catalogue != nullptr);
  return std::make_unique<TrainedStream>(name, setting, workers);
}

}  // namespace tacit::lab
