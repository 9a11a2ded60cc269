#include "lab/next_item/trained_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/check.h"
#include "lab/next_item/counted_start.h"
#include "lab/next_item/trained_model.h"
#include "model/sequence/trained_scorer.h"
#include "privacy/charge.h"
#include "privacy/gaussian.h"
#include "privacy/pld.h"
#include "train/item_histogram.h"
#include "train/sequence/sequence_trainer.h"

namespace tacit::lab {
namespace {

// The share of epsilon kept free for the ledger's bound, which is certified step by step.
constexpr double kCalibrationRoom = 0.005;

// The accountant's event for a charge.
privacy::Event EventOf(const privacy::Charge& charge) {
  if (charge.sampling_rate == 1) return privacy::Event::Gaussian(charge.noise_multiplier);
  return privacy::Event::PoissonGaussian(charge.noise_multiplier, charge.sampling_rate);
}

// The model's initial parameters, except that the biases predict popularity before anything is
// learnt. A share that the histogram cannot distinguish from zero counts as one user.
std::vector<float> StartFromPopularity(const model::SequenceLayout& layout, uint64_t seed,
                                       std::span<const float> share, uint64_t users) {
  std::vector<float> parameters = layout.Initial(seed);
  const float least = 1 / static_cast<float>(users);
  for (size_t i = 0; i < share.size(); ++i)
    parameters[layout.item_bias().offset + i] = std::log(std::max(share[i], least));
  return parameters;
}

class TrainedMethod final : public SequenceMethod {
 public:
  TrainedMethod(std::string_view name, const SequenceSetting& setting)
      : constants_(setting.trained),
        transitions_(setting.transitions),
        catalogue_(BeginsWithCounts(name) ? setting.catalogue : nullptr),
        name_(name) {}

  Result<double> Fit(const model::Histories& train, const EpsilonDelta& privacy,
                     noise::NoiseSource& noise, WorkerPool& workers,
                     const std::function<void(double)>& progress) override;
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    // The same products ran in training.
    TACIT_CHECK(scorer_.Score(history, scores).has_value(), "a trained model scores");
  }
  void Watch(double epochs, std::function<void(double)> look) override {
    look_epochs_ = epochs;
    look_ = std::move(look);
  }

 private:
  Result<train::SequenceTrainingOptions> Plan(const model::Histories& train, bool is_private) const;
  Status BeginWithCounts(const model::Histories& train, const EpsilonDelta& privacy,
                         noise::NoiseSource& noise, WorkerPool& workers);
  std::vector<float> ReleaseShares(const model::Histories& train, const EpsilonDelta& privacy,
                                   noise::NoiseSource& noise);
  Status Train(train::SequenceTrainer& trainer, const std::function<void(double)>& progress);
  void Publish(train::SequenceTrainer& trainer) {
    scorer_.Publish(trainer.model().layout(), trainer.Weights(), trainer.parameter_noise(),
                    prior_.get());
  }
  Status Calibrate(const EpsilonDelta& privacy, double rate, uint64_t steps, double* sigma);
  Result<double> Spent(const EpsilonDelta& privacy, const privacy::Charge& step,
                       uint64_t steps) const;

