#pragma once

#include <utility>

#include "base/result.h"

namespace tacit::console {

// Exit codes that scripts and systemd rely on.
enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,           // at run time
  kExitUsage = 2,            // command line, configuration, or a model that diverges under it
  kExitStoreRefused = 3,     // locked, damaged, older than its witness, of another model
  kExitBudgetExhausted = 4,  // with on_exhausted: exit
  kExitHalted = 5,           // --until-end, and source.halt_above halted training
};

// The failure of brokers: kUnavailable stands for a store that refuses (exit status 3), and brokers
// that are away are a failure of this run (1).
inline tl::unexpected<Error> FailOfBrokers(Error error) {
  if (error.code == ErrorCode::kUnavailable) error.code = ErrorCode::kIo;
  return Fail(std::move(error));
}

// Prints "PROGRAM: message" to standard error and returns the code for it.
int Report(const char* program, const Error& error);

}  // namespace tacit::console
