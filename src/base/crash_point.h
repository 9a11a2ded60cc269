#pragma once

namespace tacit {

// Marks a moment at which the process might die ("commit.synced"). The product's definition does
// nothing; the crash tests link another one, which kills the process there on demand. Linking
// decides, so nothing can make a shipped binary die.
void CrashPoint(const char* name);

}  // namespace tacit
