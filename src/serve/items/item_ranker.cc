#include "serve/items/item_ranker.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace tacit::serve {
namespace {

constexpr uint32_t kStandInItems = 20;  // scored in place of an empty history

bool IsBetter(const RankedItem& a, const RankedItem& b) {
  return a.score > b.score || (a.score == b.score && a.item < b.item);
}

}  // namespace

ItemRanker::ItemRanker(std::shared_ptr<const ItemModel> model)
    : model_(std::move(model)),
      scorer_(model_->MakeScorer()),
      scores_(model_->items()),
      left_out_(model_->items()),
      stand_in_(std::min(kStandInItems, model_->items())) {
  std::iota(stand_in_.begin(), stand_in_.end(), 0u);
}

Result<std::span<const RankedItem>> ItemRanker::OfHistory(const ItemState& state,
                                                          std::span<const uint32_t> history,
                                                          uint32_t count, bool exclude_seen,
                                                          std::span<const uint8_t> barred) {
  Bar(barred);
  if (history.empty()) return Best(state.cold_start(), count);
  if (exclude_seen) {
    LeaveOut(history, scores_.size());
    Result<bool> found = scorer_->Top(state, history, left_out_, count, &best_);
    if (!found || *found) Clear();
    if (!found) return Fail(std::move(found.error()));
    if (*found) return best_;
  }
  if (Status scored = scorer_->Score(state, history, scores_); !scored) {
    Clear();
    return Fail(std::move(scored.error()));
  }
  return Best(scores_, count);
}

Result<std::span<const RankedItem>> ItemRanker::OfUser(const ItemState& state,
                                                       std::span<const uint32_t> history,
                                                       uint32_t count, bool exclude_seen,
                                                       std::span<const uint8_t> barred) {
  // An empty history is scored too, for the same work, but its scores are not used.
  TACIT_RETURN_IF_ERROR(scorer_->Score(
      state, history.empty() ? std::span<const uint32_t>(stand_in_) : history, scores_));
  const size_t allowed = Bar(barred);
  count = static_cast<uint32_t>(std::min<size_t>(count, (allowed + 1) / 2));
  if (exclude_seen) LeaveOut(history, allowed - count);
  return Best(history.empty() ? state.cold_start() : scores_, count);
}

size_t ItemRanker::Bar(std::span<const uint8_t> barred) {
  if (barred.empty()) return left_out_.size();
  TACIT_CHECK(barred.size() == left_out_.size(), "a mark for each item");
  has_barred_ = true;
  std::ranges::copy(barred, left_out_.begin());
  return static_cast<size_t>(std::ranges::count(barred, uint8_t{0}));
}

void ItemRanker::LeaveOut(std::span<const uint32_t> history, size_t items_most) {
  for (auto item = history.rbegin(); item != history.rend(); ++item) {
    if (left_items_.size() == items_most) return;
    if (std::exchange(left_out_[*item], uint8_t{1}) == 0) left_items_.push_back(*item);
  }
}

void ItemRanker::Clear() {
  if (std::exchange(has_barred_, false)) std::ranges::fill(left_out_, uint8_t{0});
  for (const uint32_t item : left_items_) left_out_[item] = 0;
  left_items_.clear();
}

// Keeps a heap with the worst of the best items on top.
std::span<const RankedItem> ItemRanker::Best(std::span<const float> scores, uint32_t count) {
  TACIT_CHECK(scores.size() == left_out_.size(), "a score per item");
  best_.clear();
  for (uint32_t item = 0; count > 0 && item < scores.size(); ++item) {
    const RankedItem ranked{item, scores[item]};
    const bool full = best_.size() == count;
    if (left_out_[item] != 0 || (full && !IsBetter(ranked, best_.front()))) continue;
    if (full) {
      std::ranges::pop_heap(best_, IsBetter);
      best_.pop_back();
    }
    best_.push_back(ranked);
    std::ranges::push_heap(best_, IsBetter);
  }
  std::ranges::sort_heap(best_, IsBetter);
  Clear();
  return best_;
}

}  // namespace tacit::serve
