#include "store/allowance.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "store/seal.h"

namespace tacit::store {
namespace {

// The learner's step stands under its key alone, before its users.
std::string UserKey(uint16_t learner, const Hash128& user) {
  std::string key = LearnerKey("", learner);
  ByteWriter hash;
  hash.Put(user.low).Put(user.high);
  return key + hash.bytes();
}

Status Decode(std::string_view sealed, const Rocks& rocks, UserUses* uses) {
  const std::string what = fmt::format("a user's allowance in store {}", rocks.path());
  TACIT_ASSIGN(const std::string_view payload, Unseal(sealed, what));
  ByteReader reader(payload);
  uses->used = reader.Get<uint32_t>();
  uses->in_period = reader.Get<uint32_t>();
  uses->period = reader.Get<uint64_t>();
  if (!reader.at_end()) return Fail(ErrorCode::kCorruption, what + " is damaged");
  return {};
}

}  // namespace

void PutAllowances(const Rocks& rocks, uint16_t learner, const AllowanceCommit& commit,
                   rocksdb::WriteBatch* batch) {
  auto* family = rocks.family(Family::kAllowance);
  ByteWriter step;
  step.Put(commit.step);
  batch->Put(family, LearnerKey("", learner), Seal(step.bytes()));
  for (const UserUses& uses : commit.uses) {
    ByteWriter value;
    value.Put(uses.used).Put(uses.in_period).Put(uses.period);
    batch->Put(family, UserKey(learner, uses.user), Seal(value.bytes()));
  }
}

Result<uint64_t> ReadAllowances(const Rocks& rocks, uint16_t learner, std::span<UserUses> users) {
  rocksdb::DB& db = rocks.db();
  const auto release = [&db](const rocksdb::Snapshot* held) { db.ReleaseSnapshot(held); };
  const std::unique_ptr<const rocksdb::Snapshot, decltype(release)> snapshot(db.GetSnapshot(),
                                                                             release);
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.get();
  auto* family = rocks.family(Family::kAllowance);
  const std::string doing = fmt::format("reading allowances of store {}", rocks.path());

  std::vector<std::string> keys{LearnerKey("", learner)};
  for (const UserUses& user : users) keys.push_back(UserKey(learner, user.user));
  const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  db.MultiGet(options, family, keys.size(), slices.data(), values.data(), statuses.data());

  uint64_t step = 0;
  if (!statuses[0].IsNotFound()) {
    TACIT_RETURN_IF_ERROR(ToStatus(statuses[0], doing));
    TACIT_ASSIGN(const std::string_view payload, Unseal(values[0].ToStringView(), doing));
    step = ByteReader(payload).Get<uint64_t>();
  }
  for (size_t i = 0; i < users.size(); ++i) {
    users[i] = {.user = users[i].user};
    if (statuses[i + 1].IsNotFound()) continue;
    TACIT_RETURN_IF_ERROR(ToStatus(statuses[i + 1], doing));
    TACIT_RETURN_IF_ERROR(Decode(values[i + 1].ToStringView(), rocks, &users[i]));
  }
  return step;
}

Result<bool> HasAllowances(const Rocks& rocks) {
  const std::unique_ptr<rocksdb::Iterator> it(
      rocks.db().NewIterator({}, rocks.family(Family::kAllowance)));
  it->SeekToFirst();
  TACIT_RETURN_IF_ERROR(ToStatus(it->status(), "reading allowances of store " + rocks.path()));
  return it->Valid();
}

}  // namespace tacit::store
