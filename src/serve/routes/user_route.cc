#include "serve/routes/user_route.h"

#include <fmt/format.h>

#include <iterator>

#include "http/caller.h"
#include "http/query_fields.h"

namespace tacit::serve {
namespace {

void AppendHistory(const UserReport::History& history, std::string* out) {
  *out += R"({"learner":)";
  http::AppendJsonString(history.learner, out);
  *out += R"(,"items":[)";
  for (const UserReport::Item& item : history.items) {
    *out += &item == &history.items.front() ? R"({"id":)" : R"(,{"id":)";
    http::AppendJsonString(item.id, out);
    fmt::format_to(std::back_inserter(*out), R"(,"timestamp_ms":{}}})", item.timestamp_ms);
  }
  *out += "]}";
}

void AppendReport(std::string_view id, const UserReport& report, std::string* out) {
  auto to = std::back_inserter(*out);
  *out += R"({"user":)";
  http::AppendJsonString(id, out);
  *out += R"(,"histories":[)";
  for (const UserReport::History& history : report.histories) {
    if (&history != &report.histories.front()) *out += ',';
    AppendHistory(history, out);
  }
  *out += R"(],"allowances":[)";
  for (const UserReport::Allowance& allowance : report.allowances) {
    *out += &allowance == &report.allowances.front() ? R"({"learner":)" : R"(,{"learner":)";
    http::AppendJsonString(allowance.learner, out);
    fmt::format_to(to, R"(,"used":{},"of":{}}})", allowance.used, allowance.most);
  }
  *out += R"(],"forgotten_before_ms":)";
  *out += report.forgotten_before_ms ? fmt::format("{}", *report.forgotten_before_ms) : "null";
  fmt::format_to(to, R"(,"erased":{},"opted_out":{}}})", report.erased, report.opted_out);
  *out += '\n';
}

}  // namespace

std::optional<std::string> UserAskedFor(const http::Request& request, std::string_view part,
                                        http::Reply* reply) {
  auto id = http::PathText("the user", part);
  if (!id) {
    http::SetFailure(id.error(), reply);
    return std::nullopt;
  }
  const http::Caller* const caller = request.caller;
  if (caller == nullptr || caller->role != http::CallerRole::kUser || caller->user == *id)
    return std::move(*id);
  http::SetFailure({ErrorCode::kRefused, "a user's token is answered about that user alone"},
                   reply);
  return std::nullopt;
}

void AnswerUser(const std::function<Result<UserReport>(std::string_view id)>& command,
                const http::Request& request, http::Reply* reply) {
  const auto id = UserAskedFor(request, request.parts[0], reply);
  if (!id) return;
  const auto report = command(*id);
  if (!report) return http::SetServerFailure(report.error(), reply);
  AppendReport(*id, *report, &reply->body);
}

}  // namespace tacit::serve
