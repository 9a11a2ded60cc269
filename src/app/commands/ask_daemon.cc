#include "app/commands/ask_daemon.h"

#include <fmt/format.h>

#include <chrono>

namespace tacit::app {

namespace json = boost::json;

Result<serve::Response> AskDaemon(const std::string& url, std::string_view path,
                                  const std::string& method, std::string_view body) {
  auto response = serve::Fetch(serve::JoinUrl(url, path), method, body, std::chrono::seconds(10));
  if (response || response.error().code != ErrorCode::kUnavailable) return response;
  return Fail(ErrorCode::kIo, fmt::format("no daemon answers at {}", response.error().message));
}

Result<json::object> AskDaemonForJson(const std::string& url, std::string_view path,
                                      std::string_view body) {
  TACIT_ASSIGN(const serve::Response response, AskDaemon(url, path, "POST", body));
  json::error_code error;
  json::value answer = json::parse(response.body, error);
  if (response.status == 200 && !error && answer.is_object()) return std::move(answer.get_object());
  std::string message = response.body.substr(0, 300);
  if (!error && answer.is_object())
    if (const auto* inner = answer.get_object().if_contains("error"))
      if (const auto* text =
              inner->is_object() ? inner->get_object().if_contains("message") : nullptr)
        if (text->is_string()) message = std::string(text->get_string());
  const bool asked_wrong = response.status >= 400 && response.status < 500;
  return Fail(asked_wrong ? ErrorCode::kInvalidArgument : ErrorCode::kIo,
              fmt::format("{} answered {}: {}", url, response.status, message));
}

void PrintModel(const json::object& answer) {
  const json::object& model = answer.at("model").as_object();
  const json::value& epsilon = model.at("epsilon");
  fmt::print("from learner {} at version {}, {}\n", json::serialize(model.at("learner")),
             json::serialize(model.at("version")),
             epsilon.is_number() ? fmt::format("epsilon {:.4f}", epsilon.to_number<double>())
                                 : std::string("without a privacy promise"));
}

}  // namespace tacit::app
