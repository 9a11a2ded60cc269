#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/siphash.h"
#include "store/rocks.h"

// What the families that are kept by learner and user have in common: the learner's step stands
// under its key alone, before its users.
namespace tacit::store {

std::string UserKey(uint16_t learner, const Hash128& user);

struct UserValues {
  uint64_t step = 0;                               // that they are as of
  std::vector<std::optional<std::string>> values;  // unsealed, by user; nothing where there is none
};
// The values of these users, all from one moment: of `snapshot`, or of now where it is null.
Result<UserValues> ReadUserValues(const Rocks& rocks, Family family, uint16_t learner,
                                  std::span<const Hash128> users,
                                  const rocksdb::Snapshot* snapshot = nullptr);
void PutUserStep(const Rocks& rocks, Family family, uint16_t learner, uint64_t step,
                 rocksdb::WriteBatch* batch);
void PutUserValue(const Rocks& rocks, Family family, uint16_t learner, const Hash128& user,
                  std::string_view value, rocksdb::WriteBatch* batch);

}  // namespace tacit::store
