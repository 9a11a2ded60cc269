#include "serve/routes/versions_route.h"

#include <fmt/format.h>

#include <iterator>

#include "http/request_json.h"

namespace tacit::serve {
namespace {

Result<VersionOrder> ReadOrder(std::string_view body) {
  using Kind = http::JsonPlace::Kind;
  VersionOrder order;
  Canary canary;
  const auto take_serve = [&order](const http::JsonValue& value) {
    const bool newest = value.kind == http::JsonValue::Kind::kString && value.text == "newest";
    order.serve = newest ? VersionOrder::Serve::kNewest : VersionOrder::Serve::kVersion;
    order.version = static_cast<uint64_t>(value.int64);
    return newest || (value.kind == http::JsonValue::Kind::kInt64 && value.int64 >= 0);
  };
  const auto take_share = [&canary](const http::JsonValue& value) {
    canary.share = value.Number().value_or(0);
    return canary.share > 0 && canary.share <= 1;
  };
  const auto take_null = [&order](const http::JsonValue& value) {
    order.sets_canary = true;
    return value.kind == http::JsonValue::Kind::kNull;
  };
  const auto set_canary = [&order, &canary]() -> Status {
    order.sets_canary = true;
    order.canary = canary;
    return {};
  };
  const http::JsonKey canary_keys[] = {
      {"version", http::PlaceFor(&canary.version), true},
      {"share",
       {.kind = Kind::kAny, .must = "must be a number above 0, at most 1", .take = take_share},
       true}};
  const http::JsonParts parts{
      .keys = canary_keys, .end = set_canary, .where = [] { return "\"canary\""; }};
  const http::JsonKey keys[] = {{"serve",
                                 {.kind = Kind::kAny,
                                  .must = "must be the number of a commit, or \"newest\"",
                                  .take = take_serve}},
                                {"canary",
                                 {.kind = Kind::kAny,
                                  .must = "must be an object, or null",
                                  .take = take_null,
                                  .object = &parts}}};
  TACIT_RETURN_IF_ERROR(http::ReadSmallJson(body, keys));
  if (order.serve != VersionOrder::Serve::kAsItIs || order.sets_canary) return order;
  return http::BadRequest(
      R"(the body must be {"serve":12|"newest","canary":{"version":14,"share":0.1}|null})");
}

void AppendReport(const VersionReport& report, std::string* out) {
  auto to = std::back_inserter(*out);
  fmt::format_to(to, R"({{"serving":{},"held":{},"canary":)", report.serving, report.held);
  if (report.canary)
    fmt::format_to(to, R"({{"version":{},"share":{}}})", report.canary->version,
                   report.canary->share);
  else
    *out += "null";
  fmt::format_to(to, R"(,"open_most":{},"versions":[)", report.open_most);
  for (const VersionPlace& place : report.places) {
    if (&place != &report.places.front()) *out += ',';
    fmt::format_to(to, R"({{"version":{},"open":{},"folder":)", place.version, place.open);
    http::AppendJsonString(place.folder, out);
    *out += '}';
  }
  *out += "]}\n";
}

void AnswerReport(const Result<VersionReport>& report, http::Reply* reply) {
  if (!report) return http::SetFailure(report.error(), reply);
  AppendReport(*report, &reply->body);
}

}  // namespace

void AnswerVersions(const VersionCommands& commands, http::Reply* reply) {
  AnswerReport(commands.report(), reply);
}

void AnswerSetVersions(const VersionCommands& commands, std::string_view body, http::Reply* reply) {
  const auto order = ReadOrder(body);
  if (!order) return http::SetFailure(order.error(), reply);
  AnswerReport(commands.set(*order), reply);
}

}  // namespace tacit::serve
