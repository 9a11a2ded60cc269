// The values of `allowance`, sealed. The notation is base/bytes.h's, the keys are user_values.h's.
//     uses    := used:u32 in_period:u32 period:u64     steps ever, of them in `period`, that period
#include "store/allowance.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "store/seal.h"
#include "store/user_values.h"

namespace tacit::store {
namespace {

Status Decode(std::string_view payload, const Rocks& rocks, UserUses* uses) {
  ByteReader reader(payload);
  uses->used = reader.Get<uint32_t>();
  uses->in_period = reader.Get<uint32_t>();
  uses->period = reader.Get<uint64_t>();
  if (reader.at_end()) return {};
  return Fail(ErrorCode::kCorruption,
              fmt::format("a user's allowance in store {} is damaged", rocks.path()));
}

}  // namespace

void PutAllowances(const Rocks& rocks, uint16_t learner, const AllowanceCommit& commit,
                   rocksdb::WriteBatch* batch) {
  PutUserStep(rocks, Family::kAllowance, learner, commit.step, batch);
  for (const UserUses& uses : commit.uses) {
    ByteWriter value;
    value.Put(uses.used).Put(uses.in_period).Put(uses.period);
    PutUserValue(rocks, Family::kAllowance, learner, uses.user, value.bytes(), batch);
  }
}

Result<uint64_t> ReadAllowances(const Rocks& rocks, uint16_t learner, std::span<UserUses> users) {
  std::vector<Hash128> names;
  for (const UserUses& user : users) names.push_back(user.user);
  TACIT_ASSIGN(const UserValues read, ReadUserValues(rocks, Family::kAllowance, learner, names));
  for (size_t i = 0; i < users.size(); ++i) {
    users[i] = {.user = users[i].user};
    if (read.values[i]) TACIT_RETURN_IF_ERROR(Decode(*read.values[i], rocks, &users[i]));
  }
  return read.step;
}

Result<uint32_t> CountMostUses(const Rocks& rocks, uint16_t learner) {
  const std::unique_ptr<rocksdb::Iterator> it(
      rocks.db().NewIterator({}, rocks.family(Family::kAllowance)));
  const std::string prefix = LearnerKey("", learner);
  uint32_t most = 0;
  for (it->Seek(AsSlice(prefix)); it->Valid() && it->key().starts_with(AsSlice(prefix));
       it->Next()) {
    if (it->key().size() == prefix.size()) continue;  // the step the counts are as of
    TACIT_ASSIGN(const std::string_view payload,
                 Unseal(it->value().ToStringView(), "a user's allowance in store " + rocks.path()));
    UserUses uses;
    TACIT_RETURN_IF_ERROR(Decode(payload, rocks, &uses));
    most = std::max(most, uses.used);
  }
  TACIT_RETURN_IF_ERROR(ToStatus(it->status(), "reading allowances of store " + rocks.path()));
  return most;
}

Result<bool> HasAllowances(const Rocks& rocks) {
  const std::unique_ptr<rocksdb::Iterator> it(
      rocks.db().NewIterator({}, rocks.family(Family::kAllowance)));
  it->SeekToFirst();
  TACIT_RETURN_IF_ERROR(ToStatus(it->status(), "reading allowances of store " + rocks.path()));
  return it->Valid();
}

}  // namespace tacit::store
