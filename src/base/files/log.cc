#include "base/files/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cmath>
#include <memory>

#include "base/text.h"

namespace tacit {
namespace {

// The fields of the record that this thread is about to log, as JSON behind a comma; null if it has
// none. A sink formats on the thread that logs.
thread_local const std::string* fields_of_record = nullptr;

// Appends text as the inside of a JSON string. Control characters are left out, except the end of
// a line; bytes that are not UTF-8 are shown as Printable has them.
template <class Out>
void AppendInside(std::string_view text, Out* out) {
  std::string printable;
  if (!IsUtf8(text)) text = printable = Printable(text);
  for (const char c : text) {
    switch (c) {
      case '"':
      case '\\':
        out->push_back('\\');
        out->push_back(c);
        break;
      case '\n':
        out->push_back('\\');
        out->push_back('n');
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) out->push_back(c);
    }
  }
}

// The message as the inside of a JSON string.
class JsonMessageFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& msg, const std::tm&,
              spdlog::memory_buf_t& dest) override {
    AppendInside({msg.payload.data(), msg.payload.size()}, &dest);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessageFlag>();
  }
};

// The message as a terminal may have it: it may quote bytes of others, and lines are read there.
class PrintableMessageFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& msg, const std::tm&,
              spdlog::memory_buf_t& dest) override {
    const std::string text = Printable({msg.payload.data(), msg.payload.size()});
    dest.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableMessageFlag>();
  }
};

class JsonFieldsFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&,
              spdlog::memory_buf_t& dest) override {
    if (fields_of_record == nullptr) return;
    dest.append(fields_of_record->data(), fields_of_record->data() + fields_of_record->size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonFieldsFlag>();
  }
};

}  // namespace

LogField::LogField(std::string_view name, Json, std::string_view json) {
  json_ = fmt::format(R"("{}":{})", name, json);
}

LogField::LogField(std::string_view name, std::string_view text) {
  json_ = fmt::format(R"("{}":")", name);
  AppendInside(text, &json_);
  json_ += '"';
}

LogField::LogField(std::string_view name, double number)
    : LogField(name, Json{}, std::isfinite(number) ? fmt::format("{}", number) : "null") {}

LogField::LogField(std::string_view name, const std::vector<std::vector<LogField>>& objects) {
  json_ = fmt::format(R"("{}":[)", name);
  for (const auto& object : objects) {
    json_ += &object == &objects.front() ? "{" : ",{";
    for (const LogField& field : object)
      json_ += (&field == &object.front() ? "" : ",") + field.json();
    json_ += '}';
  }
  json_ += ']';
}

void LogEvent(spdlog::level::level_enum level, std::string_view event,
              const std::vector<LogField>& fields, std::string_view message) {
  std::string json = fmt::format(R"(,"event":"{}")", event);
  for (const LogField& field : fields) json += "," + field.json();
  fields_of_record = &json;
  spdlog::log(level, "{}", message);
  fields_of_record = nullptr;
}

void InitLogging(LogFormat format, std::string_view level) {
  auto logger =
      std::make_shared<spdlog::logger>("tacit", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (format == LogFormat::kJson) {
    formatter->add_flag<JsonMessageFlag>('*');
    formatter->add_flag<JsonFieldsFlag>('&');
    formatter->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":"%*"%&})");
  } else {
    formatter->add_flag<PrintableMessageFlag>('*');
    formatter->set_pattern("%Y-%m-%d %H:%M:%S.%e %L %*");
  }
  logger->set_formatter(std::move(formatter));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  SetLogLevel(level);
}

void SetLogLevel(std::string_view level) {
  spdlog::default_logger_raw()->set_level(spdlog::level::from_str(std::string(level)));
}

}  // namespace tacit
