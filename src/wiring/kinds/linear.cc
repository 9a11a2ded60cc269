#include <fmt/format.h>

#include "base/text.h"
#include "serve/linear_scorer.h"
#include "train/linear_learner.h"
#include "wiring/kinds/kinds.h"
#include "wiring/noise_plan.h"

namespace tacit::wiring {
namespace {

using model::linear::Columns;

// Bytes of a period beside its examples: per value its row and place; per distinct row its weight,
// move, sum and count, and the sums' noised form, as it is released and taken apart.
constexpr double kValueBytes = 12, kSummedRowBytes = 96;

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
    return hash.Finish();
  }
  store::RowLayout Rows() const override { return train::LinearRowLayout(*options_.columns); }

  void AddTo(LearnerShape* shape) const override {
    const event::FeatureSchema& schema = transform_->schema();
    AddTables(Rows(), schema, shape);
    shape->input_width = static_cast<double>(schema.dense.size());
    double values = 0, rows = 0;
    for (const LearnerShape::Table& table : shape->tables) {
      values += table.rows_per_example;
      rows += std::min(table.rows, shape->batch * table.rows_per_example);
    }
    shape->other_bytes = shape->batch * values * kValueBytes + rows * kSummedRowBytes;
  }

  Result<std::unique_ptr<train::Learner>> Make(LearnerParts parts) const override {
    return std::make_unique<train::LinearLearner>(options_, std::move(parts.noise), parts.rows,
                                                  parts.workers);
  }

  std::shared_ptr<const serve::RowModel> Scores() const override {
    return serve::MakeLinearModel(options_.index, options_.id, transform_, options_.columns);
  }

  std::string SizeText() const override {
    return fmt::format("{} in {}", Counted(options_.columns->space().rows(), "weight"),
                       Counted(options_.columns->size(), "column"));
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
  train::LinearLearnerOptions options{
      .id = learner.id,
      .index = parts.learner_index(),
      .columns = std::make_shared<const Columns>(train::LinearColumns(parts.transform->schema())),
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
