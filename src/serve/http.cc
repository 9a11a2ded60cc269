#include "serve/http.h"

#include <fmt/format.h>

#include <iterator>

namespace tacit::serve {
namespace {

// Bytes of the well-formed UTF-8 sequence that `text` begins with (RFC 3629), or 0.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

}  // namespace

void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    const char c = text[0];
    const size_t length = Utf8Length(text);
    if (length == 0) {
      out->append("\xef\xbf\xbd");
    } else if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (static_cast<uint8_t>(c) < 0x20) {
      fmt::format_to(std::back_inserter(*out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out->append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out->push_back('"');
}

void SetError(uint32_t status, std::string_view message, Reply* reply) {
  reply->status = status;
  reply->content_type = "application/json";
  reply->body = fmt::format(R"({{"error":{{"code":{},"message":)", status);
  AppendJsonString(message, &reply->body);
  reply->body += "}}\n";
}

}  // namespace tacit::serve
