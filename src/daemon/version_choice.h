#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "serve/versions/canary.h"

namespace tacit::daemon {

// The versions that an operator has chosen to serve, until told otherwise.
struct VersionChoice {
  std::string lineage;
  uint64_t serving = 0;
  std::optional<serve::Canary> canary = {};
};

// Reads the file of serve.versions.file; nothing where there is none. kInvalidArgument names the
// file and what is wrong in it.
Result<std::optional<VersionChoice>> ReadChoice(const std::string& path);
// Writes it, whole or not at all; without a choice it removes the file.
Status WriteChoice(const std::string& path, const std::optional<VersionChoice>& choice);

}  // namespace tacit::daemon
