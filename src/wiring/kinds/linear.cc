#include <fmt/format.h>

#include "base/text.h"
#include "mechanism/row_sums.h"
#include "serve/scoring/linear_scorer.h"
#include "train/linear/linear_columns.h"
#include "train/linear/linear_learner.h"
#include "train/linear/linear_part.h"
#include "train/linear/linear_part_summer.h"
#include "wiring/kinds/kinds.h"
#include "wiring/plans/model_form.h"
#include "wiring/plans/noise_plan.h"
#include "wiring/plans/opening_records.h"

namespace tacit::wiring {
namespace {

using model::linear::Columns;

// Bytes of a period beside its examples. Per thread and row of a column that is released whole:
// weight, move, sum, count, and two marks while a unit's sum is formed. Per distinct row of a
// period: a release taken apart. Per row of larger columns that a thread meets: its place, and all
// that the others have from the start; and of those that several threads meet, the merged sums. Per
// row of another process's sums: itself, its sum and its count.
constexpr double kWholeRowBytes = 32, kKnownRowBytes = 64, kLargeRowBytes = 136,
                 kMergedRowBytes = 48, kPartRowBytes = 24;

// A user's part in a period uses up some of an allowance, so that none is opened for users.
uint64_t OpeningOf(const config::Learner& learner, const train::LinearLearnerOptions& options) {
  if (learner.privacy.of_users()) return 0;
  const train::RateNoise noise = train::ClickRateNoise(options);
  const uint64_t first = config::FirstPeriod(learner);
  return OpeningRecords(first > 0 ? first : learner.participation.batch, noise.clicks,
                        noise.events);
}

class LinearPlan final : public ModelPlan {
 public:
  LinearPlan(const PlanParts& parts, train::LinearLearnerOptions options)
      : options_(std::move(options)),
        opening_records_(OpeningOf(parts.learner(), options_)),
        transform_(parts.transform) {}

  privacy::Charge charge() const override { return train::LinearPeriodCharge(options_); }
  Digest Fingerprint() const override {
    Sha256 hash;
    hash.Update("tacit linear learner 1 ");
    for (const RowSpace::Table& table : options_.columns->space().tables())
      hash.Update(fmt::format("{} {} ", table.first, table.rows));
    const model::linear::Bins& bins = options_.columns->bins();
    hash.Update(fmt::format("bins {} {} {}", bins.width, bins.lowest, bins.highest));
    for (const event::DenseFeature& number : transform_->schema().dense)
      hash.Update(fmt::format(" {} {}", number.name, static_cast<int>(number.transform)));
    for (const Columns::Cross& cross : options_.columns->crosses())
      hash.Update(fmt::format(" cross {} {}", cross.first, cross.second));
    return hash.Finish();
  }
  std::string Form() const override { return MakeForm().Encode(); }
  Result<store::GrownModel> Grow(const store::StoredModel& stored) const override {
    TACIT_ASSIGN(const ModelForm was, ModelForm::Decode(stored.form));
    const ModelForm is = MakeForm();
    const store::RowLayout rows = Rows();
    TACIT_ASSIGN(store::GrownModel grown, GrowTables({stored.rows, was}, {rows, is}));
    if (!stored.released) return grown;
    const RowSpace& space = stored.rows.space;
    TACIT_ASSIGN(auto state, model::linear::State::Decode(*stored.released, space.rows(),
                                                          space.tables().size()));
    std::vector<model::linear::Prior> priors(grown.tables.size());
    for (size_t j = 0; j < priors.size(); ++j)
      if (grown.tables[j].from) priors[j] = state.priors[*grown.tables[j].from];
    state.priors = std::move(priors);
    grown.released = std::make_shared<const std::string>(state.Encode(*options_.columns));
    return grown;
  }
  double NoiseInUnits() const override { return train::ClickRateNoise(options_).value_events; }
  bool SumsUp() const override { return true; }
  uint64_t OpeningRecords() const override { return opening_records_; }
  store::RowLayout Rows() const override { return train::LinearRowLayout(*options_.columns); }

  Result<std::optional<ProbabilityForm>> Probability(
      const store::Snapshot& snapshot) const override {
    using Column = ProbabilityForm::Column;
    const auto released = snapshot.Released(options_.index);
    if (released == nullptr) return Fail(serve::NotYetCommitted(options_.id));
    const Columns& columns = *options_.columns;
    TACIT_ASSIGN(const auto state, model::linear::State::Decode(*released, columns));
    ProbabilityForm form{.network = false,
                         .columns = {},
                         .numbers = transform_->schema().dense,
                         .bias = state.bias,
                         .bins = columns.bins()};
    for (size_t j = 0; j < columns.size(); ++j) {
      if (const Columns::Cross* cross = columns.CrossOf(j)) {
        form.columns.push_back({.kind = Column::Kind::kCross,
                                .first = cross->first,
                                .second = cross->second,
                                .second_rows = cross->second_rows});
      } else {
        form.columns.push_back({.kind = columns.IsNumber(j) ? Column::Kind::kBin
                                        : columns.IsSet(j)  ? Column::Kind::kSet
                                                            : Column::Kind::kValue});
      }
    }
    return form;
  }

