#pragma once

#include "base/result.h"

namespace tacit::app {

// What scripts and systemd rely on.
enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,           // at run time
  kExitUsage = 2,            // command line or configuration
  kExitStoreRefused = 3,     // locked, older than its witness, of another model
  kExitBudgetExhausted = 4,  // with on_exhausted: exit
};

// Prints "PROGRAM: message" to standard error and returns the code for it.
int Report(const char* program, const Error& error);

}  // namespace tacit::app
