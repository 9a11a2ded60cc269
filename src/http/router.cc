#include "http/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "base/check.h"
#include "base/files/log.h"
#include "base/text.h"
#include "http/caller.h"
#include "metrics/families.h"

namespace tacit::http {
namespace {

constexpr size_t kPathEchoMax = 100;  // the longest path that a message repeats

// Takes the first part off a path, with its slash.
std::string_view TakePart(std::string_view* path) {
  const std::string_view part = path->substr(0, path->find('/'));
  path->remove_prefix(std::min(path->size(), part.size() + 1));
  return part;
}

// Returns true, with what stands at the braces, if a path is of this pattern.
bool IsOf(std::string_view pattern, std::string_view path, std::span<std::string_view> parts) {
  if (std::ranges::count(pattern, '/') != std::ranges::count(path, '/')) return false;
  size_t found = 0;
  while (!pattern.empty()) {
    const std::string_view wanted = TakePart(&pattern), part = TakePart(&path);
    if (!wanted.starts_with('{')) {
      if (wanted != part) return false;
    } else if (part.empty()) {
      return false;
    } else {
      parts[found++] = part;
    }
  }
  return true;
}

// Answers a caller whose role is not the route's.
void RefuseRole(const Request& request, std::string_view path, std::string_view whose,
                Reply* reply) {
  SetError(403,
           fmt::format("{} is for {}: the token of '{}' has the role {}", path, whose,
                       request.caller->name, NameOf(request.caller->role)),
           reply);
  reply->headers.emplace_back("WWW-Authenticate",
                              R"(Bearer realm="tacit", error="insufficient_scope")");
}

void RefuseListener(std::string_view path, Reply* reply) {
  SetError(403, fmt::format("{} is the operator's: ask at serve.operator_listen", path), reply);
}

bool IsOperator(const Request& request) {
  return request.role == Role::kOperator &&
         (!request.asks_token ||
          (request.caller != nullptr && request.caller->role == CallerRole::kOperator));
}

// Refuses, and returns false, if the caller has asked too often lately.
bool KeepsPace(const Caller& caller, std::chrono::steady_clock::time_point now, Reply* reply) {
  const int64_t wait_ns = caller.pace->Take(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count());
  if (wait_ns == 0) return true;
  SetError(
      429,
      fmt::format("'{}' asks faster than serve.rates.{} allows", caller.name, NameOf(caller.role)),
      reply);
  reply->headers.emplace_back("Retry-After", fmt::format("{}", wait_ns / 1'000'000'000 + 1));
  return false;
}

// Hides an error from the public: its message may name files or their contents.
void Conceal(const Request& request, Reply* reply) {
  std::string_view told = reply->body;
  while (told.ends_with('\n')) told.remove_suffix(1);
  const std::string_view route = reply->route;
  // A user's path names the user, so the route stands for it.
  spdlog::error("{} {}: {}", request.method, route, told);
  *reply = ReplyFor(request.path);
  reply->route = route;
  SetError(500, "what is asked for cannot be read; the daemon's log says why", reply);
}

}  // namespace

Router::Router(metrics::Registry& metrics)
    : metrics_(metrics), unrouted_(MakeCounters("other", "other", Access::kAll)) {}

// The number of requests about users is the operator's, like their routes.
Router::Counters Router::MakeCounters(std::string_view method, std::string_view path,
                                      Access access) {
  const bool is_operators = IsOperators(access);
  const metrics::CounterName requests =
      is_operators ? metrics::CounterName("tacit_http_operator_requests_total")
                   : metrics::CounterName("tacit_http_requests_total");
  const metrics::HistogramName seconds =
      is_operators ? metrics::HistogramName("tacit_http_operator_request_seconds")
                   : metrics::HistogramName("tacit_http_request_seconds");
  const metrics::Labels labels = {{"method", std::string(method)}, {"path", std::string(path)}};
  Counters counters;
  for (const size_t digit : {2, 4, 5}) {
    metrics::Labels with_status = labels;
    with_status.emplace_back("status", std::to_string(digit) + "xx");
    counters.answered[digit] = metrics_.AddCounter(requests, with_status);
  }
  counters.seconds =
      metrics_.AddHistogram(seconds, metrics::ExponentialBounds(1e-5, 4, 10), labels);
  return counters;
}

void Router::Add(std::string_view method, std::string_view path, Endpoint endpoint, Access access) {
  const auto [at, is_new] = routes_.try_emplace(std::string(path));
  const size_t braces = static_cast<size_t>(std::ranges::count(path, '{'));
  TACIT_CHECK(braces <= PathParts().size(), path);
  if (is_new && braces > 0) patterns_.push_back(at);
  std::vector<Route>& routes = at->second;
  for (const Route& route : routes) TACIT_CHECK(route.method != method, path);
  routes.push_back({std::string(method), at->first, std::move(endpoint), access,
                    MakeCounters(method, path, access)});
}

Router::Routes::iterator Router::FindPath(std::string_view path, PathParts* parts) {
  const auto at = routes_.find(path);
  if (at != routes_.end()) return at;
  for (const Routes::iterator& pattern : patterns_)
    if (IsOf(pattern->first, path, *parts)) return pattern;
  return at;
}

bool Router::Admit(const Request& request, const Route* route, Reply* reply) {
  const Access access = route != nullptr ? route->access : Access::kCallers;
  const bool is_operators = IsOperators(access);
  if (!request.asks_token) {
    if (!is_operators || request.role == Role::kOperator) return true;
    RefuseListener(route->path, reply);
    return false;
  }
  if (access == Access::kAll) return true;
  if (request.caller == nullptr) {
    SetUnauthorized("a token is needed: Authorization: Bearer TOKEN", reply);
    return false;
  }
  const CallerRole role = request.caller->role;
  if (access == Access::kCallers || (access == Access::kOwner && role == CallerRole::kUser))
    return true;
  if (access == Access::kQuery) {
    if (role != CallerRole::kUser) return true;
    RefuseRole(request, route->path, "callers of role query", reply);
  } else if (role != CallerRole::kOperator) {
    RefuseRole(request, route->path,
               access == Access::kOwner ? "operators and the user" : "operators", reply);
  } else if (request.role != Role::kOperator) {
    RefuseListener(route->path, reply);
  } else {
    return true;
  }
  return false;
}

Router::Route* Router::Find(const Request& request, PathParts* parts, Reply* reply) {
  const auto at = FindPath(request.path, parts);
  Route* found = nullptr;
  if (at != routes_.end()) {
    const auto same = std::ranges::find(at->second, request.method, &Route::method);
    if (same != at->second.end()) found = &*same;
  }
  if (!Admit(request, found, reply)) return nullptr;
  if (found != nullptr) return found;
  if (at == routes_.end()) {
    std::string message = "no route " + std::string(request.path.substr(0, kPathEchoMax));
    std::vector<std::string_view> paths;
    for (const auto& [path, routes] : routes_) paths.push_back(path);
    if (request.path.size() <= kPathEchoMax) message += DidYouMean(request.path, paths);
    SetError(404, message, reply);
    return nullptr;
  }
  std::string allowed;
  for (const Route& route : at->second) {
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  SetError(405, at->first + " takes " + allowed, reply);
  reply->headers.emplace_back("Allow", allowed);
  return nullptr;
}

void Router::Handle(const Request& request, Reply* reply) {
  const auto start = std::chrono::steady_clock::now();
  reply->error_form = ErrorFormFor(request.path);
  Request routed = request;
  routed.at_operators_door = request.role == Role::kOperator;
  if (!IsOperator(request)) routed.role = Role::kPublic;
  Route* route = nullptr;
  if (request.caller == nullptr || KeepsPace(*request.caller, start, reply))
    route = Find(request, &routed.parts, reply);
  if (route != nullptr) {
    reply->route = route->path;
    route->endpoint(routed, reply);
  }
  if (reply->status == 500 && routed.role == Role::kPublic) Conceal(request, reply);
  const Counters& counters = route != nullptr ? route->counters : unrouted_;
  counters.answered[std::clamp<uint32_t>(reply->status / 100, 1, 5)].Add();
  counters.seconds.Observe(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace tacit::http
