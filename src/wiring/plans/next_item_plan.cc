#include "wiring/plans/next_item_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/sequence/layout.h"
#include "wiring/plans/item_texts.h"
#include "wiring/plans/learner_shape.h"
#include "wiring/plans/mechanism_factory.h"
#include "wiring/plans/noise_plan.h"

namespace tacit::wiring {
namespace {

constexpr int64_t kDayMs = 24 * 3'600'000;

bool IsPrivate(const config::Learner& learner) { return learner.mechanism.traits().adds_noise; }

train::RecentHistoriesOptions HistoriesOf(const config::Learner& learner, uint32_t items) {
  return {.catalogue = items,
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
  // Counts rate items similar to those seen as likely, and so the seen items themselves.
  model.mask_seen = from.mask_seen || from.start == config::Sequence::Start::kCounts;
  model.crops = from.crops;
  model.random_crops = from.random_crops;
  model.re_attention.kappa = static_cast<float>(from.re_attention);
  if (configured.compute == "bf16") model.precision = ops::Precision::kBf16;
  return model;
}

model::transitions::Options CountsOf(const config::Transitions& from) {
  model::transitions::Options counts;
  counts.forget = from.forget;
  counts.cells_most = from.cells;
  return counts;
}

std::shared_ptr<const model::transitions::PublicItems> CatalogueOf(
    bool described, const event::ItemCatalogue& items) {
  return std::make_shared<const model::transitions::PublicItems>(
      described ? ItemTexts(items) : model::transitions::PublicItems(items.items()));
}

// Everything of a start but its noise.
train::SequenceStartOptions StartOf(const config::Model& configured,
                                    const event::ItemCatalogue& items) {
  using Kind = train::SequenceStartOptions::Kind;
  train::SequenceStartOptions start;
  start.forget = configured.transitions.forget;
  switch (configured.sequence.start) {
    case config::Sequence::Start::kNone:
      break;
    case config::Sequence::Start::kPopularity:
      start.kind = Kind::kPopularity;
      break;
    case config::Sequence::Start::kCounts:
      start.kind = Kind::kCounts;
      start.counts_weight = configured.sequence.start_weight;
      start.counts = CountsOf(configured.transitions);
      start.catalogue = CatalogueOf(configured.transitions.described, items);
      break;
  }
  return start;
}

// The settings that what a start has released depends on; empty without a start.
std::string FingerprintText(const train::SequenceStartOptions& start) {
  switch (start.kind) {
    case train::SequenceStartOptions::Kind::kNone:
      return "";
    case train::SequenceStartOptions::Kind::kPopularity:
      return fmt::format(" start=popularity forget={}", start.forget);
    case train::SequenceStartOptions::Kind::kCounts:
      return fmt::format(" start=counts{} weight={} {}",
                         start.catalogue->described() ? " described" : "", start.counts_weight,
                         start.counts.Text());
  }
  return "";
}

}  // namespace

train::SequenceLearnerOptions SequenceWithoutNoise(const config::Learner& learner,
                                                   LearnerIndex index, uint32_t items) {
  train::SequenceLearnerOptions options{.id = learner.id,
                                        .index = index,
                                        .training = {},
                                        .draw = DrawOf(learner.participation),
                                        .histories = HistoriesOf(learner, items)};
  // A user brings one record at least, so a step has no more users than records.
  const config::Participation& steps = learner.participation;
  const auto batch = static_cast<double>(steps.batch);
  options.planned_users = static_cast<uint64_t>(steps.holds_periods() ? MostOf(batch) : batch);
  train::SequenceTrainingOptions& training = options.training;
  training.model = ModelOf(learner.model, items);
  training.seed = learner.model.seed;
  training.expected_batch = static_cast<double>(learner.participation.batch);
  training.optimizer = MakeOptimizer(learner.optimizer);
  training.sum_map = MakeSumMap(learner.mechanism);
  training.privacy.on = IsPrivate(learner);
  if (const uint32_t warm_up = learner.model.sequence.warm_up_steps; warm_up > 0)
    training.schedule = {.steps = warm_up, .warm_up = 1};
  if (!training.privacy.on) return options;
  training.privacy.clip_norm = learner.mechanism.gradient_clip;
  if (learner.mechanism.clipping == config::Mechanism::Clipping::kAutomatic)
    training.privacy.clip = train::SequenceGuard::Clip::kNormalised;
  return options;
}

Result<train::SequenceLearnerOptions> PlanSequence(const PlanParts& parts) {
  const config::Learner& learner = parts.learner();
  const event::ItemCatalogue& items = *parts.items;
  train::SequenceLearnerOptions options =
      SequenceWithoutNoise(learner, parts.learner_index(), items.items());
  options.start = StartOf(learner.model, items);
  if (items.described())
    options.training.described =
        model::DescribedStart(CatalogueOf(true, items), learner.model.sequence.described_share);
  if (options.training.privacy.on) {
    Beside openings;
    if (options.start.kind != train::SequenceStartOptions::Kind::kNone) {
      TACIT_ASSIGN(options.start.noise_multiplier,
                   OpeningNoise(learner, parts.exposure, learner.model.sequence.start_share));
      openings = BesideSteps(train::OpeningCharge(options.start), parts.exposure.periods, 0, 0);
    }
    TACIT_ASSIGN(options.training.privacy.sigma, StepNoise(learner, parts.exposure, openings));
  }
  if (Status status = train::CheckOptions(options); !status)
    return Fail(std::move(status.error()).Context("learner '" + learner.id + "'"));
  return options;
}

Result<train::TransitionsLearnerOptions> PlanTransitions(const PlanParts& parts) {
  const config::Learner& learner = parts.learner();
  const event::ItemCatalogue& items = *parts.items;
  train::TransitionsLearnerOptions options{
      .id = learner.id,
      .index = parts.learner_index(),
      .catalogue = CatalogueOf(learner.model.transitions.described, items),
      .model = CountsOf(learner.model.transitions),
      .histories = HistoriesOf(learner, items.items())};
  if (IsPrivate(learner)) {
    TACIT_ASSIGN(options.noise_multiplier, StepNoise(learner, parts.exposure));
  }
  return options;
}

Result<train::RankedLearnerOptions> PlanRanked(const PlanParts& parts) {
  const config::Learner& learner = parts.learner();
  const event::ItemCatalogue& items = *parts.items;
  const config::Transitions& from = learner.model.transitions;
  train::RankedLearnerOptions options{.id = learner.id,
                                      .index = parts.learner_index(),
                                      .catalogue = CatalogueOf(from.described, items),
                                      .model = train::CountsBesideRanker(CountsOf(from)),
                                      .expected_units = static_cast<double>(from.ranker_users),
                                      .seed = learner.model.seed,
                                      .histories = HistoriesOf(learner, items.items())};
  options.ranker = train::WithCandidates({}, options.catalogue->described());
  options.ranker.share = from.ranker_share;
  options.ranker.steps = from.ranker_steps;
  if (IsPrivate(learner)) {
    TACIT_ASSIGN(options.noise_multiplier, StepNoise(learner, parts.exposure));
  }
  if (Status status = train::CheckOptions(options); !status)
    return Fail(std::move(status.error()).Context("learner '" + learner.id + "'"));
  return options;
}

train::SequenceLearnerOptions ForCatalogue(const train::SequenceLearnerOptions& options,
                                           const event::ItemCatalogue& items) {
  train::SequenceLearnerOptions other = options;
  other.training.model.catalogue = items.items();
  other.training.described = {};
  if (const auto& catalogue = options.start.catalogue)
    other.start.catalogue = CatalogueOf(catalogue->described(), items);
  return other;
}

train::TransitionsLearnerOptions ForCatalogue(const train::TransitionsLearnerOptions& options,
                                              const event::ItemCatalogue& items) {
  train::TransitionsLearnerOptions other = options;
  other.catalogue = CatalogueOf(options.catalogue->described(), items);
  return other;
}

train::RankedLearnerOptions ForCatalogue(const train::RankedLearnerOptions& options,
                                         const event::ItemCatalogue& items) {
  train::RankedLearnerOptions other = options;
  other.catalogue = CatalogueOf(options.catalogue->described(), items);
  return other;
}

Digest FingerprintOf(const train::SequenceLearnerOptions& options,
                     const event::ItemCatalogue& items) {
  const model::SequenceLayout layout(options.training.model);
  const Digest model = layout.Fingerprint();
  return Sha256()
      .Update("tacit sequence learner 1")
      .Update(model)
      .Update(items.fingerprint())
      .Update(fmt::format("{} seed={}{}",
                          train::FingerprintText(options.training.optimizer, /*of_rows=*/false),
                          options.training.seed, FingerprintText(options.start)))
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

Digest FingerprintOf(const train::RankedLearnerOptions& options,
                     const event::ItemCatalogue& items) {
  return Sha256()
      .Update("tacit ranked learner 1")
      .Update(items.fingerprint())
      .Update(options.catalogue->described() ? "described" : "")
      .Update(options.model.Text())
      .Update(fmt::format(" seed={} candidates={}/{}", options.seed, *options.ranker.candidates,
                          *options.ranker.orders))
      .Finish();
}

}  // namespace tacit::wiring
