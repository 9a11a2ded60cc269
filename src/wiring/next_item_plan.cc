#include "wiring/next_item_plan.h"

#include <fmt/format.h>

#include <utility>

#include "model/sequence/layout.h"
#include "wiring/item_texts.h"
#include "wiring/mechanism_factory.h"
#include "wiring/noise_plan.h"

namespace tacit::wiring {
namespace {

constexpr int64_t kDayMs = 24 * 3'600'000;

bool IsPrivate(const config::Learner& learner) { return learner.mechanism.traits().adds_noise; }

double SamplingRate(const config::Participation& participation) {
  return participation.mode == config::Participation::Mode::kPoisson ? participation.sampling_rate
                                                                     : 1;
}

LearnerIndex IndexOf(size_t index) { return LearnerIndex(static_cast<uint16_t>(index)); }

train::RecentHistoriesOptions HistoriesOf(const config::Learner& learner,
                                          const event::ItemCatalogue& items) {
  return {.catalogue = items.items(),
          .items_most = learner.history.items,
          .age_most_ms = learner.history.days * kDayMs,
          .user_key = {}};
}

model::SequenceOptions ModelOf(const config::Model& configured, uint32_t catalogue) {
  const config::Sequence& from = configured.sequence;
  model::SequenceOptions model;
  model.catalogue = catalogue;
  model.length = from.length;
  model.width = from.width;
  switch (from.encoder) {
    case config::Sequence::Encoder::kTransformer:
      model.encoder = model::SequenceOptions::Encoder::kTransformer;
      break;
    case config::Sequence::Encoder::kGru:
      model.encoder = model::SequenceOptions::Encoder::kGru;
      break;
    case config::Sequence::Encoder::kLstm:
      model.encoder = model::SequenceOptions::Encoder::kLstm;
      break;
  }
  model.blocks = from.blocks;
  model.heads = from.heads;
  model.feed_forward = from.feed_forward;
  model.tied = from.tied;
  model.item_bias = from.item_bias;
  model.negatives = from.negatives;
  model.dropout = static_cast<float>(from.dropout);
  model.label_smoothing = static_cast<float>(from.label_smoothing);
  model.re_attention.kappa = static_cast<float>(from.re_attention);
  if (configured.compute == "bf16") model.precision = ops::Precision::kBf16;
  return model;
}

}  // namespace

Result<train::SequenceLearnerOptions> PlanSequence(const config::Config& config, size_t index,
                                                   const event::ItemCatalogue& items) {
  const config::Learner& learner = config.learners[index];
  train::SequenceLearnerOptions options{.id = learner.id,
                                        .index = IndexOf(index),
                                        .training = {},
                                        .sampling_rate = SamplingRate(learner.participation),
                                        .histories = HistoriesOf(learner, items)};
  train::SequenceTrainingOptions& training = options.training;
  training.model = ModelOf(learner.model, items.items());
  training.seed = learner.model.seed;
  training.expected_batch = static_cast<double>(learner.participation.batch);
  training.optimizer = MakeOptimizer(learner.optimizer);
  training.privacy.on = IsPrivate(learner);
  if (training.privacy.on) {
    TACIT_ASSIGN(training.privacy.sigma, StepNoise(learner, config.source));
    training.privacy.clip_norm = learner.mechanism.gradient_clip;
    if (learner.mechanism.clipping == config::Mechanism::Clipping::kAutomatic)
      training.privacy.clip = train::SequenceGuard::Clip::kNormalised;
  }
  if (Status status = CheckOptions(training); !status)
    return Fail(std::move(status.error()).Context("learner '" + learner.id + "'"));
  return options;
}

Result<train::TransitionsLearnerOptions> PlanTransitions(const config::Config& config, size_t index,
                                                         const event::ItemCatalogue& items) {
  const config::Learner& learner = config.learners[index];
  train::TransitionsLearnerOptions options{
      .id = learner.id,
      .index = IndexOf(index),
      .catalogue = std::make_shared<const model::transitions::PublicItems>(
          learner.model.transitions.described ? ItemTexts(items)
                                              : model::transitions::PublicItems(items.items())),
      .model = {},
      .histories = HistoriesOf(learner, items)};
  options.model.forget = learner.model.transitions.forget;
  options.model.cells_most = learner.model.transitions.cells;
  if (IsPrivate(learner)) {
    TACIT_ASSIGN(options.noise_multiplier, StepNoise(learner, config.source));
  }
  return options;
}

Digest FingerprintOf(const train::SequenceLearnerOptions& options,
                     const event::ItemCatalogue& items) {
  const model::SequenceLayout layout(options.training.model);
  const Digest model = layout.Fingerprint();
  return Sha256()
      .Update("tacit sequence learner 1")
      .Update(model)
      .Update(items.fingerprint())
      .Update(fmt::format("{} seed={}",
                          train::FingerprintText(options.training.optimizer, /*of_rows=*/false),
                          options.training.seed))
      .Finish();
}

Digest FingerprintOf(const train::TransitionsLearnerOptions& options,
                     const event::ItemCatalogue& items) {
  return Sha256()
      .Update("tacit transitions learner 1")
      .Update(items.fingerprint())
      .Update(options.catalogue->described() ? "described" : "")
      .Update(options.model.Text())
      .Finish();
}

}  // namespace tacit::wiring
