#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "store/types/delta.h"
#include "store/types/history.h"

namespace tacit::tape {

// The histories that a world's store has.
class Histories {
 public:
  void Take(std::optional<store::HistoryCommit> commit) {
    if (!commit) return;
    step_ = commit->step;
    for (store::UserHistory& user : commit->appended) {
      auto& items = of_[user.user];
      items.insert(items.end(), user.items.begin(), user.items.end());
      if (items.size() > commit->items_most)
        items.erase(items.begin(), items.end() - static_cast<ptrdiff_t>(commit->items_most));
    }
  }
  Result<uint64_t> Read(std::span<store::UserHistory> users) const {
    for (store::UserHistory& user : users)
      if (const auto found = of_.find(user.user); found != of_.end()) user.items = found->second;
    return step_;
  }

 private:
  std::unordered_map<Hash128, std::vector<store::HistoryItem>> of_;
  uint64_t step_ = 0;
};

}  // namespace tacit::tape
