#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/threads/worker_pool.h"
#include "model/ranking/candidates.h"
#include "model/ranking/ranker.h"
#include "model/ranking/released_ranker.h"
#include "serve/items/item_model.h"

namespace tacit::serve {
namespace {

class RankedState final : public ItemState {
 public:
  RankedState(std::shared_ptr<const std::string> bytes, const model::ranking::ReleasedRanker& from,
              const model::transitions::PublicItems& catalogue, size_t candidates,
              WorkerPool& workers)
      : bytes_(std::move(bytes)),
        source_(from.counts.estimate(), catalogue, from.counts.options(), workers),
        parameters_(from.parameters),
        candidates_(candidates) {
    for (const double popularity : from.counts.popularity())
      cold_start_.push_back(static_cast<float>(popularity));
  }

  bool IsOf(const std::shared_ptr<const std::string>& bytes) const {
    return bytes_ == bytes || *bytes_ == *bytes;
  }
  void Score(std::span<const uint32_t> history, std::span<float> scores) const {
    model::ranking::ScoreRanked(source_, parameters_, candidates_, history, scores);
  }
  void Top(std::span<const uint32_t> history, std::span<const uint8_t> left_out, uint32_t count,
           model::ranking::Candidates* candidates, model::ranking::RankerPass* pass,
           std::vector<ScoredItem>* top) const {
    model::ranking::TopRanked(source_, parameters_, candidates_, history, count, left_out,
                              candidates, pass, top);
  }
  const model::transitions::Scorer& counts() const { return source_.counts(); }

 private:
  const std::shared_ptr<const std::string> bytes_;
  const model::ranking::CandidateSource source_;
  const std::vector<float> parameters_;
  const size_t candidates_;
};

class RankedScorer final : public ItemScorer {
 public:
  Status Score(const ItemState& state, std::span<const uint32_t> history,
               std::span<float> scores) override {
    static_cast<const RankedState&>(state).Score(history, scores);
    if (std::ranges::all_of(scores, [](float s) { return std::isfinite(s); })) return {};
    return Fail(ErrorCode::kCorruption, "the model's scores are not numbers");
  }
  // With a table too: the candidates are then the likeliest of what is not left out.
  Result<bool> Top(const ItemState& state, std::span<const uint32_t> history,
                   std::span<const uint8_t> left_out, uint32_t count,
                   std::vector<ScoredItem>* top) override {
    static_cast<const RankedState&>(state).Top(history, left_out, count, &candidates_, &pass_, top);
    if (std::ranges::all_of(*top, [](const ScoredItem& s) { return std::isfinite(s.score); }))
      return true;
    return Fail(ErrorCode::kCorruption, "the model's scores are not numbers");
  }
  std::optional<ItemReason> ReasonOf(const ItemState& state, std::span<const uint32_t> history,
                                     uint32_t item) override {
    const auto& counts = static_cast<const RankedState&>(state).counts();
    const auto [from, share] = counts.MostDue(history, item);
    return share > 0 ? std::optional(ItemReason{from, share}) : std::nullopt;
  }

 private:
  model::ranking::Candidates candidates_;
  model::ranking::RankerPass pass_;
};

class RankedItems final : public ItemModel {
 public:
  RankedItems(LearnerIndex learner,
              std::shared_ptr<const model::transitions::PublicItems> catalogue,
              const model::transitions::Options& options, size_t candidates)
      : learner_(learner),
        catalogue_(std::move(catalogue)),
        options_(options),
        candidates_(candidates) {}

  std::string_view kind() const override { return "transitions"; }
  uint32_t items() const override { return catalogue_->items(); }

  Result<std::shared_ptr<const ItemState>> Build(
      const store::Snapshot& snapshot,
      const std::shared_ptr<const ItemState>& last) const override {
    const std::shared_ptr<const std::string> bytes = snapshot.Released(learner_);
    if (bytes == nullptr) return std::shared_ptr<const ItemState>();
    if (last != nullptr && static_cast<const RankedState&>(*last).IsOf(bytes)) return last;
    WorkerPool workers(WorkerPool::Options{.workers = 1});
    TACIT_ASSIGN(const model::ranking::ReleasedRanker released,
                 model::ranking::DecodeRanker(*bytes, *catalogue_, options_, workers));
    if (released.counts.periods() == 0) return std::shared_ptr<const ItemState>();
    return std::make_shared<const RankedState>(bytes, released, *catalogue_, candidates_, workers);
  }

  std::unique_ptr<ItemScorer> MakeScorer() const override {
    return std::make_unique<RankedScorer>();
  }

 private:
  const LearnerIndex learner_;
  const std::shared_ptr<const model::transitions::PublicItems> catalogue_;
  const model::transitions::Options options_;
  const size_t candidates_;
};

}  // namespace

std::shared_ptr<const ItemModel> MakeRankedItems(
    LearnerIndex learner, std::shared_ptr<const model::transitions::PublicItems> catalogue,
    const model::transitions::Options& options, size_t candidates) {
  TACIT_CHECK(catalogue != nullptr && candidates > 0);
  return std::make_shared<const RankedItems>(learner, std::move(catalogue), options, candidates);
}

}  // namespace tacit::serve
