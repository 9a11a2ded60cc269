#include "wiring/kinds/click.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "serve/scoring/click_scorer.h"
#include "wiring/assembly.h"
#include "wiring/kinds/kinds.h"
#include "wiring/plans/mechanism_factory.h"
#include "wiring/plans/model_form.h"

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

std::string WhyNoGpu(const mechanism::Mechanism& mechanism, const train::ClickOptions& options) {
  if (options.sum_map) return "mechanism.carriers have no form for a GPU";
  if (options.bf16_rows) return "model.row_precision bf16 has no form for a GPU";
  if (mechanism.recipe()) return "";
  return "its mechanism has no form for a GPU: an exponential selection, an adaptive clip, or "
         "noise on representations";
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
                                                                 : ops::Precision::kF32,
                    .input_clip = learner.mechanism.traits().noises_representations
                                      ? learner.mechanism.representation_clip
                                      : 0},
          .seed = learner.model.seed,
          .optimizer = MakeOptimizer(learner.optimizer),
          .sum_map = MakeSumMap(learner.mechanism),
          .bf16_rows = learner.model.row_precision == "bf16"};
}

class ClickPlan final : public ModelPlan {
 public:
  ClickPlan(const PlanParts& parts, train::ClickOptions options,
            const mechanism::Mechanism& mechanism, const FoundNoise& noise)
      : options_(std::move(options)),
        transform_(parts.transform),
        mechanisms_(parts.mechanisms),
        noise_(noise),
        charge_(mechanism.charge()),
        opening_charge_(mechanism.opening_charge()),
        untouched_(mechanism.ExpectedExtraRows()),
        writes_every_row_(mechanism.recipe() &&
                          mechanism.recipe()->rows == mechanism::Recipe::Rows::kEvery),
        why_not_on_gpu_(parts.config.source.weighs() ? "its records have weights"
                                                     : WhyNoGpu(mechanism, options_)) {
    config_.source = parts.config.source;
    config_.features = parts.config.features;
    config_.learners = {parts.learner()};
    config_.gpu = parts.config.gpu;
  }

  const train::ClickOptions& options() const { return options_; }

