#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "serve/recommend/item_model.h"

namespace tacit::serve {

struct RankedItem {
  uint32_t item = 0;
  float score = 0;
};

// Recommends out of one model's states: the best by score, of equals the earlier in the catalogue.
// Owns its working memory, some 9 bytes an item; not thread-safe, one per thread.
class ItemRanker {
 public:
  explicit ItemRanker(std::shared_ptr<const ItemModel> model);

  // The best `count` items behind a history of items of the catalogue, oldest first, without those
  // of the history where they are to be left out: fewer where there are not so many. An empty
  // history is a cold start. Valid until the next call.
  Result<std::span<const RankedItem>> OfHistory(const ItemState& state,
                                                std::span<const uint32_t> history, uint32_t count,
                                                bool exclude_seen);
  // The same for somebody of whom it must not show whether he is known: as many items whatever his
  // history, and about as much work. At most half of the catalogue; of a history that leaves fewer
  // than asked for, what lies longest ago is not left out.
  Result<std::span<const RankedItem>> OfUser(const ItemState& state,
                                             std::span<const uint32_t> history, uint32_t count,
                                             bool exclude_seen);

 private:
  // Marks the history's items from the last on, at most so many of them.
  void LeaveOut(std::span<const uint32_t> history, size_t items_most);
  // The best of those that are not marked; takes the marks off.
  std::span<const RankedItem> Best(std::span<const float> scores, uint32_t count);

  const std::shared_ptr<const ItemModel> model_;
  const std::unique_ptr<ItemScorer> scorer_;
  std::vector<float> scores_;
  std::vector<uint8_t> left_out_;     // per item
  std::vector<uint32_t> left_items_;  // which are
  std::vector<uint32_t> stand_in_;
  std::vector<RankedItem> best_;
};

}  // namespace tacit::serve
