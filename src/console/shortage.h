#pragma once

#include <exception>

namespace tacit::console {

// From now on the process ends with a sentence on standard error and kExitFailed where the system
// refuses one of its threads memory or another thread, and nobody catches that. Another exception
// that nobody catches aborts, as before. Call it first in main.
void EndOnShortage();

// The sentence for such a refusal; null for another exception.
const char* ShortageText(const std::exception& error);

}  // namespace tacit::console
