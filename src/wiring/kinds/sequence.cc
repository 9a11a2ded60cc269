#include "base/text.h"
#include "model/sequence/layout.h"
#include "wiring/kinds/kinds.h"
#include "wiring/next_item_plan.h"

namespace tacit::wiring {
namespace {

// Bytes of a sequence model beside its dense parameters and their state, serving included. Each
// worker has an integer sum and the gradient of the unit at hand. Workers share the output table,
// prepared for two products. The served state and the next one exist together.
double SequenceBytes(double parameters, double workers) {
  constexpr double kWorker = sizeof(int64_t) + sizeof(float);
  constexpr double kPrepared = 2 * sizeof(float), kServed = 2 * sizeof(float);
  return parameters * (kWorker * workers + kPrepared + kServed);
}

// Bytes of a start: the release, and its logits, in the learner, in the served state and in the
// next one. Counts keep their state twice beside a table of all pairs.
double StartBytes(const train::SequenceStartOptions& start, uint32_t items, double workers) {
  constexpr double kStates = 3;
  const double logits = sizeof(float) * static_cast<double>(items);
  switch (start.kind) {
    case train::SequenceStartOptions::Kind::kNone:
      return 0;
    case train::SequenceStartOptions::Kind::kPopularity:
      return kStates * 3 * logits;
    case train::SequenceStartOptions::Kind::kCounts:
      return kStates * logits * static_cast<double>(items) +
             TransitionsBytes(start.counts, items, workers);
  }
  return 0;
}

// The noise in the served parameters, as the learner corrects attention for it.
serve::SequenceNoise NoiseOf(const train::SequenceTrainingOptions& training,
                             std::span<const float> shares) {
  serve::SequenceNoise noise{.item_variance = train::ItemVariances(training, shares)};
  if (noise.item_variance.empty()) return noise;
  const double stddev = train::UpdateStddev(training.privacy, training.expected_batch);
  noise.weight_variance = static_cast<float>(stddev * stddev);
  return noise;
}

// Reads a release with the learner's own start, so that an answer is what the learner computes.
serve::ReadStart ReadStartOf(const train::SequenceLearnerOptions& options) {
  struct Held {
    WorkerPool workers{{.workers = 1}};
    std::unique_ptr<train::SequenceStart> start;
  };
  return [options](std::string_view released) -> Result<serve::ReleasedStart> {
    const train::SequenceTrainingOptions& training = options.training;
    const auto held = std::make_shared<Held>();
    held->start = train::MakeSequenceStart(options.start, training.model.catalogue, held->workers);
    TACIT_RETURN_IF_ERROR(held->start->Load(released));
    return serve::ReleasedStart{.prior = {held, held->start->prior()},
                                .noise = NoiseOf(training, held->start->ItemShares())};
  };
}

class SequencePlan final : public ModelPlan {
 public:
  SequencePlan(const PlanParts& parts, train::SequenceLearnerOptions options)
      : options_(std::move(options)), items_(parts.items) {}

  privacy::Charge charge() const override { return train::ChargeOf(options_); }
  std::optional<privacy::Charge> opening_charge() const override {
    if (options_.start.kind == train::SequenceStartOptions::Kind::kNone) return std::nullopt;
    return train::OpeningCharge(options_.start);
  }
  Digest Fingerprint() const override { return FingerprintOf(options_, *items_); }
  store::RowLayout Rows() const override { return train::MakeRowLayout(options_.training); }

  void AddTo(LearnerShape* shape) const override {
    const train::SequenceTrainingOptions& training = options_.training;
    SetDense(model::SequenceLayout(training.model).size(), training.optimizer, shape);
    shape->input_width = kItemInputs;
    shape->other_bytes = SequenceBytes(shape->dense_parameters, shape->workers) +
                         HistoryBytes(*shape, options_.histories.items_most) +
                         train::NextItemExam::Bytes(training.model.catalogue) +
                         StartBytes(options_.start, training.model.catalogue, shape->workers);
  }

  Result<std::unique_ptr<train::Learner>> Make(LearnerParts parts) const override {
    train::SequenceLearnerOptions options = options_;
    options.histories.user_key = parts.user_key;
    options.histories.clock = parts.clock;
    return std::make_unique<train::SequenceLearner>(std::move(options), std::move(parts.histories),
                                                    std::move(parts.noise), parts.backend,
                                                    parts.dense, parts.steps_taken);
  }

  std::shared_ptr<const serve::ItemModel> Recommends() const override {
    const train::SequenceTrainingOptions& training = options_.training;
    serve::ReadStart read;
    if (opening_charge()) read = ReadStartOf(options_);
    return serve::MakeSequenceItems(options_.index, training.model, NoiseOf(training, {}),
                                    std::move(read));
  }

  std::string SizeText() const override { return Counted(items_->items(), "item"); }
  std::string RowsText() const override {
    return "all of the model's numbers are moved in every step";
  }
  std::string_view ReleaseKeys() const override {
    return "mechanism.kind, clipping and model.start";
  }

 private:
  const train::SequenceLearnerOptions options_;
  const std::shared_ptr<const event::ItemCatalogue> items_;
};

std::vector<privacy::Query> SequenceQueries(const config::Learner& learner,
                                            std::span<const MechanismMaker>) {
  using privacy::Query;
  switch (learner.model.sequence.start) {
    case config::Sequence::Start::kNone:
      break;
    case config::Sequence::Start::kPopularity:
      return {Query::kItemHistogram, Query::kSequenceGradient};
    case config::Sequence::Start::kCounts:
      return {Query::kPairCounts, Query::kSequenceGradient};
  }
  return {Query::kSequenceGradient};
}

Result<std::shared_ptr<const ModelPlan>> PlanSequenceKind(const PlanParts& parts) {
  TACIT_ASSIGN(auto options, PlanSequence(parts.config, parts.index, *parts.items));
  return std::make_shared<SequencePlan>(parts, std::move(options));
}

}  // namespace

LearnerKind SequenceKind() {
  return {
      .kind = config::ModelKind::kSequence, .queries = SequenceQueries, .plan = PlanSequenceKind};
}

}  // namespace tacit::wiring
