// The values of `histories`, sealed. The notation is base/bytes.h's, the keys are user_values.h's.
//     history := commit:u64 added:u32 age_most_ms:i64 items:u32 item*items       oldest item first
//     item    := item:u32 unix_ms:i64
// `commit` changed the value last and appended the last `added` items. `age_most_ms` 0: items are
// kept for ever.
#include "store/history_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "store/seal.h"
#include "store/user_values.h"

namespace tacit::store {
namespace {

// A batch is in memory until it is written, twice for a while.
constexpr size_t kRenumberedBytesMost = size_t{1} << 30;

struct Kept {
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

std::string Encode(const Kept& kept) {
  ByteWriter writer;
  writer.Put(kept.commit).Put(kept.added).Put(kept.age_most);
  writer.Put(static_cast<uint32_t>(kept.items.size()));
  for (const HistoryItem& item : kept.items) writer.Put(item.item).Put(item.timestamp_ms);
  return std::move(writer).Take();
}

bool Decode(std::string_view payload, Kept* kept) {
  ByteReader reader(payload);
  kept->commit = reader.Get<uint64_t>();
  kept->added = reader.Get<uint32_t>();
  kept->age_most = reader.Get<int64_t>();
  const auto items = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < items && reader.ok(); ++i) {
    const auto item = reader.Get<uint32_t>();
    kept->items.push_back({item, reader.Get<int64_t>()});
  }
  return reader.at_end() && kept->added <= kept->items.size();
}

Result<Kept> Decode(const std::optional<std::string>& payload, const Rocks& rocks) {
  Kept kept;
  if (!payload || Decode(*payload, &kept)) return kept;
  return Fail(ErrorCode::kCorruption,
              fmt::format("a user's history in store {} is damaged", rocks.path()));
}

// Drops old items during compaction. Keeps damaged values, which readers report.
class HistoryFilter final : public rocksdb::CompactionFilter {
 public:
  HistoryFilter(int64_t wall, int64_t known) : wall_(wall), known_(known) {}
  const char* Name() const override { return "tacit.histories"; }
  bool Filter(int, const rocksdb::Slice& key, const rocksdb::Slice& value, std::string* new_value,
              bool* value_changed) const override {
    if (key.size() <= LearnerKey("", 0).size()) return false;
    const auto payload = Unseal(value.ToStringView(), "a user's history");
    Kept kept;
    if (!payload || !Decode(*payload, &kept)) return false;
    const size_t before = kept.items.size();
    const bool capped = kept.Cap(wall_);
    kept.Forget(known_);
    if (kept.items.empty()) return true;
    *value_changed = capped || kept.items.size() < before;
    if (*value_changed) *new_value = Seal(Encode(kept));
    return false;
  }

 private:
  const int64_t wall_, known_;
};

class HistoryFilters final : public rocksdb::CompactionFilterFactory {
 public:
  explicit HistoryFilters(std::shared_ptr<RetentionClock> retention)
      : retention_(std::move(retention)) {}
  const char* Name() const override { return "tacit.histories"; }
  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context&) override {
    return std::make_unique<HistoryFilter>(retention_->WallTime(), retention_->Now());
  }

 private:
  const std::shared_ptr<RetentionClock> retention_;
};

}  // namespace

Status PutHistories(const Rocks& rocks, uint16_t learner, CommitSeq seq,
                    const HistoryCommit& commit, const ForgottenUsers& forgotten,
                    rocksdb::WriteBatch* batch) {
  for (const UserHistory& user : commit.appended)
    for (const HistoryItem& item : user.items) rocks.retention().Saw(item.timestamp_ms);
  const int64_t now = rocks.clock().UnixMillis();
  const int64_t known = rocks.retention().Now();
  PutUserStep(rocks, Family::kHistories, learner, commit.step, batch);
  // A period may include every user, so users are read and encoded in small groups.
  constexpr size_t kAtOnce = 1024;
  std::vector<Hash128> users;
  std::vector<HistoryItem> items;
  for (size_t begin = 0; begin < commit.appended.size(); begin += kAtOnce) {
    const std::span<const UserHistory> some =
        std::span(commit.appended)
            .subspan(begin)
            .first(std::min(kAtOnce, commit.appended.size() - begin));
    users.clear();
    for (const UserHistory& user : some) users.push_back(user.user);
    TACIT_ASSIGN(const UserValues read, ReadUserValues(rocks, Family::kHistories, learner, users));
    for (size_t i = 0; i < some.size(); ++i) {
      TACIT_ASSIGN(Kept kept, Decode(read.values[i], rocks));
      items = some[i].items;
      forgotten.DropForgotten(users[i], now, &items);
      if (items.empty() && !read.values[i]) continue;
      kept.commit = seq.value;
      kept.age_most = commit.age_most_ms;
      kept.Append(items, commit.items_most, now, known);
      PutUserValue(rocks, Family::kHistories, learner, users[i], Encode(kept), batch);
    }
  }
  return {};
}

