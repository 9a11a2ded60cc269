#pragma once

#include <spdlog/spdlog.h>

#include <string>
#include <string_view>

namespace tacit {

enum class LogFormat { kText, kJson };

// Sets up logging to standard error for the whole process; called once, by app. Records carry a
// level, a time and a message: never a payload, a feature value or a secret.
// Elsewhere: `spdlog::info("commit {} took {:.1f} ms", seq, ms)`.
void InitLogging(LogFormat format, std::string_view level);

}  // namespace tacit
