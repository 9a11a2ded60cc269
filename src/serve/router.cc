#include "serve/router.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"

namespace tacit::serve {
namespace {

constexpr size_t kPathEchoMax = 100;  // the longest path that a message repeats

// The path with a name in place of its last part, as routes for any value of it are added.
std::string PatternOf(std::string_view path) {
  const size_t last = path.rfind('/') + 1;
  return last == path.size() ? std::string() : std::string(path.substr(0, last)) + "{id}";
}

// Hides an error from the public: its message may name files or their contents.
void Conceal(const Request& request, Reply* reply) {
  std::string_view told = reply->body;
  while (told.ends_with('\n')) told.remove_suffix(1);
  spdlog::error("{} {}: {}", request.method, request.path, told);
  *reply = Reply();
  SetError(500, "what is asked for cannot be read; the daemon's log says why", reply);
}

}  // namespace

Router::Router(metrics::Registry& metrics)
    : metrics_(metrics), unrouted_(MakeCounters("other", "other")) {}

Router::Counters Router::MakeCounters(std::string_view method, std::string_view path) {
  using metrics::Audience;
  const metrics::Labels labels = {{"method", std::string(method)}, {"path", std::string(path)}};
  Counters counters;
  for (size_t digit = 1; digit < std::size(counters.answered); ++digit) {
    metrics::Labels with_status = labels;
    with_status.emplace_back("status", std::to_string(digit) + "xx");
    counters.answered[digit] = metrics_.AddCounter(Audience::kPublic, "tacit_http_requests_total",
                                                   "HTTP requests answered.", with_status);
  }
  counters.seconds =
      metrics_.AddHistogram(Audience::kPublic, "tacit_http_request_seconds",
                            "From the whole request to its answer, sending excluded.",
                            metrics::ExponentialBounds(1e-5, 4, 10), labels);
  return counters;
}

void Router::Add(std::string_view method, std::string_view path, Endpoint endpoint, Role role) {
  std::vector<Route>& routes = routes_[std::string(path)];
  for (const Route& route : routes) TACIT_CHECK(route.method != method, path);
  routes.push_back({std::string(method), std::move(endpoint), role, MakeCounters(method, path)});
}

Router::Route* Router::Find(const Request& request, Reply* reply) {
  auto at = routes_.find(request.path);
  if (at == routes_.end()) at = routes_.find(PatternOf(request.path));
  if (at == routes_.end()) {
    std::string message = "no route " + std::string(request.path.substr(0, kPathEchoMax));
    std::vector<std::string_view> paths;
    for (const auto& [path, routes] : routes_) paths.push_back(path);
    if (request.path.size() <= kPathEchoMax) message += DidYouMean(request.path, paths);
    SetError(404, message, reply);
    return nullptr;
  }
  std::string allowed;
  for (Route& route : at->second) {
    if (route.method == request.method) {
      if (route.role == Role::kPublic || request.role == Role::kOperator) return &route;
      SetError(403, at->first + " is the operator's: ask at serve.operator_listen", reply);
      return nullptr;
    }
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  SetError(405, at->first + " takes " + allowed, reply);
  reply->headers.emplace_back("Allow", allowed);
  return nullptr;
}

void Router::Handle(const Request& request, Reply* reply) {
  const auto start = std::chrono::steady_clock::now();
  Route* const route = Find(request, reply);
  if (route != nullptr) route->endpoint(request, reply);
  if (reply->status == 500 && request.role == Role::kPublic) Conceal(request, reply);
  const Counters& counters = route != nullptr ? route->counters : unrouted_;
  counters.answered[std::clamp<uint32_t>(reply->status / 100, 1, 5)].Add();
  counters.seconds.Observe(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace tacit::serve