Result<uint64_t> ReadHistories(const Rocks& rocks, uint16_t learner, int64_t now,
                               std::span<UserHistory> users) {
  std::vector<Hash128> names;
  for (const UserHistory& user : users) names.push_back(user.user);
  TACIT_ASSIGN(const UserValues read, ReadUserValues(rocks, Family::kHistories, learner, names));
  for (size_t i = 0; i < users.size(); ++i) {
    TACIT_ASSIGN(Kept kept, Decode(read.values[i], rocks));
    kept.Forget(now);
    users[i].items = std::move(kept.items);
  }
  return read.step;
}

Result<std::vector<HistoryItem>> ReadHistory(const Rocks& rocks, const rocksdb::Snapshot* snapshot,
                                             uint16_t learner, CommitSeq seq, int64_t now,
                                             const Hash128& user) {
  TACIT_ASSIGN(const UserValues read,
               ReadUserValues(rocks, Family::kHistories, learner, {&user, 1}, snapshot));
  TACIT_ASSIGN(Kept kept, Decode(read.values[0], rocks));
  // Only the last commit's appended items are known.
  if (kept.commit > seq.value + 1) return std::vector<HistoryItem>{};
  if (kept.commit > seq.value) kept.items.resize(kept.items.size() - std::exchange(kept.added, 0));
  kept.Forget(now);
  return std::move(kept.items);
}

Status RenumberHistories(const Rocks& rocks, uint16_t learner, std::span<const uint32_t> items,
                         rocksdb::WriteBatch* batch) {
  const std::string prefix = LearnerKey("", learner);
  auto* const family = rocks.family(Family::kHistories);
  const std::unique_ptr<rocksdb::Iterator> it(rocks.db().NewIterator({}, family));
  for (it->Seek(AsSlice(prefix)); it->Valid() && it->key().starts_with(AsSlice(prefix));
       it->Next()) {
    if (it->key().size() == prefix.size()) continue;  // the step
    TACIT_ASSIGN(const std::string_view payload,
                 Unseal(it->value().ToStringView(), "a user's history in store " + rocks.path()));
    TACIT_ASSIGN(Kept kept, Decode(std::optional(std::string(payload)), rocks));
    for (HistoryItem& item : kept.items) {
      if (item.item >= items.size())
        return Fail(ErrorCode::kCorruption,
                    fmt::format("a user's history in store {} has item {} of {}", rocks.path(),
                                item.item, items.size()));
      item.item = items[item.item];
    }
    batch->Put(family, it->key(), Seal(Encode(kept)));
    if (batch->GetDataSize() > kRenumberedBytesMost)
      return Fail(ErrorCode::kRefused,
                  fmt::format("the histories of store {} are larger than {} MiB, and would have to "
                              "be written in one piece: leave the items that there were in their "
                              "order, and add new ones after them",
                              rocks.path(), kRenumberedBytesMost >> 20));
  }
  return ToStatus(it->status(), "reading histories of store " + rocks.path());
}

Status CheckHistories(const Rocks& rocks, uint16_t learner) {
  const std::string prefix = LearnerKey("", learner);
  const std::unique_ptr<rocksdb::Iterator> it(
      rocks.db().NewIterator({}, rocks.family(Family::kHistories)));
  for (it->Seek(AsSlice(prefix)); it->Valid() && it->key().starts_with(AsSlice(prefix));
       it->Next()) {
    TACIT_ASSIGN(const std::string_view payload,
                 Unseal(it->value().ToStringView(), "a user's history in store " + rocks.path()));
    if (it->key().size() == prefix.size()) continue;  // the step
    TACIT_ASSIGN(const Kept kept, Decode(std::optional(std::string(payload)), rocks));
    (void)kept;
  }
  return ToStatus(it->status(), "reading histories of store " + rocks.path());
}

std::shared_ptr<rocksdb::CompactionFilterFactory> MakeHistoryFilter(
    std::shared_ptr<RetentionClock> retention) {
  return std::make_shared<HistoryFilters>(std::move(retention));
}

}  // namespace tacit::store
