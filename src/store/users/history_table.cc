// The values are history_value.h's, the keys user_values.h's.
#include "store/users/history_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "store/disk/history_value.h"
#include "store/disk/seal.h"
#include "store/users/user_values.h"

namespace tacit::store {
namespace {

// A batch is in memory until it is written, twice for a while.
constexpr size_t kRenumberedBytesMost = size_t{1} << 30;

Result<KeptHistory> Decode(const std::optional<std::string>& payload, const Rocks& rocks) {
  KeptHistory kept;
  if (!payload || DecodeHistory(*payload, &kept)) return kept;
  return Fail(ErrorCode::kCorruption,
              fmt::format("a user's history in store {} is damaged", rocks.path()));
}

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
      TACIT_ASSIGN(KeptHistory kept, Decode(read.values[i], rocks));
      items = some[i].items;
      forgotten.DropForgotten(users[i], now, &items);
      if (items.empty() && !read.values[i]) continue;
      kept.commit = seq.value;
      kept.age_most = commit.age_most_ms;
      kept.Append(items, commit.items_most, now, known);
      PutUserValue(rocks, Family::kHistories, learner, users[i], EncodeHistory(kept), batch);
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
    TACIT_ASSIGN(KeptHistory kept, Decode(read.values[i], rocks));
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
  TACIT_ASSIGN(KeptHistory kept, Decode(read.values[0], rocks));
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
    TACIT_ASSIGN(KeptHistory kept, Decode(std::optional(std::string(payload)), rocks));
    for (HistoryItem& item : kept.items) {
      if (item.item >= items.size())
        return Fail(ErrorCode::kCorruption,
                    fmt::format("a user's history in store {} has item {} of {}", rocks.path(),
                                item.item, items.size()));
      item.item = items[item.item];
    }
    batch->Put(family, it->key(), Seal(EncodeHistory(kept)));
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
    TACIT_ASSIGN(const KeptHistory kept, Decode(std::optional(std::string(payload)), rocks));
    (void)kept;
  }
  return ToStatus(it->status(), "reading histories of store " + rocks.path());
}

}  // namespace tacit::store
