#include "wiring/kinds/click.h"

#include <fmt/format.h>

#include "base/text.h"
#include "serve/click_scorer.h"
#include "wiring/assembly.h"
#include "wiring/kinds/kinds.h"
#include "wiring/mechanism_factory.h"

namespace tacit::wiring {
namespace {

// The optimiser's state is stored after every row and after the dense parameters, so a change of
// its layout, or of what its numbers mean, would make stored state unreadable.
Digest StoredFingerprint(const train::ClickOptions& options) {
  const Digest model_fingerprint = ShapeModel(options.model).model.Fingerprint();
  return Sha256()
      .Update("tacit learner 2")
      .Update(model_fingerprint)
      .Update(fmt::format("{} seed={}", train::FingerprintText(options.optimizer, /*of_rows=*/true),
                          options.seed))
      .Finish();
}

train::ClickOptions ClickOptionsFrom(const PlanParts& parts) {
  const config::Learner& learner = parts.learner();
  const event::FeatureTransform& transform = *parts.transform;
  return {.id = learner.id,
          .index = parts.learner_index(),
          .model = {.space = learner.model.categorical ? transform.row_space() : RowSpace(),
                    .dense_width = static_cast<uint32_t>(transform.schema().dense.size()),
                    .hidden = learner.model.hidden,
                    .precision = learner.model.compute == "bf16" ? ops::Precision::kBf16
                                                                 : ops::Precision::kF32},
          .seed = learner.model.seed,
          .optimizer = MakeOptimizer(learner.optimizer)};
}

class ClickPlan final : public ModelPlan {
 public:
  ClickPlan(const PlanParts& parts, train::ClickOptions options,
            const mechanism::Mechanism& mechanism)
      : options_(std::move(options)),
        transform_(parts.transform),
        mechanisms_(parts.mechanisms),
        charge_(mechanism.charge()),
        opening_charge_(mechanism.opening_charge()),
        untouched_(mechanism.ExpectedExtraRows()),
        why_not_on_gpu_(mechanism.recipe() ? ""
                                           : "its mechanism has no form for a GPU: an exponential "
                                             "selection, an adaptive clip, or none at all") {
    config_.source = parts.config.source;
    config_.features = parts.config.features;
    config_.learners = {parts.learner()};
  }

  const train::ClickOptions& options() const { return options_; }

  privacy::Charge charge() const override { return charge_; }
  std::optional<privacy::Charge> opening_charge() const override { return opening_charge_; }
  Digest Fingerprint() const override { return StoredFingerprint(options_); }
  store::RowLayout Rows() const override {
    return train::MakeRowLayout(options_, ShapeModel(options_.model).model);
  }
  double UntouchedRows() const override { return untouched_; }

  // model/dense_net.h: a layer's weights, input-major, then its biases.
  std::vector<DenseTensor> DenseTensors() const override {
    uint64_t in = options_.model.dense_width;
    for (const RowSpace::Table& table : options_.model.space.tables()) in += table.dim;
    std::vector<uint64_t> widths(options_.model.hidden.begin(), options_.model.hidden.end());
    widths.push_back(1);
    std::vector<DenseTensor> tensors;
    for (size_t i = 0; i < widths.size(); ++i) {
      tensors.push_back({fmt::format("layers.{}.weight", i), {in, widths[i]}});
      tensors.push_back({fmt::format("layers.{}.bias", i), {widths[i]}});
      in = widths[i];
    }
    return tensors;
  }

  void AddTo(LearnerShape* shape) const override {
    SetDense(ShapeModel(options_.model).model.dense_size(), options_.optimizer, shape);
    AddTables(Rows(), transform_->schema(), shape);
    shape->input_width = options_.model.dense_width;
    for (const RowSpace::Table& table : options_.model.space.tables())
      shape->input_width += table.dim;
    shape->width_total = shape->input_width + 1;
    for (const uint32_t width : options_.model.hidden) shape->width_total += width;

    const config::Mechanism& mechanism = config_.learners[0].mechanism;
    shape->every_row = mechanism.traits().every_row;
    if (mechanism.has_vocabulary())
      shape->chosen_rows += static_cast<double>(mechanism.vocabulary.keep);
    if (mechanism.traits().keys.has("rows"))
      shape->chosen_rows += static_cast<double>(mechanism.rows);
    if (mechanism.observes_periods())
      shape->observed_rows = static_cast<double>(options_.model.space.rows());
  }

