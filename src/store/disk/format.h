#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/result.h"

namespace rocksdb {
class WriteBatch;
}

namespace tacit::store {

class Rocks;

// The store's format. It rises when bytes change their meaning, or when an older program would
// leave a new value wrong.
inline constexpr uint32_t kStoreFormat = 1;

// Makes a store of format `from` one of the next: puts into the batch what has another form there.
struct FormatStep {
  uint32_t from = 0;
  std::function<Status(const Rocks&, rocksdb::WriteBatch*)> put;
};

// Checks that a store has kStoreFormat. Returns false if nothing was ever written. kRefused: it has
// another format, or was written before 0.1.0.
Result<bool> CheckStoreFormat(const Rocks& rocks);

// Brings a store up to kStoreFormat, if these steps lead there. Each step is one synced batch with
// the format that it leads to, so that after a crash the next call goes on.
Status BringUp(const Rocks& rocks, std::span<const FormatStep> steps);

}  // namespace tacit::store
