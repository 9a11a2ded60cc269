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

class SequencePlan final : public ModelPlan {
 public:
  SequencePlan(const PlanParts& parts, train::SequenceLearnerOptions options)
      : options_(std::move(options)), items_(parts.items) {}

  privacy::Charge charge() const override { return train::ChargeOf(options_); }
  Digest Fingerprint() const override { return FingerprintOf(options_, *items_); }
  store::RowLayout Rows() const override { return train::MakeRowLayout(options_.training); }

  void AddTo(LearnerShape* shape) const override {
    const train::SequenceTrainingOptions& training = options_.training;
    SetDense(model::SequenceLayout(training.model).size(), training.optimizer, shape);
    shape->input_width = kItemInputs;
    shape->other_bytes = SequenceBytes(shape->dense_parameters, shape->workers) +
                         HistoryBytes(*shape, options_.histories.items_most);
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
    serve::SequenceNoise noise;
    if (training.model.re_attention.kappa > 0) {
      // As in training, where every item may be in every history.
      const double stddev = train::UpdateStddev(training.privacy, training.expected_batch);
      noise.weight_variance = static_cast<float>(stddev * stddev);
      noise.item_variance.assign(training.model.catalogue, noise.weight_variance);
    }
    return serve::MakeSequenceItems(options_.index, training.model, std::move(noise));
  }

  std::string SizeText() const override { return Counted(items_->items(), "item"); }
  std::string RowsText() const override {
    return "all of the model's numbers are moved in every step";
  }
  std::string_view ReleaseKeys() const override { return "mechanism.kind and clipping"; }

 private:
  const train::SequenceLearnerOptions options_;
  const std::shared_ptr<const event::ItemCatalogue> items_;
};

std::vector<privacy::Query> SequenceQueries(const config::Mechanism&,
                                            std::span<const MechanismMaker>) {
  return {privacy::Query::kSequenceGradient};
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
