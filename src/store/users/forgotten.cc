// The values of `forgotten/` in `meta`, sealed. The notation is base/bytes.h's.
//     key       := "forgotten/" low:u64 high:u64       the user's hash, as in user_values.h
//     forgotten := before_ms:i64 erased:u8             erased: 1, or 0 while files may hold bytes
#include "store/users/forgotten.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <unordered_set>

#include "base/bytes.h"
#include "store/disk/seal.h"
#include "store/users/user_values.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

// From this number of users on, one pass over all histories is cheaper than one for each.
constexpr size_t kOneByOneMost = 16;
constexpr std::chrono::milliseconds kBetweenLooksAtReaders(20);

std::string ForgottenKey(const Hash128& user) {
  ByteWriter hash;
  hash.Put(user.low).Put(user.high);
  return std::string(meta::kForgottenPrefix) + std::string(hash.bytes());
}

void PutValue(const Rocks& rocks, const ForgottenUser& user, bool erased,
              rocksdb::WriteBatch* batch) {
  ByteWriter value;
  value.Put(user.before_ms).Put(static_cast<uint8_t>(erased));
  batch->Put(rocks.family(Family::kMeta), ForgottenKey(user.user), Seal(value.bytes()));
}

Status GivenUp() { return Fail(ErrorCode::kUnavailable, "erasing forgotten users was given up"); }

// A snapshot keeps what was deleted after it was taken.
Status WaitForReaders(const Rocks& rocks, uint64_t deletion, const std::atomic<bool>& given_up) {
  for (;;) {
    uint64_t oldest = 0;
    rocks.db().GetIntProperty(rocksdb::DB::Properties::kOldestSnapshotSequence, &oldest);
    if (oldest == 0 || oldest >= deletion) return {};
    if (given_up) return GivenUp();
    std::this_thread::sleep_for(kBetweenLooksAtReaders);
  }
}

Status Rewrite(const Rocks& rocks, const std::string* begin, const std::string* end,
               const std::atomic<bool>* given_up) {
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.canceled = const_cast<std::atomic<bool>*>(given_up);  // RocksDB only reads it
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  const rocksdb::Slice first = begin == nullptr ? rocksdb::Slice() : AsSlice(*begin);
  const rocksdb::Slice last = end == nullptr ? rocksdb::Slice() : AsSlice(*end);
  const rocksdb::Status status = rocks.db().CompactRange(options, rocks.family(Family::kHistories),
                                                         begin == nullptr ? nullptr : &first,
                                                         end == nullptr ? nullptr : &last);
  if (*given_up) return GivenUp();
  return ToStatus(status, "rewriting the histories of store " + rocks.path());
}

// Adds the store's files of this kind that hold anything.
Status AddFiles(const Rocks& rocks, const char* kind, std::vector<fs::path>* files) {
  std::error_code error;
  for (fs::directory_iterator file(rocks.path(), error), end; !error && file != end;
       file.increment(error)) {
    std::error_code gone;
    if (file->path().extension() == kind && file->file_size(gone) != 0 && !gone)
      files->push_back(file->path());
  }
  if (!error) return {};
  return Fail(ErrorCode::kIo,
              fmt::format("listing the files of store {}: {}", rocks.path(), error.message()));
}

// RocksDB unlinks a file some time after its last use: when the last reader of an older version is
// gone, and on the thread that notices it. A table that is being written now is waited for too,
// until it is in use or given up.
Status WaitForOldFiles(const Rocks& rocks, std::vector<fs::path> files,
                       const std::atomic<bool>& given_up) {
  TACIT_RETURN_IF_ERROR(AddFiles(rocks, ".sst", &files));
  for (;;) {
    std::vector<rocksdb::LiveFileMetaData> tables;
    rocks.db().GetLiveFilesMetaData(&tables);
    std::unordered_set<std::string> used;
    for (const rocksdb::LiveFileMetaData& table : tables) used.insert(table.relative_filename);
    std::erase_if(files, [&](const fs::path& file) {
      std::error_code error;
      return used.contains(file.filename()) || !fs::exists(file, error);
    });
    if (files.empty()) return {};
    if (given_up) return GivenUp();
    std::this_thread::sleep_for(kBetweenLooksAtReaders);
  }
}

}  // namespace

ForgottenUsers::ForgottenUsers(std::span<const ForgottenUser> users) {
  for (const ForgottenUser& user : users) users_.emplace(user.user, Kept{user, 0});
}

void ForgottenUsers::Add(const ForgottenUser& user, uint64_t deletion) {
  const MutexLock lock(mutex_);
  users_.insert_or_assign(user.user, Kept{user, deletion});
}

