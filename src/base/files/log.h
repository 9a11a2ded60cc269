#pragma once

#include <spdlog/spdlog.h>

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace tacit {

enum class LogFormat { kText, kJson };

// Sets up logging to standard error for the whole process; called once, by app. Records carry a
// level, a time and a message: never a payload, a feature value or a secret.
// Elsewhere: `spdlog::info("commit {} took {:.1f} ms", seq, ms)`.
void InitLogging(LogFormat format, std::string_view level);

// Logs records from this level on, from now on. Any thread.
void SetLogLevel(std::string_view level);

// A figure of a log record, by name, for programs that read the log as JSON. A number that is none
// becomes null.
class LogField {
 public:
  LogField(std::string_view name, std::string_view text);
  LogField(std::string_view name, const char* text) : LogField(name, std::string_view(text)) {}
  LogField(std::string_view name, const std::string& text)
      : LogField(name, std::string_view(text)) {}
  LogField(std::string_view name, double number);
  LogField(std::string_view name, std::integral auto number)
      : LogField(name, Json{}, std::to_string(number)) {}
  // A list of objects.
  LogField(std::string_view name, const std::vector<std::vector<LogField>>& objects);

  // The pair as it stands in an object: "name":value.
  const std::string& json() const { return json_; }

 private:
  struct Json {};
  LogField(std::string_view name, Json, std::string_view json);

  std::string json_;
};

// Logs a record whose figures are fields as well. `event` names its kind, in snake_case. As text
// only the message shows. No name may be one of: time, level, message, event.
void LogEvent(spdlog::level::level_enum level, std::string_view event,
              const std::vector<LogField>& fields, std::string_view message);

}  // namespace tacit