  Result<std::unique_ptr<train::Learner>> Make(LearnerParts parts) const override {
    TACIT_ASSIGN(auto mechanism, MakeMechanism(config_, 0, options_.model.space, mechanisms_));
    if (parts.gpu == nullptr)
      return std::make_unique<train::ClickLearner>(options_, std::move(mechanism),
                                                   std::move(parts.noise), parts.backend,
                                                   parts.rows, parts.dense);
    const store::DenseState dense =
        parts.dense != nullptr
            ? *parts.dense
            : train::InitialDense(options_, model::Pctr(options_.model, parts.backend));
    TACIT_ASSIGN(auto engine,
                 parts.gpu->MakeClickEngine({options_.model, options_.optimizer}, *mechanism,
                                            *parts.noise, parts.rows, dense));
    return std::make_unique<train::ClickLearner>(options_, std::move(mechanism),
                                                 std::move(parts.noise), std::move(engine));
  }
  std::string WhyNotOnGpu() const override { return why_not_on_gpu_; }

  std::shared_ptr<const serve::RowModel> Scores() const override {
    return serve::MakeClickModel(options_.index, options_.id, transform_, options_.model);
  }

  std::string SizeText() const override {
    const RowSpace& space = options_.model.space;
    return fmt::format("{} in {}", Counted(space.rows(), "row"),
                       Counted(space.tables().size(), "table"));
  }
  std::string RowsText() const override {
    return wiring::RowsText(charge_.mechanism,
                            {.space = options_.model.space.rows(), .untouched = untouched_},
                            mechanisms_);
  }
  std::string_view ReleaseKeys() const override {
    return "mechanism.kind, clipping, vocabulary.source and vocabulary.query";
  }

 private:
  const train::ClickOptions options_;
  const std::shared_ptr<const event::FeatureTransform> transform_;
  const std::span<const MechanismMaker> mechanisms_;
  const privacy::Charge charge_;
  const std::optional<privacy::Charge> opening_charge_;
  const double untouched_;
  const std::string why_not_on_gpu_;
  config::Config config_;  // of this learner alone: what its mechanism is made from
};

std::vector<privacy::Query> ClickQueries(const config::Learner& learner,
                                         std::span<const MechanismMaker> mechanisms) {
  using privacy::Query;
  const config::Mechanism& mechanism = learner.mechanism;
  std::vector<Query> queries = {Query::kGradient};
  if (const auto asks = RowOf(mechanisms, mechanism.kind).asks) queries.push_back(*asks);
  if (mechanism.clipping == config::Mechanism::Clipping::kQuantile)
    queries.push_back(Query::kClipQuantile);
  if (mechanism.observes_periods())
    queries.push_back(mechanism.vocabulary.query == config::Vocabulary::Query::kGumbel
                          ? Query::kTopRows
                          : Query::kRowHistogram);
  return queries;
}

Result<std::shared_ptr<const ModelPlan>> PlanClicks(const PlanParts& parts) {
  train::ClickOptions options = ClickOptionsFrom(parts);
  TACIT_ASSIGN(const auto mechanism,
               MakeMechanism(parts.config, parts.index, options.model.space, parts.mechanisms));
  return std::make_shared<ClickPlan>(parts, std::move(options), *mechanism);
}

}  // namespace

LearnerKind ClickKind() {
  return {.kind = config::ModelKind::kPctr, .queries = ClickQueries, .plan = PlanClicks};
}

const train::ClickOptions* ClickOptionsOf(const LearnerPlan& plan) {
  const auto* const clicks = dynamic_cast<const ClickPlan*>(plan.model.get());
  return clicks == nullptr ? nullptr : &clicks->options();
}

}  // namespace tacit::wiring
