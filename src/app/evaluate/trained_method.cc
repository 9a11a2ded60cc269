#include "app/evaluate/trained_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>

#include "app/evaluate/counted_start.h"
#include "base/check.h"
#include "mechanism/unit_histogram.h"
#include "model/sequence/unit_pass.h"
#include "model/transitions/pairs.h"
#include "ops/unit_ops.h"
#include "privacy/charge.h"
#include "privacy/gaussian.h"
#include "privacy/pld.h"
#include "train/sequence/sequence_trainer.h"

namespace tacit::app {
namespace {

using model::SequenceOptions;

constexpr std::string_view kCountedTransformer = "transitions+transformer";
constexpr std::array<std::string_view, 6> kNames = {"dpformer", "transformer", "transformer-untied",
                                                    "gru",      "lstm",        kCountedTransformer};
// What is left to the ledger's bound, which is certified step by step.
constexpr double kCalibrationRoom = 0.005;

SequenceOptions ModelOf(std::string_view name, const TrainedConstants& constants) {
  SequenceOptions options;
  options.length = constants.length;
  options.width = constants.width;
  options.blocks = constants.blocks;
  options.heads = constants.heads;
  if (constants.pre_norm) options.norm = SequenceOptions::Norm::kPre;
  options.item_bias = constants.item_bias;
  options.crops = constants.crops;
  options.random_crops = constants.random_crops;
  // Counts take for likely what is much like what was seen, and so what was seen.
  options.mask_seen = constants.mask_seen || BeginsWithCounts(name);
  options.label_smoothing = static_cast<float>(constants.label_smoothing);
  options.tied = name != "transformer-untied";
  if (name == "gru") options.encoder = SequenceOptions::Encoder::kGru;
  if (name == "lstm") options.encoder = SequenceOptions::Encoder::kLstm;
  if (name == "dpformer") options.re_attention.kappa = static_cast<float>(constants.kappa);
  return options;
}

// What a charge is to the accountant.
privacy::Event EventOf(const privacy::Charge& charge) {
  if (charge.sampling_rate == 1) return privacy::Event::Gaussian(charge.noise_multiplier);
  return privacy::Event::PoissonGaussian(charge.noise_multiplier, charge.sampling_rate);
}

// As the model draws it, but for the biases, which predict what is popular before anything is
// learnt. What the histogram cannot tell from nothing counts as one user.
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
        model_(ModelOf(name, constants_)) {}

  Result<double> Fit(const model::Histories& train, const SequencePrivacy& privacy,
                     noise::NoiseSource& noise, WorkerPool& workers,
                     const std::function<void(double)>& progress) override;
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override;
  void Watch(double epochs, std::function<void(double)> look) override {
    look_epochs_ = epochs;
    look_ = std::move(look);
  }

 private:
  train::SequenceTrainingOptions Plan(uint64_t users, bool is_private) const;
  Status BeginWithCounts(const model::Histories& train, const SequencePrivacy& privacy,
                         noise::NoiseSource& noise, WorkerPool& workers);
  std::vector<float> ReleaseShares(const model::Histories& train, const SequencePrivacy& privacy,
                                   noise::NoiseSource& noise);
  Status Train(train::SequenceTrainer& trainer, const std::function<void(double)>& progress);
  void Publish(train::SequenceTrainer& trainer);
  Status Calibrate(const SequencePrivacy& privacy, double rate, uint64_t steps, double* sigma);
  Result<double> Spent(const SequencePrivacy& privacy, const privacy::Charge& step,
                       uint64_t steps) const;

  const TrainedConstants constants_;
  const model::transitions::Options transitions_;
  const model::transitions::Catalogue* const catalogue_;  // null: counts are not begun with
  SequenceOptions model_;
  std::vector<privacy::CountedEvent> beside_;  // what was released besides the steps
  std::unique_ptr<model::LogitPrior> prior_;
  double look_epochs_ = 0;
  std::function<void(double)> look_;

