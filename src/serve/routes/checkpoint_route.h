#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/http.h"
#include "store/checkpoint/checkpoint.h"

namespace tacit::serve {

// A checkpoint that was asked for. A value.
struct CheckpointJob {
  enum class State : uint8_t { kRunning, kDone, kFailed };
  uint64_t id = 0;  // counts from 1
  store::CheckpointKind kind = store::CheckpointKind::kFull;
  State state = State::kRunning;
  std::string error = {};                          // kFailed: why
  std::optional<store::CheckpointMade> made = {};  // kDone
};

// The checkpoints of a running daemon.
struct CheckpointReport {
  std::string path;                        // the folder that they are in
  std::optional<CheckpointJob> last = {};  // the last one asked for, or due
  std::vector<store::CheckpointPlace> places = {};
  std::vector<std::string> unreadable = {};
};

// The questions of the operator's routes to the daemon. Server threads call both at once.
struct CheckpointCommands {
  // Begins a checkpoint and returns at once. kUnavailable: one is being made.
  std::function<Result<CheckpointJob>(store::CheckpointKind)> start;
  std::function<Result<CheckpointReport>()> report;
};

// Appends a checkpoint as a JSON object.
void AppendCheckpoint(const store::CheckpointPlace& place, std::string* out);

// Answers POST /v1/checkpoints: begins one (202), of the kind in the body, {"kind":"release"}; full
// where the body is empty.
void AnswerMakeCheckpoint(const CheckpointCommands& commands, std::string_view body,
                          http::Reply* reply);
// Answers GET /v1/checkpoints: the last one asked for, and all that there are.
void AnswerCheckpoints(const CheckpointCommands& commands, http::Reply* reply);

}  // namespace tacit::serve
