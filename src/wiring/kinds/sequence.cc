#include "base/text.h"
#include "model/sequence/layout.h"
#include "wiring/kinds/kinds.h"
#include "wiring/plans/next_item_plan.h"

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

double SumMapBytes(const train::SequenceTrainingOptions& training) {
  if (!training.sum_map) return 0;
  const model::SequenceLayout layout(training.model);
  return sizeof(float) * static_cast<double>(model::NumbersKept(layout.Matrices(), layout.size()));
}

// Bytes of a start: the release, and its logits, in the learner, in the served state and in the
// next one. Counts keep their state twice beside a table of all pairs, or, where that has no room,
// beside a scorer and its cells.
double StartBytes(const train::SequenceStartOptions& start, uint32_t items, double workers) {
  constexpr double kStates = 3, kListedCellBytes = 3 * 8;
  const double logits = sizeof(float) * static_cast<double>(items);
  switch (start.kind) {
    case train::SequenceStartOptions::Kind::kNone:
      return 0;
    case train::SequenceStartOptions::Kind::kPopularity:
      return kStates * 3 * logits;
    case train::SequenceStartOptions::Kind::kCounts:
      return (start.counts.IsDense(items)
                  ? kStates * logits * static_cast<double>(items)
                  : SparseScorerBytes(items) +
                        kStates * kListedCellBytes *
                            static_cast<double>(start.counts.CellsMost(items))) +
             TransitionsBytes(start.counts, items, workers);
  }
  return 0;
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
                                .noise = train::NoiseOf(training, held->start->ItemShares())};
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
  std::string Form() const override { return ItemsForm(*items_); }
  Result<store::GrownModel> Grow(const store::StoredModel& stored) const override {
    TACIT_ASSIGN(const auto before, FindModelBefore(stored, options_, *items_));
    const uint32_t items = before.catalogue.items();
    store::GrownModel grown = WithItems(before.catalogue, *items_);
    if (stored.dense) {
      TACIT_ASSIGN(auto dense,
                   train::GrownDense(options_.training, items, *stored.dense, before.places()));
      grown.dense = std::make_shared<const store::DenseState>(std::move(dense));
    }
    if (stored.released) {
      WorkerPool workers({.workers = 1});
      TACIT_ASSIGN(auto start,
                   train::GrownStart(*stored.released, before.options.start, items, options_.start,
                                     items_->items(), workers, before.places()));
      grown.released = std::make_shared<const std::string>(std::move(start));
    }
    return grown;
  }
  store::RowLayout Rows() const override { return train::MakeRowLayout(options_.training); }

  // model/sequence/layout.h: tables of items and positions have a row each; a layer's weights are
  // input-major, with its biases as the last row; a norm has its gains, then its biases.
  std::vector<DenseTensor> DenseTensors() const override {
    const model::SequenceLayout layout(options_.training.model);
    std::vector<DenseTensor> tensors;
    for (const model::ParameterGroup& group : layout.groups())
      tensors.push_back({.name = group.name,
                         .shape = {group.rows, group.size / group.rows},
                         .of_items = group.name == "items" || group.name == "output"});
    return tensors;
  }

  void AddTo(LearnerShape* shape) const override {
    const train::SequenceTrainingOptions& training = options_.training;
    SetDense(model::SequenceLayout(training.model).size(), training.optimizer, shape);
    shape->input_width = kItemInputs;
    shape->other_bytes = SequenceBytes(shape->dense_parameters, shape->workers) +
                         SumMapBytes(training) +
                         HistoryBytes(*shape, options_.histories.items_most) +
                         train::NextItemExam::Bytes(training.model.catalogue) +
                         StartBytes(options_.start, training.model.catalogue, shape->workers);
    shape->gpu_wave_bytes = static_cast<double>(train::GpuWavesHostBytes(
        train::LargestGpuWave(training.model, train::PlannedStep(options_).units)));
  }

  Result<std::unique_ptr<train::Learner>> Make(LearnerParts parts) const override {
    train::SequenceLearnerOptions options = options_;
    options.histories.user_key = parts.user_key;
    options.histories.clock = parts.clock;
    auto learner = std::make_unique<train::SequenceLearner>(
        std::move(options), std::move(parts.histories), std::move(parts.noise), parts.backend(),
        parts.dense, parts.steps_taken);
    if (parts.gpu != nullptr) TACIT_RETURN_IF_ERROR(learner->UseGpu(*parts.gpu));
    return learner;
  }
  std::string WhyNotOnGpu() const override {
    const train::SequenceTrainingOptions& training = options_.training;
    return train::WhyNotOnEngine({.model = training.model,
                                  .prior_has_no_table = train::HasNoTable(options_.start),
                                  .maps_sums = bool{training.sum_map},
                                  .optimizer = training.optimizer,
                                  .is_private = training.privacy.on});
  }

  Result<GpuStart> StartOnGpu(train::Gpu& gpu, uint64_t) const override {
    return GpuStart{
        .need = gpu.SequenceEngineNeed({.model = options_.training.model,
                                        .optimizer = options_.training.optimizer,
                                        .planned = train::PlannedStep(options_)}),
        .less_rest = "lower model.width or participation.batch, or take a smaller catalogue"};
  }

  std::shared_ptr<const serve::ItemModel> Recommends() const override {
    const train::SequenceTrainingOptions& training = options_.training;
    serve::ReadStart read;
    if (opening_charge()) read = ReadStartOf(options_);
    return serve::MakeSequenceItems(options_.index, training.model, train::NoiseOf(training, {}),
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
  TACIT_ASSIGN(auto options, PlanSequence(parts));
  return std::make_shared<SequencePlan>(parts, std::move(options));
}

}  // namespace

LearnerKind SequenceKind() {
  return {
      .kind = config::ModelKind::kSequence, .queries = SequenceQueries, .plan = PlanSequenceKind};
}

}  // namespace tacit::wiring