  // What was learnt.
  std::optional<model::SequenceLayout> layout_;
  std::vector<float> weights_, item_variance_;
  model::ParameterNoise noise_;
  // Passes that nobody uses at the moment.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<model::UnitPass>> idle_;
};

train::SequenceTrainingOptions TrainedMethod::Plan(uint64_t users, bool is_private) const {
  const TrainedConstants& c = constants_;
  train::SequenceTrainingOptions plan;
  plan.model = model_;
  plan.model.dropout = static_cast<float>(is_private ? c.dropout_private : c.dropout_plain);
  plan.expected_batch =
      std::min(static_cast<double>(users), is_private ? c.batch_private : c.batch_plain);
  const double steps = (is_private ? c.epochs_private : c.epochs_plain) *
                       static_cast<double>(users) / plan.expected_batch;
  plan.schedule = {.steps = std::max<uint64_t>(1, static_cast<uint64_t>(std::lround(steps))),
                   .warm_up = c.warm_up,
                   .decays = true};
  plan.optimizer.learning_rate =
      static_cast<float>(is_private ? c.learning_rate_private : c.learning_rate_plain);
  plan.optimizer.beta1 = static_cast<float>(c.beta1);
  plan.optimizer.beta2 = static_cast<float>(c.beta2);
  plan.privacy.on = is_private;
  if (!is_private) return plan;
  plan.optimizer.average_decay = c.average_decay_private;
  plan.optimizer.subtract_noise = c.subtract_noise;
  plan.optimizer.variance_floor = static_cast<float>(c.variance_floor);
  plan.privacy.clip = c.normalised_clip ? train::SequencePrivacy::Clip::kNormalised
                                        : train::SequencePrivacy::Clip::kFlat;
  plan.privacy.clip_norm = c.clip_norm;
  return plan;
}

Status TrainedMethod::BeginWithCounts(const model::Histories& train, const SequencePrivacy& privacy,
                                      noise::NoiseSource& noise, WorkerPool& workers) {
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

// How many users have an item, from one histogram in which a user of n items counts 1 / sqrt(n) in
// each: the sum of all cells is the users' sqrt(n), so that its mean undoes the division on
// average.
std::vector<float> TrainedMethod::ReleaseShares(const model::Histories& train,
                                                const SequencePrivacy& privacy,
                                                noise::NoiseSource& noise) {
  const bool is_private = std::isfinite(privacy.epsilon);
  const double mu =
      is_private ? privacy::GaussianMu(Epsilon(privacy.epsilon), Delta(privacy.delta)) : 0;
  mechanism::UnitHistogram histogram(train.catalogue,
                                     is_private ? 1 / (constants_.histogram_share * mu) : 0);
  mechanism::UnitVector vector(train.catalogue);
  for (size_t unit = 0; unit < train.units(); ++unit) {
    vector.Clear();
    const auto history = train.Of(unit);
    model::transitions::AddPopularity(history, history.size(), &vector);
    histogram.Add(vector);
  }
  if (is_private) beside_.push_back({EventOf(histogram.charge()), 1});
  std::vector<float> share = std::move(histogram).Release(noise);
  const auto users = static_cast<double>(train.units());
  const double root = std::max(1.0, std::accumulate(share.begin(), share.end(), 0.0) / users);
  for (float& p : share) p = static_cast<float>(std::clamp(p * root / users, 0.0, 1.0));
  return share;
}

Status TrainedMethod::Calibrate(const SequencePrivacy& privacy, double rate, uint64_t steps,
                                double* sigma) {
  TACIT_ASSIGN(*sigma, train::CalibrateSequenceNoise(privacy.epsilon * (1 - kCalibrationRoom),
                                                     privacy.delta, rate, steps, beside_));
  return {};
}

// By what was done, not by what was planned.
Result<double> TrainedMethod::Spent(const SequencePrivacy& privacy, const privacy::Charge& step,
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

Result<double> TrainedMethod::Fit(const model::Histories& train, const SequencePrivacy& privacy,
                                  noise::NoiseSource& noise, WorkerPool& workers,
                                  const std::function<void(double)>& progress) {
  const bool is_private = std::isfinite(privacy.epsilon);
  TACIT_RETURN_IF_ERROR(CheckSequencePrivacy(privacy));
  TACIT_RETURN_IF_ERROR(model::CheckHistories(train));
  model_.catalogue = train.catalogue;
  train::SequenceTrainingOptions plan = Plan(train.units(), is_private);
  // Counts know what is popular.
  const bool popularity_first = constants_.popularity_start && catalogue_ == nullptr;
  if (popularity_first && !model_.item_bias)
    return Fail(ErrorCode::kInvalidArgument,
                "popularity_start is a start of biases: set item_bias");
  const double rate = plan.expected_batch / static_cast<double>(train.units());
  if (catalogue_ != nullptr) TACIT_RETURN_IF_ERROR(BeginWithCounts(train, privacy, noise, workers));
  plan.prior = prior_.get();
  std::vector<float> share;
  if (popularity_first || (is_private && model_.re_attention.kappa > 0))
    share = ReleaseShares(train, privacy, noise);
  if (is_private) {
    if (model_.re_attention.kappa > 0) plan.privacy.item_share = share;
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

// What Score goes by from now on.
void TrainedMethod::Publish(train::SequenceTrainer& trainer) {
  const std::span<const float> weights = trainer.Weights();
  weights_.assign(weights.begin(), weights.end());
  // Passes go by the layout that is replaced here.
  idle_.clear();
  layout_.emplace(trainer.model().layout());
  noise_ = trainer.parameter_noise();
  item_variance_.assign(noise_.item_variance.begin(), noise_.item_variance.end());
  noise_.item_variance = item_variance_;
}

void TrainedMethod::Score(std::span<const uint32_t> history, std::span<float> scores) const {
  TACIT_CHECK(layout_.has_value(), "Score follows Fit");
  std::unique_ptr<model::UnitPass> pass;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      pass = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  Status status;
  if (pass == nullptr) {
    pass = std::make_unique<model::UnitPass>(*layout_, ops::MakeCpuUnitOps(), prior_.get());
    status = pass->BeginStep(weights_, noise_);
  }
  if (status) status = pass->Score(history, scores);
  // The same products ran in Fit: only memory that has lost its right to run code is left.
  TACIT_CHECK(status.has_value(), "a model that was trained here scores here");
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(pass));
}

}  // namespace

std::span<const std::string_view> TrainedMethodNames() { return kNames; }

bool BeginsWithCounts(std::string_view name) { return name == kCountedTransformer; }

std::unique_ptr<SequenceMethod> MakeTrainedMethod(std::string_view name,
                                                  const SequenceSetting& setting) {
  TACIT_CHECK(std::ranges::find(kNames, name) != kNames.end(), "a name that was checked");
  TACIT_CHECK(!BeginsWithCounts(name) || setting.catalogue != nullptr);
  return std::make_unique<TrainedMethod>(name, setting);
}

}  // namespace tacit::app
