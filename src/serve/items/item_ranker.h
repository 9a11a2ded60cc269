#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "serve/items/item_model.h"

namespace tacit::serve {

using RankedItem = ScoredItem;

// Recommends from one model's states: the best items by score; among equal scores, the earlier one
// in the catalogue. Owns its working memory, some 9 bytes per item; not thread-safe, one per
// thread.
class ItemRanker {
 public:
  explicit ItemRanker(std::shared_ptr<const ItemModel> model);

  // Returns the best `count` items after a history of items of the catalogue, oldest first; with
  // `exclude_seen`, without the items of the history. Items marked in `barred` are not recommended:
  // a mark for each item, or empty. Returns fewer if there are not enough. An empty history is a
  // cold start. Valid until the next call.
  Result<std::span<const RankedItem>> OfHistory(const ItemState& state,
                                                std::span<const uint32_t> history, uint32_t count,
                                                bool exclude_seen,
                                                std::span<const uint8_t> barred = {});
  // Does the same for a user, without revealing whether he is known: the number of items does not
  // depend on his history, and the work hardly does. Returns at most half of what is not barred. If
  // excluding the history would leave too few items, the oldest ones are not excluded.
  Result<std::span<const RankedItem>> OfUser(const ItemState& state,
                                             std::span<const uint32_t> history, uint32_t count,
                                             bool exclude_seen,
                                             std::span<const uint8_t> barred = {});
  // Tells why an item comes after this history, where the model can.
  std::optional<ItemReason> ReasonOf(const ItemState& state, std::span<const uint32_t> history,
                                     uint32_t item) {
    return scorer_->ReasonOf(state, history, item);
  }

 private:
  // Marks what is barred. Returns the number of items that are not.
  size_t Bar(std::span<const uint8_t> barred);
  // Marks up to `items_most` items of the history, newest first, beside the barred ones.
  void LeaveOut(std::span<const uint32_t> history, size_t items_most);
  // Clears the marks.
  void Clear();
  // Returns the best unmarked items and clears the marks.
  std::span<const RankedItem> Best(std::span<const float> scores, uint32_t count);

  const std::shared_ptr<const ItemModel> model_;
  const std::unique_ptr<ItemScorer> scorer_;
  std::vector<float> scores_;
  std::vector<uint8_t> left_out_;     // per item
  std::vector<uint32_t> left_items_;  // the marked ones, unless some were barred
  bool has_barred_ = false;
  std::vector<uint32_t> stand_in_;
  std::vector<RankedItem> best_;
};

}  // namespace tacit::serve
