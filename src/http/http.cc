#include "http/http.h"

#include <fmt/format.h>

#include <iterator>

#include "base/text.h"

namespace tacit::http {
namespace {

uint32_t StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 400;
    case ErrorCode::kRefused:
      return 403;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
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

ErrorForm ErrorFormFor(std::string_view path) {
  return path == "/v2" || path.starts_with("/v2/") ? ErrorForm::kInference : ErrorForm::kCode;
}

Reply ReplyFor(std::string_view path) {
  Reply reply;
  reply.error_form = ErrorFormFor(path);
  return reply;
}

void SetError(uint32_t status, std::string_view message, Reply* reply) {
  reply->status = status;
  reply->content_type = "application/json";
  const bool has_code = reply->error_form == ErrorForm::kCode;
  reply->body = R"({"error":)";
  if (has_code) reply->body += fmt::format(R"({{"code":{},"message":)", status);
  AppendJsonString(message, &reply->body);
  reply->body += has_code ? "}}\n" : "}\n";
}

void SetFailure(const Error& error, Reply* reply) {
  SetError(StatusOf(error.code), error.message, reply);
  if (reply->status == 503) reply->headers.emplace_back("Retry-After", "1");
}

void SetUnauthorized(std::string_view message, Reply* reply) {
  SetError(401, message, reply);
  reply->headers.emplace_back("WWW-Authenticate", R"(Bearer realm="tacit")");
}

void SetServerFailure(const Error& error, Reply* reply) {
  const bool passes = error.code == ErrorCode::kUnavailable;
  SetFailure({passes ? error.code : ErrorCode::kInternal, error.message}, reply);
}

}  // namespace tacit::http
