#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

// Two configurations beside each other: a running daemon's, and what its file says by now.
namespace tacit::config {

// A running daemon's use of a key whose value has changed in the file.
enum class AtReload {
  kTaken,  // it goes on with the new value
  kStays,  // it keeps its own until it is started anew
};

// A row of the table of all keys: the key itself, or a section and all keys in it that have no row
// of their own.
struct ReloadRow {
  std::string_view key;
  AtReload use;
  std::string_view why;  // it stays
};
std::span<const ReloadRow> ReloadTable();

// The row of a key, by its path ("learners.0.privacy.epsilon") or pattern; null: it has none.
const ReloadRow* ReloadRowOf(std::string_view key);

// A key that two configurations have different values of. Secrets are not shown. A key that one of
// them does not have shows as "nothing".
struct Change {
  std::string key;  // "learners.0.privacy.epsilon"
  std::string before, now;
};

// The changes from one configuration to another, in the order of the description. Both were read
// with LogFiles::kUnread.
std::vector<Change> ChangesOf(const Config& before, const Config& now);

// Copies the values of all keys that are taken. Those of serve.callers and serve.tls are, where
// another file is named than before; where there was none, or is none now, they stay.
void TakeReloaded(const Config& from, Config* to);

}  // namespace tacit::config
