#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/threads/worker_pool.h"
#include "model/transitions/released_model.h"
#include "model/transitions/scorer.h"
#include "serve/items/item_model.h"

namespace tacit::serve {
namespace {

using model::transitions::Options;
using model::transitions::PublicItems;
using model::transitions::ReleasedModel;

class TransitionsState final : public ItemState {
 public:
  TransitionsState(std::shared_ptr<const std::string> bytes, const ReleasedModel& released,
                   WorkerPool& workers)
      : bytes_(std::move(bytes)), scorer_(released.estimate(), released.options(), workers) {
    for (const double popularity : released.popularity())
      cold_start_.push_back(static_cast<float>(popularity));
  }

  bool IsOf(const std::shared_ptr<const std::string>& bytes) const {
    return bytes_ == bytes || *bytes_ == *bytes;
  }
  const model::transitions::Scorer& scorer() const { return scorer_; }

 private:
  const std::shared_ptr<const std::string> bytes_;
  const model::transitions::Scorer scorer_;
};

class TransitionsScorer final : public ItemScorer {
 public:
  Status Score(const ItemState& state, std::span<const uint32_t> history,
               std::span<float> scores) override {
    static_cast<const TransitionsState&>(state).scorer().Score(history, scores);
    if (std::ranges::all_of(scores, [](float s) { return std::isfinite(s); })) return {};
    return Fail(ErrorCode::kCorruption, "the model's scores are not numbers");
  }
  Result<bool> Top(const ItemState& state, std::span<const uint32_t> history,
                   std::span<const uint8_t> left_out, uint32_t count,
                   std::vector<ScoredItem>* top) override {
    const auto& scorer = static_cast<const TransitionsState&>(state).scorer();
    if (!scorer.table().empty()) return false;
    scorer.Top(history, count, left_out, &memory_, top);
    if (std::ranges::all_of(*top, [](const ScoredItem& s) { return std::isfinite(s.score); }))
      return true;
    return Fail(ErrorCode::kCorruption, "the model's scores are not numbers");
  }
  std::optional<ItemReason> ReasonOf(const ItemState& state, std::span<const uint32_t> history,
                                     uint32_t item) override {
    const auto& scorer = static_cast<const TransitionsState&>(state).scorer();
    const auto [from, share] = scorer.MostDue(history, item);
    return share > 0 ? std::optional(ItemReason{from, share}) : std::nullopt;
  }

 private:
  model::transitions::TopMemory memory_;
};

class TransitionsItems final : public ItemModel {
 public:
  TransitionsItems(LearnerIndex learner, std::shared_ptr<const PublicItems> catalogue,
                   const Options& options)
      : learner_(learner), catalogue_(std::move(catalogue)), options_(options) {}

  std::string_view kind() const override { return "transitions"; }
  uint32_t items() const override { return catalogue_->items(); }

  Result<std::shared_ptr<const ItemState>> Build(
      const store::Snapshot& snapshot,
      const std::shared_ptr<const ItemState>& last) const override {
    const std::shared_ptr<const std::string> bytes = snapshot.Released(learner_);
    if (bytes == nullptr) return std::shared_ptr<const ItemState>();
    if (last != nullptr && static_cast<const TransitionsState&>(*last).IsOf(bytes)) return last;
    WorkerPool workers(WorkerPool::Options{.workers = 1});
    TACIT_ASSIGN(const ReleasedModel released,
                 ReleasedModel::Decode(*bytes, *catalogue_, options_, workers));
    if (released.periods() == 0) return std::shared_ptr<const ItemState>();
    return std::make_shared<const TransitionsState>(bytes, released, workers);
  }

  std::unique_ptr<ItemScorer> MakeScorer() const override {
    return std::make_unique<TransitionsScorer>();
  }

 private:
  const LearnerIndex learner_;
  const std::shared_ptr<const PublicItems> catalogue_;
  const Options options_;
};

}  // namespace

std::shared_ptr<const ItemModel> MakeTransitionsItems(LearnerIndex learner,
                                                      std::shared_ptr<const PublicItems> catalogue,
                                                      const Options& options) {
  TACIT_CHECK(catalogue != nullptr && catalogue->items() > 0);
  return std::make_shared<const TransitionsItems>(learner, std::move(catalogue), options);
}

}  // namespace tacit::serve
