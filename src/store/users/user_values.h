#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/siphash.h"
#include "store/disk/rocks.h"

// Common code of the families with a value per learner and user. The learner's step is stored under
// the learner's key alone, before its users. The notation is base/bytes.h's; values are sealed.
//     key of a learner := learner:u16 big-endian               value: step:u64
//     key of a user    := learner:u16 big-endian low:u64 high:u64     both little-endian
// `low` and `high` are SipHash-2-4-128 of the user's id under the store's `user_key`.
namespace tacit::store {

std::string UserKey(uint16_t learner, const Hash128& user);

struct UserValues {
  uint64_t step = 0;                               // the step that the values are as of
  std::vector<std::optional<std::string>> values;  // unsealed, by user; nothing if there is none
};
// Reads the values of these users, all from one moment: that of `snapshot`, or now if it is null.
Result<UserValues> ReadUserValues(const Rocks& rocks, Family family, uint16_t learner,
                                  std::span<const Hash128> users,
                                  const rocksdb::Snapshot* snapshot = nullptr);
void PutUserStep(const Rocks& rocks, Family family, uint16_t learner, uint64_t step,
                 rocksdb::WriteBatch* batch);
void PutUserValue(const Rocks& rocks, Family family, uint16_t learner, const Hash128& user,
                  std::string_view value, rocksdb::WriteBatch* batch);

}  // namespace tacit::store
