#include "base/text.h"
#include "model/ranking/candidates.h"
#include "wiring/kinds/kinds.h"
#include "wiring/next_item_plan.h"

namespace tacit::wiring {
namespace {

class TransitionsPlan final : public ModelPlan {
 public:
  TransitionsPlan(const PlanParts& parts, train::TransitionsLearnerOptions options)
      : options_(std::move(options)), items_(parts.items) {}

  privacy::Charge charge() const override {
    return train::TransitionsPeriodCharge(options_.noise_multiplier);
  }
  Digest Fingerprint() const override { return FingerprintOf(options_, *items_); }

  void AddTo(LearnerShape* shape) const override {
    shape->input_width = kItemInputs;
    shape->other_bytes =
        TransitionsBytes(options_.model, options_.catalogue->items(), shape->workers) +
        HistoryBytes(*shape, options_.histories.items_most) +
        train::NextItemExam::Bytes(options_.catalogue->items());
  }

  Result<std::unique_ptr<train::Learner>> Make(LearnerParts parts) const override {
    train::TransitionsLearnerOptions options = options_;
    options.histories.user_key = parts.user_key;
    options.histories.clock = parts.clock;
    return std::make_unique<train::TransitionsLearner>(
        std::move(options), std::move(parts.histories), std::move(parts.noise), parts.workers);
  }

  std::shared_ptr<const serve::ItemModel> Recommends() const override {
    return serve::MakeTransitionsItems(options_.index, options_.catalogue, options_.model);
  }

  std::string SizeText() const override { return Counted(items_->items(), "item"); }
  std::string RowsText() const override { return "each period's noised counts are released once"; }
  std::string_view ReleaseKeys() const override { return "model and catalogue"; }

 private:
  const train::TransitionsLearnerOptions options_;
  const std::shared_ptr<const event::ItemCatalogue> items_;
};

// Bytes of a ranker beside its counts: two tables of all pairs, in the learner, in the served state
// and in the next one, and the questions to a period's users, at most one for each record.
double RankerBytes(const train::RankerOptions& ranker, double items, double batch) {
  constexpr double kTables = 2 * 3;
  return kTables * sizeof(float) * items * items +
         batch * static_cast<double>(ranker.candidates * model::ranking::kFeatures);
}

// Counts whose likeliest items a small private model puts in order.
class RankedPlan final : public ModelPlan {
 public:
  RankedPlan(const PlanParts& parts, train::RankedLearnerOptions options)
      : options_(std::move(options)), items_(parts.items) {}

  privacy::Charge charge() const override { return train::RankedPeriodCharge(options_); }
  Digest Fingerprint() const override { return FingerprintOf(options_, *items_); }

  void AddTo(LearnerShape* shape) const override {
    const uint32_t items = options_.catalogue->items();
    shape->input_width = kItemInputs;
    shape->other_bytes = TransitionsBytes(options_.model, items, shape->workers) +
                         RankerBytes(options_.ranker, items, shape->batch) +
                         HistoryBytes(*shape, options_.histories.items_most) +
                         train::NextItemExam::Bytes(items);
  }

  Result<std::unique_ptr<train::Learner>> Make(LearnerParts parts) const override {
    train::RankedLearnerOptions options = options_;
    options.histories.user_key = parts.user_key;
    options.histories.clock = parts.clock;
    return std::make_unique<train::RankedLearner>(std::move(options), std::move(parts.histories),
                                                  std::move(parts.noise), parts.workers);
  }

  std::shared_ptr<const serve::ItemModel> Recommends() const override {
    return serve::MakeRankedItems(options_.index, options_.catalogue, options_.model,
                                  options_.ranker.candidates_asked);
  }

  std::string SizeText() const override { return Counted(items_->items(), "item"); }
  std::string RowsText() const override {
    return "each period's noised counts are released once, and a ranker learnt on the same users";
  }
  std::string_view ReleaseKeys() const override { return "model and catalogue"; }

 private:
  const train::RankedLearnerOptions options_;
  const std::shared_ptr<const event::ItemCatalogue> items_;
};

std::vector<privacy::Query> TransitionsQueries(const config::Learner& learner,
                                               std::span<const MechanismMaker>) {
  using privacy::Query;
  if (learner.model.transitions.ranker) return {Query::kRankerGradient, Query::kPeriodCounts};
  return {Query::kPeriodCounts};
}

Result<std::shared_ptr<const ModelPlan>> PlanTransitionsKind(const PlanParts& parts) {
  if (parts.learner().model.transitions.ranker) {
    TACIT_ASSIGN(auto ranked, PlanRanked(parts.config, parts.index, *parts.items));
    return std::make_shared<RankedPlan>(parts, std::move(ranked));
  }
  TACIT_ASSIGN(auto options, PlanTransitions(parts.config, parts.index, *parts.items));
  return std::make_shared<TransitionsPlan>(parts, std::move(options));
}

}  // namespace

LearnerKind TransitionsKind() {
  return {.kind = config::ModelKind::kTransitions,
          .queries = TransitionsQueries,
          .plan = PlanTransitionsKind};
}

}  // namespace tacit::wiring
