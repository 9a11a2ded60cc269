#pragma once

#include <rocksdb/compaction_filter.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/disk/retention_clock.h"
#include "store/types/history.h"

namespace tacit::store {

// A user's recent items as the store keeps them. A value records which commit changed it last and
// how many items that commit appended, so that a reader who must not see that commit sees the items
// before it. It also records the maximum age, so that readers and compactions can drop old items.
struct KeptHistory {
  uint64_t commit = 0;   // the commit that changed the value last
  uint32_t added = 0;    // items that this commit added: the last ones
  int64_t age_most = 0;  // 0: items are kept for ever
  std::vector<HistoryItem> items;

  bool TooOld(const HistoryItem& item, int64_t now) const {
    return age_most > 0 && item.timestamp_ms < now - age_most;
  }
  // Drops items that are too old and adjusts `added`: items are in stream order, the added ones
  // last.
  void Forget(int64_t now) {
    const auto is_new = items.end() - added;
    added = static_cast<uint32_t>(std::count_if(
        is_new, items.end(), [&](const HistoryItem& item) { return !TooOld(item, now); }));
    std::erase_if(items, [&](const HistoryItem& item) { return TooOld(item, now); });
  }
  // Caps times at the wall clock: an item from the future would never expire. Returns true if it
  // changed one, as after a clock that was ahead has been set back.
  bool Cap(int64_t wall) {
    bool capped = false;
    for (HistoryItem& item : items) {
      capped |= item.timestamp_ms > wall;
      item.timestamp_ms = std::min(item.timestamp_ms, wall);
    }
    return capped;
  }
  // Appends items. A record's own time may be anything. `now`: the clock's; `known`: the retention
  // clock's.
  void Append(std::span<const HistoryItem> more, uint32_t items_most, int64_t now, int64_t known) {
    for (const HistoryItem& item : more)
      items.push_back({item.item, item.timestamp_ms == 0 ? now : item.timestamp_ms});
    Cap(now);
    const size_t excess = items.size() - std::min<size_t>(items.size(), items_most);
    items.erase(items.begin(), items.begin() + static_cast<ptrdiff_t>(excess));
    added = static_cast<uint32_t>(std::min(more.size(), items.size()));
    Forget(known);
  }
};

std::string EncodeHistory(const KeptHistory& kept);
// False: the value is damaged.
bool DecodeHistory(std::string_view payload, KeptHistory* kept);

// Drops items that are too old, and users without any other, whenever their file is rewritten.
std::shared_ptr<rocksdb::CompactionFilterFactory> MakeHistoryFilter(
    std::shared_ptr<RetentionClock> retention);

}  // namespace tacit::store
