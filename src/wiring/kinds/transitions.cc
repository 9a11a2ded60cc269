#include "base/text.h"
#include "model/ranking/candidates.h"
#include "model/ranking/released_ranker.h"
#include "wiring/kinds/kinds.h"
#include "wiring/plans/next_item_plan.h"

namespace tacit::wiring {
namespace {

// The most cells that a scorer lists.
double ListedMost(const model::transitions::Options& options, uint32_t items) {
  return static_cast<double>(options.CellsMost(items)) +
         static_cast<double>(options.KinListed(items));
}

// The bytes that one version is served from: the tables of all pairs, or where these have no
// room, scorers and their cells.
double ServedStateBytes(const model::transitions::Options& options, uint32_t items, double tables) {
  constexpr double kScorers = 3, kListedCellBytes = 3 * 8;
  const double pairs = static_cast<double>(items) * static_cast<double>(items);
  if (options.IsDense(items)) return tables * sizeof(float) * pairs;
  return tables *
         (SparseScorerBytes(items) / kScorers + kListedCellBytes * ListedMost(options, items));
}

class TransitionsPlan final : public ModelPlan {
 public:
  TransitionsPlan(const PlanParts& parts, train::TransitionsLearnerOptions options)
      : options_(std::move(options)), items_(parts.items) {}

  privacy::Charge charge() const override {
    return train::TransitionsPeriodCharge(options_.noise_multiplier);
  }
  Digest Fingerprint() const override { return FingerprintOf(options_, *items_); }
  std::string Form() const override { return ItemsForm(*items_); }
  Result<store::GrownModel> Grow(const store::StoredModel& stored) const override {
    TACIT_ASSIGN(const auto before, FindModelBefore(stored, options_, *items_));
    store::GrownModel grown = WithItems(before.catalogue, *items_);
    if (!stored.released) return grown;
    WorkerPool workers({.workers = 1});
    TACIT_ASSIGN(const auto counts,
                 model::transitions::ReleasedModel::Decode(
                     *stored.released, *before.options.catalogue, options_.model, workers));
    TACIT_ASSIGN(const auto more, counts.Grown(*options_.catalogue, before.places()));
    grown.released = std::make_shared<const std::string>(more.Encode());
    return grown;
  }

  void AddTo(LearnerShape* shape) const override {
    shape->input_width = kItemInputs;
    shape->other_bytes =
        TransitionsBytes(options_.model, options_.catalogue->items(), shape->workers) +
        HistoryBytes(*shape, options_.histories.items_most) +
        train::NextItemExam::Bytes(options_.catalogue->items());
    shape->state_bytes = ServedStateBytes(options_.model, options_.catalogue->items(), 1);
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

// Bytes of a ranker beside its counts: in the learner, in the served state and in the next one two
// tables of all pairs, or, where these have no room, two scorers and their cells; and the questions
// to a period's users, at most one for each record.
double RankerBytes(const train::RankerOptions& ranker, const model::transitions::Options& options,
                   uint32_t items, double batch) {
  // Scores in both directions list a cell twice, those in one direction once.
  constexpr double kStates = 3, kListedCellBytes = 3 * 8;
  const double pairs = static_cast<double>(items) * static_cast<double>(items);
  const double states =
      options.IsDense(items)
          ? kStates * 2 * sizeof(float) * pairs
          : 2 * SparseScorerBytes(items) + kStates * kListedCellBytes * ListedMost(options, items);
  return states + batch * static_cast<double>(*ranker.candidates * model::ranking::kFeatures);
}

// Counts whose likeliest items a small private model puts in order.
class RankedPlan final : public ModelPlan {
 public:
  RankedPlan(const PlanParts& parts, train::RankedLearnerOptions options)
      : options_(std::move(options)), items_(parts.items) {}

  privacy::Charge charge() const override { return train::RankedPeriodCharge(options_); }
  Digest Fingerprint() const override { return FingerprintOf(options_, *items_); }
  std::string Form() const override { return ItemsForm(*items_); }
  Result<store::GrownModel> Grow(const store::StoredModel& stored) const override {
    TACIT_ASSIGN(const auto before, FindModelBefore(stored, options_, *items_));
    store::GrownModel grown = WithItems(before.catalogue, *items_);
    if (!stored.released) return grown;
    WorkerPool workers({.workers = 1});
    TACIT_ASSIGN(const auto ranked,
                 model::ranking::DecodeRanker(*stored.released, *before.options.catalogue,
                                              options_.model, workers));
    TACIT_ASSIGN(const auto more, ranked.counts.Grown(*options_.catalogue, before.places()));
    grown.released =
        std::make_shared<const std::string>(model::ranking::EncodeRanker(more, ranked.parameters));
    return grown;
  }

  void AddTo(LearnerShape* shape) const override {
    const uint32_t items = options_.catalogue->items();
    shape->input_width = kItemInputs;
    shape->other_bytes = TransitionsBytes(options_.model, items, shape->workers) +
                         RankerBytes(options_.ranker, options_.model, items, shape->batch) +
                         HistoryBytes(*shape, options_.histories.items_most) +
                         train::NextItemExam::Bytes(items);
    shape->state_bytes = ServedStateBytes(options_.model, items, 3);
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
                                  *options_.ranker.orders);
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
    TACIT_ASSIGN(auto ranked, PlanRanked(parts));
    return std::make_shared<RankedPlan>(parts, std::move(ranked));
  }
  TACIT_ASSIGN(auto options, PlanTransitions(parts));
  return std::make_shared<TransitionsPlan>(parts, std::move(options));
}

}  // namespace

LearnerKind TransitionsKind() {
  return {.kind = config::ModelKind::kTransitions,
          .queries = TransitionsQueries,
          .plan = PlanTransitionsKind};
}

}  // namespace tacit::wiring
