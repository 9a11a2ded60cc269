#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/fields.h"

// Two configurations beside each other: a running daemon's, and what its file says by now.
namespace tacit::config {

// A key that two configurations have different values of. Secrets are not shown. A key that one of
// them does not have shows as "nothing".
struct Change {
  std::string key;  // "learners.0.privacy.epsilon"
  std::string before, now;
  AtReload reload = AtReload::kStays;
};

// The reason why a key keeps its value until a start, by the section of its path; empty if no
// section has this name.
std::string_view WhyItStays(std::string_view path);

// The changes from one configuration to another, in the order of the description. Both were read
// with LogFiles::kUnread.
std::vector<Change> ChangesOf(const Config& before, const Config& now);

// Copies the values of all keys that are taken. serve.callers and serve.tls are taken only if
// a file was named before and one is named now.
void TakeReloaded(const Config& from, Config* to);

}  // namespace tacit::config