std::optional<ForgottenUser> ForgottenUsers::Find(const Hash128& user) const {
  const MutexLock lock(mutex_);
  const auto found = users_.find(user);
  if (found == users_.end()) return std::nullopt;
  return found->second.user;
}

void ForgottenUsers::DropForgotten(const Hash128& user, int64_t now,
                                   std::vector<HistoryItem>* items) const {
  const auto forgotten = Find(user);
  if (!forgotten) return;
  std::erase_if(*items, [&](const HistoryItem& item) {
    return item.timestamp_ms == 0 || item.timestamp_ms <= forgotten->before_ms ||
           item.timestamp_ms > now;
  });
}

ForgottenUsers::ToErase ForgottenUsers::Unerased() const {
  const MutexLock lock(mutex_);
  ToErase erase;
  for (const auto& [hash, kept] : users_) {
    if (kept.user.erased) continue;
    erase.users.push_back(kept.user);
    erase.deletion = std::max(erase.deletion, kept.deletion);
  }
  return erase;
}

void ForgottenUsers::Erased(std::span<const ForgottenUser> users) {
  const MutexLock lock(mutex_);
  for (const ForgottenUser& user : users) {
    ForgottenUser& kept = users_.at(user.user).user;
    kept.erased = kept.erased || kept.before_ms == user.before_ms;
  }
}

void PutForgotten(const Rocks& rocks, size_t learners, const ForgottenUser& user,
                  rocksdb::WriteBatch* batch) {
  for (size_t learner = 0; learner < learners; ++learner)
    batch->Delete(rocks.family(Family::kHistories),
                  UserKey(static_cast<uint16_t>(learner), user.user));
  PutValue(rocks, user, false, batch);
}

void PutErased(const Rocks& rocks, const ForgottenUser& user, rocksdb::WriteBatch* batch) {
  PutValue(rocks, user, true, batch);
}

Result<std::vector<ForgottenUser>> ReadForgotten(const Rocks& rocks) {
  TACIT_ASSIGN(const auto values, rocks.Scan(Family::kMeta, meta::kForgottenPrefix));
  std::vector<ForgottenUser> users;
  for (const auto& [key, value] : values) {
    ByteReader hash(std::string_view(key).substr(meta::kForgottenPrefix.size()));
    ForgottenUser user;
    user.user.low = hash.Get<uint64_t>();
    user.user.high = hash.Get<uint64_t>();
    ByteReader reader(value);
    user.before_ms = reader.Get<int64_t>();
    user.erased = reader.Get<uint8_t>() != 0;
    if (!hash.at_end() || !reader.at_end())
      return Fail(ErrorCode::kCorruption,
                  fmt::format("store {}: the record of a forgotten user is damaged", rocks.path()));
    users.push_back(user);
  }
  std::ranges::sort(users, {}, &ForgottenUser::user);
  return users;
}

Status EraseFromFiles(const Rocks& rocks, size_t learners, const ForgottenUsers::ToErase& erase,
                      const std::atomic<bool>* given_up) {
  TACIT_RETURN_IF_ERROR(WaitForReaders(rocks, erase.deletion, *given_up));
  std::vector<fs::path> logs;
  TACIT_RETURN_IF_ERROR(AddFiles(rocks, ".log", &logs));
  TACIT_RETURN_IF_ERROR(rocks.EmptyLog());
  if (erase.users.size() > kOneByOneMost) {
    TACIT_RETURN_IF_ERROR(Rewrite(rocks, nullptr, nullptr, given_up));
    return WaitForOldFiles(rocks, std::move(logs), *given_up);
  }
  for (const ForgottenUser& user : erase.users) {
    for (size_t learner = 0; learner < learners; ++learner) {
      const std::string key = UserKey(static_cast<uint16_t>(learner), user.user);
      TACIT_RETURN_IF_ERROR(Rewrite(rocks, &key, &key, given_up));
    }
  }
  return WaitForOldFiles(rocks, std::move(logs), *given_up);
}

Status ForgetAgain(const Rocks& rocks, size_t learners, std::span<const ForgottenUser> users) {
  TACIT_ASSIGN(const auto own, ReadForgotten(rocks));
  ForgottenUsers known(own);
  rocksdb::WriteBatch batch;
  for (const ForgottenUser& user : users) {
    const auto before = known.Find(user.user);
    if (before && before->before_ms >= user.before_ms) continue;
    PutForgotten(rocks, learners, user, &batch);
    known.Add(user, 0);
  }
  return batch.Count() == 0 ? Status{} : rocks.WriteSynced(batch);
}

}  // namespace tacit::store