  void AddTo(LearnerShape* shape) const override {
    const event::FeatureSchema& schema = transform_->schema();
    AddTables(Rows(), schema, shape);
    shape->input_width = static_cast<double>(schema.dense.size());
    for (const LearnerShape::Table& table : shape->tables) {
      const double distinct = std::min(table.rows, shape->batch * table.rows_per_example);
      const bool whole = table.rows <= static_cast<double>(options_.whole_column_most);
      const double met =
          std::min(shape->workers * table.rows, shape->batch * table.rows_per_example);
      shape->sums_bytes += whole ? shape->workers * table.rows * kWholeRowBytes
                                 : met * kLargeRowBytes + distinct * kMergedRowBytes;
      shape->part_bytes += distinct * kPartRowBytes;
      shape->other_bytes += distinct * kKnownRowBytes;
    }
    shape->other_bytes += shape->sums_bytes;
  }

  Result<std::unique_ptr<train::Learner>> Make(LearnerParts parts) const override {
    train::LinearLearnerOptions options = options_;
    options.opens = opening_records_ > 0;
    return std::make_unique<train::LinearLearner>(options, std::move(parts.noise), parts.rows,
                                                  parts.workers);
  }

  std::unique_ptr<train::PartSummer> MakeSummer(store::WorkingRows& rows,
                                                WorkerPool& workers) const override {
    return train::MakeLinearPartSummer(options_, rows, workers);
  }
  Result<uint64_t> EventsOfPart(std::string_view bytes) const override {
    return train::LinearPart::EventsOf(bytes, train::LinearQuery(options_), options_.bins);
  }

  std::shared_ptr<const serve::RowModel> Scores() const override {
    return serve::MakeLinearModel(options_.index, options_.id, transform_, options_.columns);
  }

  std::string SizeText() const override {
    const size_t crosses = options_.columns->crosses().size();
    return fmt::format("{} in {}{}", Counted(options_.columns->space().rows(), "weight"),
                       Counted(options_.columns->size(), "column"),
                       crosses > 0 ? fmt::format(", {} of them crossed", crosses) : "");
  }
  std::string RowsText() const override {
    return fmt::format(
        "once a period, those whose noised count has {} deviations of its noise, or "
        "{} in columns of more than {}",
        options_.update.known_deviations, options_.threshold_deviations,
        Counted(options_.whole_column_most, "value"));
  }
  std::string_view ReleaseKeys() const override { return "features"; }

 private:
  ModelForm MakeForm() const {
    const model::linear::Bins& bins = options_.columns->bins();
    ModelForm form{.numbers = transform_->schema().dense,
                   .crosses = {},
                   .fixed = fmt::format("numbers in {} bins of {} from {}", bins.values() - 1,
                                        bins.width, bins.lowest)};
    for (size_t j = options_.columns->categories() + options_.columns->numbers();
         j < options_.columns->size(); ++j)
      form.crosses.push_back(options_.columns->space().tables()[j].name);
    return form;
  }

  const train::LinearLearnerOptions options_;
  const uint64_t opening_records_;
  const std::shared_ptr<const event::FeatureTransform> transform_;
};

std::vector<privacy::Query> LinearQueries(const config::Learner&, std::span<const MechanismMaker>) {
  return {privacy::Query::kPeriodSums};
}

// Checks that the rows of any period can be numbered, with any records.
Status CheckReleaseRows(const config::Learner& learner, const train::LinearLearnerOptions& options,
                        const event::FeatureSchema& schema) {
  LearnerShape shape;
  AddTables(train::LinearRowLayout(*options.columns), schema, &shape);
  const auto batch = static_cast<double>(learner.participation.batch);
  double rows = 0;
  for (const LearnerShape::Table& table : shape.tables)
    rows += table.rows <= static_cast<double>(options.whole_column_most)
                ? table.rows
                : std::min(table.rows, batch * table.rows_per_example);
  if (rows < static_cast<double>(mechanism::kReleaseRowsMost)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("learner '{}': a period may release {:.3g} rows, and {} are the most: "
                          "lower participation.batch, mechanism.whole_columns or buckets",
                          learner.id, rows, mechanism::kReleaseRowsMost - 1));
}

Result<std::shared_ptr<const ModelPlan>> PlanLinear(const PlanParts& parts) {
  const config::Learner& learner = parts.learner();
  const event::FeatureSchema& schema = parts.transform->schema();
  auto crosses = train::LinearCrosses(schema, learner.model.crosses);
  if (!crosses)
    return Fail(std::move(crosses.error()).Context(fmt::format("learner '{}'", learner.id)));
  train::LinearLearnerOptions options{
      .id = learner.id,
      .index = parts.learner_index(),
      .columns = std::make_shared<const Columns>(train::LinearColumns(schema, std::move(*crosses))),
      .update = {},
      .noise_multiplier = 0,
      .whole_column_most = learner.mechanism.whole_columns,
      .threshold_deviations = learner.mechanism.deviations,
      .bins = learner.quality.bins,
      .weighs = parts.config.source.weighs()};
  if (learner.mechanism.traits().adds_noise) {
    TACIT_ASSIGN(options.noise_multiplier, StepNoise(learner, parts.exposure, {}, parts.laws));
  }
  TACIT_RETURN_IF_ERROR(train::CheckLinear(options));
  TACIT_RETURN_IF_ERROR(CheckReleaseRows(learner, options, schema));
  return std::make_shared<LinearPlan>(parts, std::move(options));
}

}  // namespace

LearnerKind LinearKind() {
  return {.kind = config::ModelKind::kLinear, .queries = LinearQueries, .plan = PlanLinear};
}

}  // namespace tacit::wiring
