#include "train/counts/recent_histories.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "event/batch.h"

namespace tacit::train {

void RecentHistories::AddItems(const event::Batch& examples, size_t begin, size_t end,
                               Items* items) const {
  for (size_t i = begin; i < end; ++i)
    if (examples.item[i] != event::kNoItem && examples.label[i] > 0)
      items->push_back({examples.item[i], examples.timestamp_ms[i]});
}

Result<bool> RecentHistories::Preview(const stream::StepBatch& batch, StepHistories* out) {
  if (batch.kind == stream::StepBatch::Kind::kHeldOut) {
    TACIT_RETURN_IF_ERROR(Gather(batch, out));
    Taken(batch);
    return true;
  }
  if (std::exchange(in_period_, false)) period_.clear();
  const event::Batch& examples = batch.examples;
  for (size_t i = 0; i < examples.size(); ++i)
    AddItems(examples, i, i + 1, &period_[hash_(examples.user[i])]);
  return false;
}

Status RecentHistories::Gather(const stream::StepBatch& step, StepHistories* out) {
  const event::Batch& examples = step.examples;
  gathered_.clear();
  for (size_t begin = 0, end = 0; begin < examples.size(); begin = end) {
    while (end < examples.size() && step.unit_of[end] == step.unit_of[begin]) ++end;
    gathered_.emplace_back(hash_(examples.user[begin]), Items());
    AddItems(examples, begin, end, &gathered_.back().second);
  }
  return Read(gathered_, out);
}

Status RecentHistories::GatherPeriod(StepHistories* out) {
  std::vector<std::pair<Hash128, Items>> users(period_.begin(), period_.end());
  std::ranges::sort(users, {}, [](const auto& user) { return user.first; });
  return Read(users, out);
}

Status RecentHistories::Read(std::span<const std::pair<Hash128, Items>> fresh, StepHistories* out) {
  std::vector<store::UserHistory> users;
  for (const auto& [user, items] : fresh) users.push_back({.user = user, .items = {}});
  TACIT_ASSIGN(const uint64_t committed, reader_(users));
  Forget(committed);

  // Pending items expire by the same rule as stored ones.
  const int64_t oldest = options_.age_most_ms > 0 && options_.clock != nullptr
                             ? options_.clock->UnixMillis() - options_.age_most_ms
                             : std::numeric_limits<int64_t>::min();
  *out = {};
  out->histories.catalogue = options_.catalogue;
  const auto add = [&](uint32_t item) {
    if (item < options_.catalogue) out->histories.items.push_back(item);
  };
  for (size_t u = 0; u < users.size(); ++u) {
    const size_t begin = out->histories.items.size();
    for (const store::HistoryItem& item : users[u].items) add(item.item);
    if (const auto pending = pending_.find(users[u].user); pending != pending_.end())
      for (const Pending& one : pending->second)
        if (one.item.timestamp_ms == 0 || one.item.timestamp_ms >= oldest) add(one.item.item);
    auto& items = out->histories.items;
    const size_t known = items.size() - begin;
    if (known > options_.items_most)
      items.erase(items.begin() + static_cast<ptrdiff_t>(begin),
                  items.end() - static_cast<ptrdiff_t>(options_.items_most));
    out->before.push_back(static_cast<uint32_t>(items.size() - begin));
    for (const store::HistoryItem& item : fresh[u].second) add(item.item);
    out->histories.end.push_back(items.size());
    out->histories.id.push_back(users[u].user.low);
  }
  return {};
}

void RecentHistories::Taken(const stream::StepBatch& step) {
  const uint64_t number = step.after.step;
  if (!taken_)
    taken_ = {.step = 0,
              .appended = {},
              .items_most = options_.items_most,
              .age_most_ms = options_.age_most_ms};
  taken_->step = number;
  steps_.emplace_back(number, std::vector<Hash128>());
  if (!step.whole_period()) {
    for (const auto& [user, items] : gathered_) Append(number, user, items);
    gathered_.clear();
    return;
  }
  in_period_ = true;
  if (step.after.period_step > 0) return;
  for (const auto& [user, items] : period_) Append(number, user, items);
  period_.clear();
}

void RecentHistories::Append(uint64_t step, const Hash128& user, const Items& items) {
  if (items.empty()) return;
  const auto [place, is_new] = place_.try_emplace(user, taken_->appended.size());
  if (is_new) taken_->appended.push_back({.user = user, .items = {}});
  auto& appended = taken_->appended[place->second].items;
  appended.insert(appended.end(), items.begin(), items.end());
  std::vector<Pending>& pending = pending_[user];
  for (const store::HistoryItem& item : items) pending.push_back({step, item});
  steps_.back().second.push_back(user);
}

std::optional<store::HistoryCommit> RecentHistories::Take() {
  place_.clear();
  return std::exchange(taken_, std::nullopt);
}

void RecentHistories::Forget(uint64_t committed) {
  for (; !steps_.empty() && steps_.front().first <= committed; steps_.pop_front()) {
    for (const Hash128& user : steps_.front().second) {
      const auto found = pending_.find(user);
      if (found == pending_.end()) continue;
      std::erase_if(found->second, [&](const Pending& one) { return one.step <= committed; });
      if (found->second.empty()) pending_.erase(found);
    }
  }
}

}  // namespace tacit::train
