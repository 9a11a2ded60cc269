#pragma once

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

// Prints "PROGRAM: message" to standard error and returns the code for it.
int Report(const char* program, const Error& error);

}  // namespace tacit::console
