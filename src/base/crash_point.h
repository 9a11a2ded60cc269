#pragma once

namespace tacit {

// Marks a moment at which the process might die ("commit.synced"). In the product this does
// nothing; the crash tests link another definition that kills the process there on demand. It is
// chosen at link time, so nothing in a shipped binary can be made to die.
void CrashPoint(const char* name);

}  // namespace tacit