  const TrainedConstants constants_;
  const model::transitions::Options transitions_;
  const model::transitions::PublicItems* const catalogue_;  // null: does not begin with counts
  const std::string name_;
  std::vector<privacy::CountedEvent> beside_;  // releases besides the steps
  std::unique_ptr<model::LogitPrior> prior_;
  double look_epochs_ = 0;
  std::function<void(double)> look_;
  model::TrainedScorer scorer_;
};

// Plans everything but the noise of a step, which also depends on the releases before the steps.
Result<train::SequenceTrainingOptions> TrainedMethod::Plan(const model::Histories& train,
                                                           bool is_private) const {
  const TrainedConstants& c = constants_;
  const auto users = static_cast<double>(train.units());
  train::SequenceTrainingOptions plan = TrainingOf(name_, c, is_private);
  plan.model.catalogue = train.catalogue;
  plan.expected_batch = std::min(users, is_private ? c.batch_private : c.batch_plain);
  const double steps =
      (is_private ? c.epochs_private : c.epochs_plain) * users / plan.expected_batch;
  TACIT_ASSIGN(
      plan.schedule.steps,
      StepsOf(is_private ? "epochs_private, batch_private" : "epochs_plain, batch_plain", steps));
  plan.schedule.decays = true;
  // Checks first what would be refused at any noise, so that nothing is released for it.
  plan.privacy.sigma = 1;
  TACIT_RETURN_IF_ERROR(train::CheckOptions(plan, train.units()));
  return plan;
}

Status TrainedMethod::BeginWithCounts(const model::Histories& train, const EpsilonDelta& privacy,
                                      noise::NoiseSource& noise, WorkerPool& workers) {
  TACIT_RETURN_IF_ERROR(CheckCounts(constants_));
  const bool is_private = std::isfinite(privacy.epsilon);
  const double mu = is_private
                        ? std::sqrt(constants_.counts_share) *
                              privacy::GaussianMu(Epsilon(privacy.epsilon), Delta(privacy.delta))
                        : privacy.epsilon;
  TACIT_ASSIGN(auto start, ReleaseCountedStart(train, *catalogue_, transitions_,
                                               constants_.counts_weight, mu, noise, workers, {}));
  prior_ = std::move(start.prior);
  if (is_private) beside_.push_back({privacy::Event::Gaussian(1 / std::sqrt(start.mu_squared)), 1});
  return {};
}

std::vector<float> TrainedMethod::ReleaseShares(const model::Histories& train,
                                                const EpsilonDelta& privacy,
                                                noise::NoiseSource& noise) {
  const train::ItemHistogram histogram =
      train::ReleaseItems(train, {}, std::numeric_limits<size_t>::max(),
                          constants_.histogram_share * MuOf(privacy), noise);
  if (std::isfinite(privacy.epsilon)) beside_.push_back({EventOf(histogram.charge), 1});
  return train::ItemShares(histogram.sums, static_cast<double>(train.units()));
}

Status TrainedMethod::Calibrate(const EpsilonDelta& privacy, double rate, uint64_t steps,
                                double* sigma) {
  TACIT_ASSIGN(*sigma, train::CalibrateSequenceNoise(privacy.epsilon * (1 - kCalibrationRoom),
                                                     privacy.delta, rate, steps, beside_));
  return {};
}

// The epsilon of the steps actually taken, not of those planned.
Result<double> TrainedMethod::Spent(const EpsilonDelta& privacy, const privacy::Charge& step,
                                    uint64_t steps) const {
  constexpr double kSlack = 1 + 1e-9;
  std::vector<privacy::CountedEvent> events = beside_;
  events.push_back({EventOf(step), steps});
  TACIT_ASSIGN(const double spent, privacy::PldUpperEpsilon(events, privacy::Adjacency::kAddRemove,
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
  TACIT_ASSIGN(train::SequenceTrainingOptions plan, Plan(train, is_private));
  // With counts, popularity is already known.
  const bool popularity_first = constants_.popularity_start && catalogue_ == nullptr;
  if (popularity_first && !plan.model.item_bias)
    return Fail(ErrorCode::kInvalidArgument,
                "popularity_start is a start of biases: set item_bias");
  const double rate = plan.expected_batch / static_cast<double>(train.units());
  if (catalogue_ != nullptr) TACIT_RETURN_IF_ERROR(BeginWithCounts(train, privacy, noise, workers));
  plan.prior = prior_.get();
  std::vector<float> share;
  if (popularity_first || (is_private && plan.model.re_attention.kappa > 0)) {
    TACIT_RETURN_IF_ERROR(CheckHistogramShare(constants_));
    share = ReleaseShares(train, privacy, noise);
  }
  if (is_private) {
    if (plan.model.re_attention.kappa > 0) plan.privacy.item_share = share;
    TACIT_RETURN_IF_ERROR(Calibrate(privacy, rate, plan.schedule.steps, &plan.privacy.sigma));
  }
  // Public coins and first weights differ from run to run.
  plan.seed = static_cast<uint64_t>(noise.Uniform() * 0x1p53);
  TACIT_RETURN_IF_ERROR(train::CheckOptions(plan, train.units()));
  const auto backend = ops::MakeCpuBackend(workers);
  train::SequenceTrainer trainer(plan, train, *backend, noise::MakeNoiseSource(workers),
                                 noise::MakeNoiseSource());
  if (popularity_first)
    trainer.SetInitial(
        StartFromPopularity(trainer.model().layout(), plan.seed, share, train.units()));
  TACIT_RETURN_IF_ERROR(Train(trainer, progress));
  Publish(trainer);
  if (!is_private) return std::numeric_limits<double>::infinity();
  return Spent(privacy, trainer.charge(), trainer.steps_taken());
}

Status TrainedMethod::Train(train::SequenceTrainer& trainer,
                            const std::function<void(double)>& progress) {
  const auto steps = static_cast<double>(trainer.options().schedule.steps);
  train::SequenceStepReport report;
  for (double next_look = look_epochs_; !trainer.done();) {
    TACIT_RETURN_IF_ERROR(trainer.Step(&report));
    const double epochs = trainer.epochs_taken();
    if (look_ && (epochs >= next_look || trainer.done())) {
      Publish(trainer);
      look_(epochs);
      while (next_look <= epochs) next_look += look_epochs_;
    }
    progress(static_cast<double>(trainer.steps_taken()) / steps);
  }
  return {};
}

}  // namespace

std::unique_ptr<SequenceMethod> MakeTrainedMethod(std::string_view name,
                                                  const SequenceSetting& setting) {
  TACIT_CHECK(!BeginsWithCounts(name) || setting.catalogue != nullptr);
  return std::make_unique<TrainedMethod>(name, setting);
}

}  // namespace tacit::lab
