#include "app/evaluate/trained_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>

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

constexpr std::array<std::string_view, 5> kNames = {"dpformer", "transformer", "transformer-untied",
                                                    "gru", "lstm"};
// What is left to the ledger's bound, which is certified step by step.
constexpr double kCalibrationRoom = 0.005;

SequenceOptions ModelOf(std::string_view name, const TrainedConstants& constants) {
  SequenceOptions options;
  options.length = constants.length;
  options.width = constants.width;
  options.blocks = constants.blocks;
  options.heads = constants.heads;
  options.dropout = constants.dropout;
  options.tied = name != "transformer-untied";
  if (name == "gru") options.encoder = SequenceOptions::Encoder::kGru;
  if (name == "lstm") options.encoder = SequenceOptions::Encoder::kLstm;
  if (name == "dpformer") options.re_attention.kappa = constants.kappa;
  return options;
}

// What a charge is to the accountant.
privacy::Event EventOf(const privacy::Charge& charge) {
  if (charge.sampling_rate == 1) return privacy::Event::Gaussian(charge.noise_multiplier);
  return privacy::Event::PoissonGaussian(charge.noise_multiplier, charge.sampling_rate);
}

class TrainedMethod final : public SequenceMethod {
 public:
  TrainedMethod(std::string_view name, const TrainedConstants& constants)
      : constants_(constants), model_(ModelOf(name, constants)) {}

  Result<double> Fit(const model::Histories& train, const SequencePrivacy& privacy,
                     noise::NoiseSource& noise, WorkerPool& workers,
                     const std::function<void(double)>& progress) override;
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override;

 private:
  train::SequenceTrainingOptions Plan(uint64_t users, bool is_private) const;
  Status ReleaseShares(const model::Histories& train, const SequencePrivacy& privacy,
                       noise::NoiseSource& noise, train::SequencePrivacy* plan);
  Status Calibrate(const SequencePrivacy& privacy, double rate, uint64_t steps, double* sigma);
  Result<double> Spent(const SequencePrivacy& privacy, const privacy::Charge& step,
                       uint64_t steps) const;

  const TrainedConstants constants_;
  SequenceOptions model_;
  std::vector<privacy::CountedEvent> beside_;  // what was released besides the steps

  // What was learnt.
  std::optional<model::SequenceLayout> layout_;
  std::vector<float> weights_, item_variance_;
  model::ParameterNoise noise_;
  // Passes that nobody uses at the moment.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<model::UnitPass>> idle_;
};

train::SequenceTrainingOptions TrainedMethod::Plan(uint64_t users, bool is_private) const {
  train::SequenceTrainingOptions plan;
  plan.model = model_;
  plan.expected_batch = std::min(static_cast<double>(users),
                                 is_private ? constants_.batch_private : constants_.batch_plain);
  const double steps = constants_.epochs * static_cast<double>(users) / plan.expected_batch;
  plan.schedule = {.steps = std::max<uint64_t>(1, static_cast<uint64_t>(std::lround(steps))),
                   .warm_up = constants_.warm_up,
                   .decays = true};
  plan.optimizer.learning_rate =
      is_private ? constants_.learning_rate_private : constants_.learning_rate_plain;
  plan.optimizer.average_decay = is_private ? constants_.average_decay_private : 0;
  plan.privacy.on = is_private;
  plan.privacy.clip = train::SequencePrivacy::Clip::kNormalised;
  return plan;
}

// How many users have an item, from one histogram in which a user of n items counts 1 / sqrt(n) in
// each: the sum of all cells is the users' sqrt(n), so that its mean undoes the division on
// average.
Status TrainedMethod::ReleaseShares(const model::Histories& train, const SequencePrivacy& privacy,
                                    noise::NoiseSource& noise, train::SequencePrivacy* plan) {
  const double mu = privacy::GaussianMu(Epsilon(privacy.epsilon), Delta(privacy.delta));
  const double multiplier = 1 / (constants_.histogram_share * mu);
  mechanism::UnitHistogram histogram(train.catalogue, multiplier);
  mechanism::UnitVector vector(train.catalogue);
  for (size_t unit = 0; unit < train.units(); ++unit) {
    vector.Clear();
    const auto history = train.Of(unit);
    model::transitions::AddPopularity(history, history.size(), &vector);
    histogram.Add(vector);
  }
  beside_.push_back({EventOf(histogram.charge()), 1});
  std::vector<float> share = std::move(histogram).Release(noise);
  const auto users = static_cast<double>(train.units());
  const double root = std::max(1.0, std::accumulate(share.begin(), share.end(), 0.0) / users);
  for (float& p : share) p = static_cast<float>(std::clamp(p * root / users, 0.0, 1.0));
  plan->item_share = std::move(share);
  return {};
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
  const double rate = plan.expected_batch / static_cast<double>(train.units());
  if (is_private) {
    if (model_.re_attention.kappa > 0)
      TACIT_RETURN_IF_ERROR(ReleaseShares(train, privacy, noise, &plan.privacy));
    TACIT_RETURN_IF_ERROR(Calibrate(privacy, rate, plan.schedule.steps, &plan.privacy.sigma));
  }
  // Public coins and first weights differ from run to run.
  plan.seed = static_cast<uint64_t>(noise.Uniform() * 0x1p53);
  TACIT_RETURN_IF_ERROR(train::CheckOptions(plan, train.units()));
  const auto backend = ops::MakeCpuBackend(workers);
  train::SequenceTrainer trainer(plan, train, *backend, noise::MakeNoiseSource(workers),
                                 noise::MakeNoiseSource());
  train::SequenceStepReport report;
  while (!trainer.done()) {
    TACIT_RETURN_IF_ERROR(trainer.Step(&report));
    progress(static_cast<double>(trainer.steps_taken()) / static_cast<double>(plan.schedule.steps));
  }
  const std::span<const float> weights = trainer.Weights();
  weights_.assign(weights.begin(), weights.end());
  layout_.emplace(trainer.model().layout());
  noise_ = trainer.parameter_noise();
  item_variance_.assign(noise_.item_variance.begin(), noise_.item_variance.end());
  noise_.item_variance = item_variance_;
  if (!is_private) return std::numeric_limits<double>::infinity();
  return Spent(privacy, trainer.charge(), trainer.steps_taken());
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
    pass = std::make_unique<model::UnitPass>(*layout_, ops::MakeCpuUnitOps());
    status = pass->BeginStep(weights_, noise_);
  }
  if (status) status = pass->Score(history, scores);
  // The same products ran in Fit: only memory that has lost its right to run code is left.
  TACIT_CHECK(status.has_value(), "a model that was trained here scores here");
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(pass));
}

}  // namespace

std::string TrainedConstants::Text() const {
  return fmt::format(
      "length {} width {} blocks {} heads {} dropout {} epochs {} warm-up {} batch {} {} "
      "learning rate {} {} average {} kappa {} histogram {}",
      length, width, blocks, heads, dropout, epochs, warm_up, batch_private, batch_plain,
      learning_rate_private, learning_rate_plain, average_decay_private, kappa, histogram_share);
}

std::span<const std::string_view> TrainedMethodNames() { return kNames; }

std::unique_ptr<SequenceMethod> MakeTrainedMethod(std::string_view name,
                                                  const TrainedConstants& constants) {
  TACIT_CHECK(std::ranges::find(kNames, name) != kNames.end(), "a name that was checked");
  return std::make_unique<TrainedMethod>(name, constants);
}

}  // namespace tacit::app
