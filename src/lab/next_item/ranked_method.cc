#include "lab/next_item/ranked_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/check.h"
#include "model/ranking/candidates.h"
#include "model/ranking/ranker.h"
#include "privacy/mu.h"
#include "train/ranking/ranker_trainer.h"
#include "train/transitions_release.h"

namespace tacit::lab {
namespace {

class RankedMethod final : public SequenceMethod {
 public:
  explicit RankedMethod(const SequenceSetting& setting)
      : constants_(setting.ranked),
        transitions_(setting.transitions),
        catalogue_(*setting.catalogue) {}

  Result<double> Fit(const model::Histories& train, const EpsilonDelta& privacy,
                     noise::NoiseSource& noise, WorkerPool& workers,
                     const std::function<void(double)>& progress) override;
  void Watch(double steps, std::function<void(double)> look) override {
    look_steps_ = steps;
    look_ = std::move(look);
  }
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override;

 private:
  train::RankerTraining Plan(size_t users, double mu, noise::NoiseSource& noise) const;
  Status Check(size_t users) const;
  void Train(train::RankerTrainer& trainer, const std::function<void(double)>& progress);

  const RankedConstants constants_;
  const model::transitions::Options transitions_;
  const model::transitions::PublicItems& catalogue_;
  double look_steps_ = 0;
  std::function<void(double)> look_;
  std::optional<model::ranking::CandidateSource> source_;
  std::vector<float> parameters_;
};

train::RankerTraining RankedMethod::Plan(size_t users, double mu,
                                         noise::NoiseSource& source) const {
  const auto steps = static_cast<double>(constants_.steps), units = static_cast<double>(users);
  const double sigma =
      std::isinf(mu) ? 0 : privacy::kMuMargin * std::sqrt(steps / constants_.share) / mu;
  // Adam's steps have one length, whatever the gradient. Where a step's noise is longer than the
  // gradient of all users together could be, the rate is lowered by that ratio: with few users, the
  // order of the counts remains.
  const double noise = sigma * std::sqrt(static_cast<double>(model::ranking::kRankerParameters));
  const double sure = noise > units ? units / noise : 1;
  return {.seed = static_cast<uint64_t>(source.Uniform() * 0x1p53),
          .steps = constants_.steps,
          .sigma = sigma,
          .candidates = constants_.candidates,
          .last_items = constants_.last_items,
          .focus = constants_.focus,
          .expected_units = units,
          .learning_rate = constants_.learning_rate * sure};
}

// Checks what train::CheckOptions does not.
Status RankedMethod::Check(size_t users) const {
  constexpr double kShareLeast = 1e-6, kBytesMost = 0x1p34;
  const auto refuse = [](std::string why) {
    return Fail(ErrorCode::kInvalidArgument, std::move(why));
  };
  const RankedConstants& c = constants_;
  if (!(c.share >= kShareLeast && c.share <= 1 - kShareLeast))
    return refuse(fmt::format("ranker_share {}: counts and ranker both need some of mu", c.share));
  if (c.candidates_asked == 0)
    return refuse("ranker_candidates_asked 0: there is nothing to put in order");
  const double bytes = static_cast<double>(users) * static_cast<double>(c.last_items) *
                       static_cast<double>(c.candidates * model::ranking::kFeatures);
  if (bytes <= kBytesMost) return {};
  return refuse(
      fmt::format("the questions to {} users take {:.0f} GiB: ranker_last_items {} or "
                  "ranker_candidates {} are too many",
                  users, bytes / 0x1p30, c.last_items, c.candidates));
}

Result<double> RankedMethod::Fit(const model::Histories& train, const EpsilonDelta& privacy,
                                 noise::NoiseSource& noise, WorkerPool& workers,
                                 const std::function<void(double)>& progress) {
  // The release's approximate share of the work.
  constexpr double kReleased = 0.1;
  TACIT_RETURN_IF_ERROR(CheckEpsilonDelta(privacy));
  if (!transitions_.IsDense(train.catalogue))
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "a ranker needs a table of all pairs of items, and {} items are too many for one",
            train.catalogue));
  TACIT_RETURN_IF_ERROR(Check(train.units()));
  const double mu = MuOf(privacy);
  const train::RankerTraining plan = Plan(train.units(), mu, noise);
  TACIT_RETURN_IF_ERROR(train::CheckOptions(plan));
  TACIT_ASSIGN(const auto release,
               train::ReleaseTransitions(train, catalogue_, transitions_,
                                         mu * std::sqrt(1 - constants_.share), noise, workers,
                                         [&](double share) { progress(kReleased * share); }));
  source_.emplace(release.estimate(), catalogue_, transitions_, workers);
  train::RankerTrainer trainer(plan, train, *source_, noise, workers);
  Train(trainer, [&](double share) { progress(kReleased + (1 - kReleased) * share); });
  if (std::isinf(mu)) return std::numeric_limits<double>::infinity();
  const double mu_squared = release.MuSquared() + static_cast<double>(trainer.steps_taken()) *
                                                      trainer.charge().MuSquared();
  if (mu_squared > mu * mu * privacy::kMuMargin)
    return Fail(ErrorCode::kRefused,
                fmt::format("a mu^2 of {} was promised and {} spent", mu * mu, mu_squared));
  return EpsilonOf(mu_squared, privacy);
}

void RankedMethod::Train(train::RankerTrainer& trainer,
                         const std::function<void(double)>& progress) {
  double next_look = look_steps_;
  while (!trainer.done()) {
    trainer.Step();
    const auto steps = static_cast<double>(trainer.steps_taken());
    if (look_ && (steps >= next_look || trainer.done())) {
      parameters_ = trainer.Average();
      look_(steps);
      next_look += look_steps_;
    }
    progress(steps / static_cast<double>(constants_.steps));
  }
  parameters_ = trainer.Average();
}

// Scores candidates by the ranker, above all other items, which are scored by counts.
void RankedMethod::Score(std::span<const uint32_t> history, std::span<float> scores) const {
  TACIT_CHECK(source_.has_value() && !parameters_.empty(), "Score follows Fit");
  model::ranking::Candidates candidates;
  source_->Find(history, constants_.candidates_asked, &candidates);
  // Counts are never below 0, so these scores are in [-1, 0).
  for (size_t item = 0; item < scores.size(); ++item)
    scores[item] = -1 / (1 + candidates.scores[item]);
  model::ranking::RankerPass pass;
  const auto order = pass.Score(parameters_, candidates.rows);
  if (order.empty()) return;
  const float least = *std::ranges::min_element(order);
  for (size_t i = 0; i < order.size(); ++i) scores[candidates.items[i]] = 1 + (order[i] - least);
}

}  // namespace

std::unique_ptr<SequenceMethod> MakeRankedMethod(const SequenceSetting& setting) {
  TACIT_CHECK(setting.catalogue != nullptr);
  return std::make_unique<RankedMethod>(setting);
}

}  // namespace tacit::lab
