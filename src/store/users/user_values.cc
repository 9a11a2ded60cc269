#include "store/users/user_values.h"

#include <fmt/format.h>

#include <memory>

#include "base/bytes.h"
#include "store/disk/seal.h"

namespace tacit::store {

std::string UserKey(uint16_t learner, const Hash128& user) {
  std::string key = LearnerKey("", learner);
  ByteWriter hash;
  hash.Put(user.low).Put(user.high);
  return key + hash.bytes();
}

Result<UserValues> ReadUserValues(const Rocks& rocks, Family family, uint16_t learner,
                                  std::span<const Hash128> users,
                                  const rocksdb::Snapshot* snapshot) {
  rocksdb::DB& db = rocks.db();
  const auto release = [&db](const rocksdb::Snapshot* held) { db.ReleaseSnapshot(held); };
  std::unique_ptr<const rocksdb::Snapshot, decltype(release)> now(nullptr, release);
  if (snapshot == nullptr) now.reset(db.GetSnapshot());
  rocksdb::ReadOptions options;
  options.snapshot = snapshot != nullptr ? snapshot : now.get();
  const std::string doing = fmt::format("reading the values of users in store {}", rocks.path());

  std::vector<std::string> keys{LearnerKey("", learner)};
  for (const Hash128& user : users) keys.push_back(UserKey(learner, user));
  const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> found(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  db.MultiGet(options, rocks.family(family), keys.size(), slices.data(), found.data(),
              statuses.data());

  UserValues read;
  read.values.resize(users.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].IsNotFound()) continue;
    TACIT_RETURN_IF_ERROR(ToStatus(statuses[i], doing));
    TACIT_ASSIGN(const std::string_view payload, Unseal(found[i].ToStringView(), doing));
    if (i == 0) {
      read.step = ByteReader(payload).Get<uint64_t>();
    } else {
      read.values[i - 1] = std::string(payload);
    }
  }
  return read;
}

void PutUserStep(const Rocks& rocks, Family family, uint16_t learner, uint64_t step,
                 rocksdb::WriteBatch* batch) {
  ByteWriter value;
  value.Put(step);
  batch->Put(rocks.family(family), LearnerKey("", learner), Seal(value.bytes()));
}

void PutUserValue(const Rocks& rocks, Family family, uint16_t learner, const Hash128& user,
                  std::string_view value, rocksdb::WriteBatch* batch) {
  batch->Put(rocks.family(family), UserKey(learner, user), Seal(value));
}

}  // namespace tacit::store
