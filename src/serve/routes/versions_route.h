#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/http.h"
#include "serve/versions/canary.h"

namespace tacit::serve {

// A version that is open, or could be opened.
struct VersionPlace {
  uint64_t version = 0;
  std::string folder;
  bool open = false;
};

// The versions of a server of checkpoints.
struct VersionReport {
  uint64_t serving = 0;
  bool held = false;  // the operator has chosen it: newer checkpoints do not move it
  std::optional<Canary> canary = {};
  uint32_t open_most = 0;
  std::vector<VersionPlace> places = {};  // ascending
};

// An operator's order, as it came.
struct VersionOrder {
  enum class Serve : uint8_t { kAsItIs, kNewest, kVersion };
  Serve serve = Serve::kAsItIs;
  uint64_t version = 0;  // kVersion
  bool sets_canary = false;
  std::optional<Canary> canary = {};  // nothing if there is none from now on
};

// Orders and questions of the operator's routes. Server threads call both at once.
struct VersionCommands {
  // Follows an order, and returns how things are then. kNotFound: there is no such version;
  // kInvalidArgument: more would be open than may be. After a failure all is as before.
  std::function<Result<VersionReport>(const VersionOrder& order)> set;
  std::function<Result<VersionReport>()> report;
};

// Answers GET /v1/versions.
void AnswerVersions(const VersionCommands& commands, http::Reply* reply);
// Answers POST /v1/versions: {"serve":12|"newest","canary":{"version":14,"share":0.1}|null}, of
// which either may be left out.
void AnswerSetVersions(const VersionCommands& commands, std::string_view body, http::Reply* reply);

}  // namespace tacit::serve
