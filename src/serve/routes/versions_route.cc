#include "serve/routes/versions_route.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <iterator>

#include "http/request_json.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;

Result<uint64_t> VersionIn(const json::value& value, std::string_view key) {
  if (value.is_int64() && value.get_int64() >= 0) return static_cast<uint64_t>(value.get_int64());
  return http::BadRequest(fmt::format("\"{}\" must be the number of a commit", key));
}

Result<Canary> CanaryIn(const json::value& value) {
  static constexpr std::string_view kKeys[] = {"version", "share"};
  if (!value.is_object()) return http::BadRequest("\"canary\" must be an object, or null");
  std::optional<uint64_t> version;
  std::optional<double> share;
  for (const auto& [key, inner] : value.get_object()) {
    if (key == "version") {
      TACIT_ASSIGN(version, VersionIn(inner, "version"));
    } else if (key == "share") {
      share = inner.is_number() ? inner.to_number<double>() : 0;
    } else {
      return http::BadRequest(http::UnknownName("key", std::string_view(key), kKeys));
    }
  }
  if (!version || !share) return http::BadRequest("\"canary\" needs \"version\" and \"share\"");
  if (!(*share > 0 && *share <= 1))
    return http::BadRequest("\"share\" must be a number above 0, at most 1");
  return Canary{*version, *share};
}

Result<VersionOrder> ReadOrder(std::string_view body) {
  static constexpr std::string_view kKeys[] = {"serve", "canary"};
  TACIT_RETURN_IF_ERROR(http::CheckSmallBody(body));
  json::error_code error;
  const json::value value = json::parse(json::string_view(body.data(), body.size()), error);
  const json::object* object = error ? nullptr : value.if_object();
  if (object == nullptr || object->empty())
    return http::BadRequest(
        R"(the body must be {"serve":12|"newest","canary":{"version":14,"share":0.1}|null})");
  VersionOrder order;
  for (const auto& [key, inner] : *object) {
    if (key == "serve") {
      const bool newest = inner.is_string() && inner.get_string() == "newest";
      order.serve = newest ? VersionOrder::Serve::kNewest : VersionOrder::Serve::kVersion;
      if (newest) continue;
      if (inner.is_string())
        return http::BadRequest("\"serve\" must be the number of a commit, or \"newest\"");
      TACIT_ASSIGN(order.version, VersionIn(inner, "serve"));
    } else if (key == "canary") {
      order.sets_canary = true;
      if (inner.is_null()) continue;
      TACIT_ASSIGN(order.canary, CanaryIn(inner));
    } else {
      return http::BadRequest(http::UnknownName("key", std::string_view(key), kKeys));
    }
  }
  return order;
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
