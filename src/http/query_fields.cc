#include "http/query_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace tacit::http {
namespace {

Result<std::string> Decoded(std::string_view name, std::string_view text, char plus) {
  std::string value;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      value += text[i] == '+' ? plus : text[i];
      continue;
    }
    std::array<uint8_t, 1> byte{};
    if (i + 2 >= text.size() || !FromHex(text.substr(i + 1, 2), byte))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: a % must be followed by two hexadecimal digits", name));
    value += static_cast<char>(byte[0]);
    i += 2;
  }
  return value;
}

}  // namespace

Status ForFields(
    std::string_view query,
    const std::function<Status(std::string_view name, const std::string& value)>& each) {
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), field.size() + 1));
    const size_t equals = field.find('=');
    const std::string_view name = field.substr(0, equals).substr(0, 30);
    TACIT_ASSIGN(const std::string value,
                 Decoded(name, equals == field.npos ? "" : field.substr(equals + 1), ' '));
    TACIT_RETURN_IF_ERROR(each(name, value));
  }
  return {};
}

Result<std::string> PathText(std::string_view what, std::string_view text) {
  return Decoded(what, text, '+');
}

Result<uint64_t> WholeNumber(std::string_view name, std::string_view value) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} must be a whole number, not '{}'", name, value.substr(0, 30)));
  return number;
}

}  // namespace tacit::http
