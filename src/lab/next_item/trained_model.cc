#include "lab/next_item/trained_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"

namespace tacit::lab {
namespace {

using model::SequenceOptions;

constexpr std::string_view kCountedTransformer = "transitions+transformer";
constexpr std::array<std::string_view, 6> kNames = {"dpformer", "transformer", "transformer-untied",
                                                    "gru",      "lstm",        kCountedTransformer};

tl::unexpected<Error> RefuseModel(std::string why) {
  return Fail(ErrorCode::kInvalidArgument, std::move(why));
}

// Checks the share of a release before the steps: both the release and the steps must get enough
// for noise that fits a grid.
Status CheckShare(std::string_view name, double share, std::string_view of) {
  constexpr double kShareLeast = 1e-6;
  if (share >= kShareLeast && share <= 1 - kShareLeast) return {};
  return RefuseModel(fmt::format("{} {}: no share of {} between 0 and 1, or within {} of either",
                                 name, share, of, kShareLeast));
}

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
  // Counts rate items similar to those seen as likely, and so the seen items themselves.
  options.mask_seen = constants.mask_seen || BeginsWithCounts(name);
  options.label_smoothing = static_cast<float>(constants.label_smoothing);
  if (constants.bf16) options.precision = ops::Precision::kBf16;
  options.tied = name != "transformer-untied";
  if (name == "gru") options.encoder = SequenceOptions::Encoder::kGru;
  if (name == "lstm") options.encoder = SequenceOptions::Encoder::kLstm;
  if (name == "dpformer") options.re_attention.kappa = static_cast<float>(constants.kappa);
  return options;
}

}  // namespace

std::span<const std::string_view> TrainedMethodNames() { return kNames; }

bool BeginsWithCounts(std::string_view name) { return name == kCountedTransformer; }

train::SequenceTrainingOptions TrainingOf(std::string_view name, const TrainedConstants& c,
                                          bool is_private) {
  TACIT_CHECK(std::ranges::find(kNames, name) != kNames.end(), "a name that was checked");
  train::SequenceTrainingOptions options;
  options.model = ModelOf(name, c);
  options.model.dropout = static_cast<float>(is_private ? c.dropout_private : c.dropout_plain);
  options.schedule.warm_up = c.warm_up;
  options.optimizer.learning_rate =
      static_cast<float>(is_private ? c.learning_rate_private : c.learning_rate_plain);
  options.optimizer.beta1 = static_cast<float>(c.beta1);
  options.optimizer.beta2 = static_cast<float>(c.beta2);
  options.privacy.on = is_private;
  if (!is_private) return options;
  options.optimizer.average_decay = c.average_decay_private;
  if (c.subtract_noise) options.optimizer.kind = train::OptimizerNamed("adam-bc");
  options.optimizer.variance_floor = static_cast<float>(c.variance_floor);
  options.privacy.clip = c.normalised_clip ? train::SequenceGuard::Clip::kNormalised
                                           : train::SequenceGuard::Clip::kFlat;
  options.privacy.clip_norm = c.clip_norm;
  return options;
}

Result<uint64_t> StepsOf(std::string_view from, double steps) {
  constexpr double kStepsMost = 1e9;
  if (!(steps > 0 && steps <= kStepsMost))
    return RefuseModel(
        fmt::format("{}: {:.4g} steps; there are some, and {:g} at most", from, steps, kStepsMost));
  return std::max<int64_t>(1, std::llround(steps));
}

Result<train::SequenceLearnerOptions> LearnerOf(std::string_view name,
                                                const SequenceSetting& setting, uint32_t catalogue,
                                                bool is_private) {
  using Kind = train::SequenceStartOptions::Kind;
  const TrainedConstants& c = setting.trained;
  train::SequenceLearnerOptions options{.id = std::string(name),
                                        .index = LearnerIndex(0),
                                        .training = TrainingOf(name, c, is_private),
                                        .histories = {},
                                        .asked_most = 0};
  options.training.model.catalogue = catalogue;
  train::SequenceStartOptions& start = options.start;
  start.forget = setting.transitions.forget;
  start.popularity_is_prior = c.popularity_start;
  if (BeginsWithCounts(name)) {
    TACIT_RETURN_IF_ERROR(CheckShare("counts_share", c.counts_share, "mu^2"));
    start.kind = Kind::kCounts;
    start.counts_weight = c.counts_weight;
    start.counts = setting.transitions;
    start.catalogue = {std::shared_ptr<const void>(), setting.catalogue};
    return options;
  }
  const bool corrects = is_private && options.training.model.re_attention.kappa > 0;
  if (!c.popularity_start && !corrects) return options;
  TACIT_RETURN_IF_ERROR(CheckShare("histogram_share", c.histogram_share, "mu"));
  if (c.popularity_start && c.label_smoothing > 0)
    return RefuseModel(
        "popularity_start: labels that are smoothed are of no popularity; set one of it and "
        "label_smoothing off");
  start.kind = Kind::kPopularity;
  return options;
}

double OpeningShare(train::SequenceStartOptions::Kind kind, const TrainedConstants& constants) {
  switch (kind) {
    case train::SequenceStartOptions::Kind::kNone:
      return 0;
    case train::SequenceStartOptions::Kind::kPopularity:
      return constants.histogram_share * constants.histogram_share;
    case train::SequenceStartOptions::Kind::kCounts:
      return constants.counts_share;
  }
  return 0;
}

}  // namespace tacit::lab
