#include <fmt/format.h>

#include "base/text.h"
#include "serve/linear_scorer.h"
#include "train/linear_learner.h"
#include "wiring/kinds/kinds.h"
#include "wiring/noise_plan.h"

namespace tacit::wiring {
namespace {

using model::linear::Columns;

// Bytes of a period beside its examples. Per row of a column that is released whole: weight, move,
// sum, count, and two marks while a user's sum is formed. Per distinct row of a period: a release
// taken apart; in larger columns also the row's place, and all that the others have from the start.
constexpr double kWholeRowBytes = 32, kKnownRowBytes = 64, kLargeRowBytes = 136;

class LinearPlan final : public ModelPlan {
 public:
  LinearPlan(const PlanParts& parts, train::LinearLearnerOptions options)
      : options_(std::move(options)), transform_(parts.transform) {}

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
  bool SumsUp() const override { return true; }
  store::RowLayout Rows() const override { return train::LinearRowLayout(*options_.columns); }

  void AddTo(LearnerShape* shape) const override {
    const event::FeatureSchema& schema = transform_->schema();
    AddTables(Rows(), schema, shape);
    shape->input_width = static_cast<double>(schema.dense.size());
    for (const LearnerShape::Table& table : shape->tables) {
      const double distinct = std::min(table.rows, shape->batch * table.rows_per_example);
      const bool whole = table.rows <= static_cast<double>(options_.whole_column_most);
      shape->other_bytes += whole ? table.rows * kWholeRowBytes : distinct * kLargeRowBytes;
      shape->other_bytes += distinct * kKnownRowBytes;
    }
  }

  Result<std::unique_ptr<train::Learner>> Make(LearnerParts parts) const override {
    return std::make_unique<train::LinearLearner>(options_, std::move(parts.noise), parts.rows);
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
  const train::LinearLearnerOptions options_;
  const std::shared_ptr<const event::FeatureTransform> transform_;
};

std::vector<privacy::Query> LinearQueries(const config::Learner&, std::span<const MechanismMaker>) {
  return {privacy::Query::kPeriodSums};
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
      .threshold_deviations = learner.mechanism.deviations};
  if (learner.mechanism.traits().adds_noise) {
    TACIT_ASSIGN(options.noise_multiplier, StepNoise(learner, parts.config.source));
  }
  TACIT_RETURN_IF_ERROR(train::CheckLinear(options));
  return std::make_shared<LinearPlan>(parts, std::move(options));
}

}  // namespace

LearnerKind LinearKind() {
  return {.kind = config::ModelKind::kLinear, .queries = LinearQueries, .plan = PlanLinear};
}

}  // namespace tacit::wiring
