#include "cli/parts/ask_daemon.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "http/token.h"

namespace tacit::cli {

namespace json = boost::json;

namespace {

std::string OfEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

http::ClientTls TlsOfEnvironment() {
  return {.ca_file = OfEnvironment("TACIT_CA_FILE"),
          .certificate = OfEnvironment("TACIT_CLIENT_CERTIFICATE"),
          .key = OfEnvironment("TACIT_CLIENT_KEY")};
}

Result<http::FieldList> TokenFields() {
  const std::string path = OfEnvironment("TACIT_TOKEN_FILE");
  if (path.empty()) return http::FieldList();
  std::ifstream file(path);
  std::string token;
  std::getline(file, token);
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  std::string field = "Bearer " + token;
  if (http::BearerToken(field) != token || token.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("$TACIT_TOKEN_FILE: the first line of {} is no token", path));
  return http::FieldList{{"Authorization", std::move(field)}};
}

Result<http::Response> AskDaemon(const std::string& url, std::string_view path,
                                 const std::string& method, std::string_view body) {
  TACIT_ASSIGN(const http::FieldList fields, TokenFields());
  auto response = http::Fetch(http::JoinUrl(url, path), method, body, std::chrono::seconds(10),
                              fields, TlsOfEnvironment());
  if (response || response.error().code != ErrorCode::kUnavailable) return response;
  return Fail(ErrorCode::kIo, fmt::format("no daemon answers at {}", response.error().message));
}

Result<json::object> ReadAnswer(const std::string& who, uint32_t status, const std::string& body) {
  json::error_code error;
  json::value answer = json::parse(body, error);
  if (status == 200 && !error && answer.is_object()) return std::move(answer.get_object());
  std::string message = body.substr(0, 300);
  if (!error && answer.is_object())
    if (const auto* inner = answer.get_object().if_contains("error"))
      if (const auto* text =
              inner->is_object() ? inner->get_object().if_contains("message") : nullptr)
        if (text->is_string()) message = std::string(text->get_string());
  if (status == 401) message += " ($TACIT_TOKEN_FILE names the file of yours)";
  const bool asked_wrong = status >= 400 && status < 500;
  return Fail(asked_wrong ? ErrorCode::kInvalidArgument : ErrorCode::kIo,
              fmt::format("{} answered {}: {}", who, status, message));
}

std::string MessageOf(const http::Response& response) {
  json::error_code error;
  const json::value value = json::parse(response.body, error);
  const json::value* inner =
      !error && value.is_object() ? value.get_object().if_contains("error") : nullptr;
  const json::value* message =
      inner != nullptr && inner->is_object() ? inner->get_object().if_contains("message") : nullptr;
  return message != nullptr && message->is_string() ? std::string(message->get_string())
                                                    : fmt::format("status {}", response.status);
}

std::optional<RefusedLine> FindRefusedLine(std::string_view message) {
  constexpr std::string_view kLine = "line ", kBetween = ": ";
  if (!message.starts_with(kLine)) return std::nullopt;
  RefusedLine line;
  const char* const end = message.data() + message.size();
  const auto read = std::from_chars(message.data() + kLine.size(), end, line.number);
  if (read.ec != std::errc() || line.number == 0 ||
      !std::string_view(read.ptr, end).starts_with(kBetween))
    return std::nullopt;
  line.reason = std::string(read.ptr + kBetween.size(), end);
  return line;
}

Result<json::object> AskDaemonForJson(const std::string& url, std::string_view path,
                                      std::string_view body) {
  TACIT_ASSIGN(const http::Response response, AskDaemon(url, path, "POST", body));
  return ReadAnswer(url, response.status, response.body);
}

void PrintModel(const json::object& answer) {
  const json::object& model = answer.at("model").as_object();
  const json::value& epsilon = model.at("epsilon");
  fmt::print("from learner {} at version {}, {}\n", json::serialize(model.at("learner")),
             json::serialize(model.at("version")),
             epsilon.is_number() ? fmt::format("epsilon {:.4f}", epsilon.to_number<double>())
                                 : std::string("without a privacy promise"));
}

}  // namespace tacit::cli