  privacy::Charge charge() const override { return charge_; }
  std::optional<privacy::Charge> opening_charge() const override { return opening_charge_; }
  Digest Fingerprint() const override { return StoredFingerprint(options_); }
  store::RowLayout Rows() const override {
    return train::MakeRowLayout(options_, ShapeModel(options_.model).model);
  }
  std::string Form() const override { return MakeForm().Encode(); }
  Result<store::GrownModel> Grow(const store::StoredModel& stored) const override {
    TACIT_ASSIGN(const ModelForm was, ModelForm::Decode(stored.form));
    const ModelForm is = MakeForm();
    const store::RowLayout rows = Rows();
    TACIT_ASSIGN(store::GrownModel grown,
                 GrowTables({stored.rows, was}, {rows, is, [this](uint32_t before, uint32_t now) {
                                                   return MoverOfRows(before, now);
                                                 }}));
    if (options_.model.input_clip > 0 &&
        std::ranges::any_of(grown.tables, [](const auto& table) { return bool{table.rewrite}; }))
      grown.lost.push_back(
          "the clip of what the network is shown weighs longer rows otherwise: it predicts "
          "otherwise");
    if (stored.released && config_.learners[0].mechanism.has_vocabulary())
      return Fail(ErrorCode::kRefused,
                  "the rows that its mechanism has chosen are those of the tables as they were; "
                  "train it under another id");
    grown.released = stored.released;
    if (!stored.dense) return grown;
    const auto inputs = InputsOf(stored, was, &grown);
    TACIT_ASSIGN(auto dense, train::GrownDense(options_, ShapeModel(options_.model).model,
                                               *stored.dense, inputs));
    grown.dense = std::make_shared<const store::DenseState>(std::move(dense));
    return grown;
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

  Result<std::optional<ProbabilityForm>> Probability(const store::Snapshot&) const override {
    using Column = ProbabilityForm::Column;
    ProbabilityForm form{.network = true,
                         .columns = {},
                         .numbers = transform_->schema().dense,
                         .input_clip = options_.model.input_clip,
                         .rounds = options_.model.precision == ops::Precision::kBf16};
    if (!options_.model.space.tables().empty())
      for (const event::CategoricalFeature& feature : transform_->schema().categorical)
        form.columns.push_back(
            {.kind = feature.multi_hot ? Column::Kind::kSet : Column::Kind::kValue});
    return form;
  }

  void AddTo(LearnerShape* shape) const override {
    SetDense(ShapeModel(options_.model).model.dense_size(), options_.optimizer, shape);
    AddTables(Rows(), transform_->schema(), shape);
    shape->has_examples = true;
    shape->dense_width = shape->input_width = options_.model.dense_width;
    for (const RowSpace::Table& table : options_.model.space.tables())
      shape->input_width += table.dim;
    shape->width_total = shape->input_width + 1;
    for (const uint32_t width : options_.model.hidden) shape->width_total += width;

    const config::Mechanism& mechanism = config_.learners[0].mechanism;
    if (options_.sum_map) {
      // The initial parameters, a layer's way from them, and the update; an example's factors.
      const double layers = static_cast<double>(options_.model.hidden.size()) + 1;
      shape->other_bytes += 4 * (3 * shape->dense_parameters +
                                 shape->batch * layers * (3.0 * options_.sum_map.rank + 1));
    }
    shape->every_row = mechanism.traits().every_row;
    if (mechanism.has_vocabulary())
      shape->chosen_rows += shape->vocabulary_rows = static_cast<double>(mechanism.vocabulary.keep);
    if (mechanism.traits().keys.has("rows"))
      shape->chosen_rows += static_cast<double>(mechanism.rows);
    if (mechanism.observes_periods())
      shape->observed_rows = static_cast<double>(options_.model.space.rows());
  }

  Result<std::unique_ptr<train::Learner>> Make(LearnerParts parts) const override {
    FoundNoise noise = noise_;
    TACIT_ASSIGN(auto mechanism, MakeMechanism({.config = config_, .mechanisms = mechanisms_},
                                               options_.model.space, &noise));
    TACIT_CHECK(mechanism->charge() == charge_, "the mechanism costs what was planned");
    if (parts.gpu == nullptr)
      return std::make_unique<train::ClickLearner>(options_, std::move(mechanism),
                                                   std::move(parts.noise), parts.backend(),
                                                   parts.rows, parts.dense, parts.steps_taken);
    const store::DenseState dense =
        parts.dense != nullptr
            ? *parts.dense
            : train::InitialDense(options_, model::Pctr(options_.model, parts.backend()));
    TACIT_ASSIGN(auto engine, parts.gpu->MakeClickEngine(EngineOnGpu(parts.steps_taken), *mechanism,
                                                         *parts.noise, parts.rows, dense));
    return std::make_unique<train::ClickLearner>(options_, std::move(mechanism),
                                                 std::move(parts.noise), std::move(engine));
  }
  std::string WhyNotOnGpu() const override { return why_not_on_gpu_; }
  Result<GpuStart> StartOnGpu(train::Gpu& gpu, uint64_t free) const override {
    TACIT_ASSIGN(const train::GpuNeed need,
                 gpu.ClickEngineNeed(EngineOnGpu(0), writes_every_row_, free));
    return GpuStart{.need = need,
                    .fewer_rows = need.caches ? "lower gpu.cache_bytes"
                                  : writes_every_row_
                                      ? "lower buckets or dim of schema.features, or take a "
                                        "mechanism that does not write every row"
                                      : "set gpu.rows to cache",
                    .less_rest = "lower model.hidden or participation.batch"};
  }

  std::shared_ptr<const serve::RowModel> Scores() const override {
    return serve::MakeClickModel(options_.index, options_.id, transform_, options_.model);
  }
  std::optional<train::GpuScoreOptions> GpuScoring() const override {
    const config::Gpu& gpu = config_.gpu;
    if (gpu.use == config::Gpu::Use::kNever || gpu.serve_rows == 0) return std::nullopt;
    if (options_.model.input_clip > 0) return std::nullopt;  // a GPU has no form for that
    return train::GpuScoreOptions{.model = options_.model, .cache_bytes = gpu.serve_cache_bytes};
  }
  std::shared_ptr<const serve::RowModel> ScoresOn(
      std::shared_ptr<serve::ScoringDevice> device) const override {
    return serve::MakeClickModelOn(std::move(device), options_.index, options_.id, transform_,
                                   options_.model);
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
  train::ClickEngineOptions EngineOnGpu(uint64_t steps_taken) const {
    const config::Learner& learner = config_.learners[0];
    LearnerShape shape;
    AddTo(&shape);
    train::ClickEngineOptions options = options_.Engine(steps_taken);
    options.planned =
        GpuStepOf(shape, LargestStepOf(learner.participation, learner.privacy.of_users()),
                  untouched_, options_.model.space.rows());
    return options;
  }
  store::RewriteRow MoverOfRows(uint32_t before, uint32_t now) const {
    return [optimizer = std::make_shared<const train::Optimizer>(options_.optimizer), before, now](
               std::span<const float> was, std::span<float> is) {
      optimizer->MoveRow(was, before, is, now);
    };
  }

  ModelForm MakeForm() const {
    return {.numbers = transform_->schema().dense,
            .crosses = {},
            .fixed = fmt::format("hidden layers [{}], compute {}, seed {}, {}",
                                 fmt::join(options_.model.hidden, ", "),
                                 options_.model.precision == ops::Precision::kBf16 ? "bf16" : "f32",
                                 options_.seed,
                                 train::FingerprintText(options_.optimizer, /*of_rows=*/true))};
  }

  // The inputs of the first layer by what they were: the embeddings of all tables, then numbers.
  std::vector<size_t> InputsOf(const store::StoredModel& stored, const ModelForm& was,
                               store::GrownModel* grown) const {
    std::vector<size_t> first;  // input of each stored table's embedding
    size_t numbers_before = 0;
    for (const RowSpace::Table& table : stored.rows.space.tables()) {
      first.push_back(numbers_before);
      numbers_before += table.dim;
    }
    std::vector<size_t> inputs;
    const auto tables = options_.model.space.tables();
    for (size_t t = 0; t < tables.size(); ++t) {
      const auto from = grown->tables[t].from;
      const size_t known = from ? stored.rows.space.tables()[*from].dim : 0;
      const bool drawn = from && stored.rows.initial_scale[*from] > 0;
      for (size_t i = 0; i < tables[t].dim; ++i)
        inputs.push_back(i < known ? first[*from] + i
                         : drawn   ? train::kNewWithoutWeight
                                   : train::Optimizer::kNew);
    }
    for (const event::DenseFeature& number : transform_->schema().dense) {
      const auto before = std::ranges::find(was.numbers, number.name, &event::DenseFeature::name);
      const bool known = before != was.numbers.end();
      const bool same = known && before->transform == number.transform;
      inputs.push_back(same ? numbers_before + static_cast<size_t>(before - was.numbers.begin())
                            : train::kNewWithoutWeight);
      if (!known)
        grown->gained.push_back(
            fmt::format("number '{}' is new and has no weight yet", number.name));
      if (known && !same)
        grown->lost.push_back(
            fmt::format("number '{}' begins anew: another function is taken of it", number.name));
    }
    for (const event::DenseFeature& number : was.numbers)
      if (std::ranges::find(transform_->schema().dense, number.name, &event::DenseFeature::name) ==
          transform_->schema().dense.end())
        grown->lost.push_back(
            fmt::format("number '{}' is gone, with what was learnt of it", number.name));
    return inputs;
  }

  const train::ClickOptions options_;
  const std::shared_ptr<const event::FeatureTransform> transform_;
  const std::span<const MechanismMaker> mechanisms_;
  const FoundNoise noise_;
  const privacy::Charge charge_;
  const std::optional<privacy::Charge> opening_charge_;
  const double untouched_;
  const bool writes_every_row_;
  const std::string why_not_on_gpu_;
  config::Config config_;  // of this learner alone: what its mechanism is made from, and gpu
};

std::vector<privacy::Query> ClickQueries(const config::Learner& learner,
                                         std::span<const MechanismMaker> mechanisms) {
  using privacy::Query;
  const config::Mechanism& mechanism = learner.mechanism;
  if (mechanism.traits().noises_representations) return {Query::kRepresentation};
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
  FoundNoise noise;
  TACIT_ASSIGN(const auto mechanism, MakeMechanism(parts, options.model.space, &noise));
  return std::make_shared<ClickPlan>(parts, std::move(options), *mechanism, noise);
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
