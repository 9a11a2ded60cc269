#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "http/http.h"
#include "metrics/registry.h"

namespace tacit::http {

// The callers that a route answers. Where callers are not known by tokens, the first three are for
// everybody, the others for the operator's listener.
enum class Access : uint8_t {
  kAll,       // no token is asked for: whether the server lives
  kCallers,   // every caller who is known
  kQuery,     // callers of role query, and operators
  kOwner,     // a user at any listener, where the endpoint compares whose data it is; operators
  kOperator,  // operators, at their listener
};

// The routes of operators, and of users about themselves.
inline bool IsOperators(Access access) {
  return access == Access::kOwner || access == Access::kOperator;
}

// Picks the handler by method and path, and counts answers: those of kOwner and kOperator routes
// for operators alone. A part of a route's path in braces,
// "/v1/users/{id}", stands for any text without a slash. Answers an unknown path with 404
// and the nearest path, a method that the path lacks with 405 and Allow, and an operator's route at
// a public listener with 403. Where callers are known by tokens, a request without one is answered
// 401 on any path, a caller of another role 403, one over its pace 429. Only operators get
// the message of a failure (500); others get a general one, and the log has the message. One per
// server thread.
class Router final : public Handler {
 public:
  using Endpoint = std::function<void(const Request&, Reply*)>;

  explicit Router(metrics::Registry& metrics);

  // REQUIRES a pair not added before, and at most two parts in braces. An endpoint's request has
  // the role of its answer: kOperator for operators at their listener.
  void Add(std::string_view method, std::string_view path, Endpoint endpoint,
           Access access = Access::kQuery);
  void Handle(const Request& request, Reply* reply) override;

 private:
  struct Counters {
    metrics::Counter answered[6];  // by first digit of the status: 2, 4 and 5
    metrics::Histogram seconds;
  };
  using PathParts = std::array<std::string_view, 2>;
  struct Route {
    std::string method;
    std::string_view path;
    Endpoint endpoint;
    Access access = Access::kQuery;
    Counters counters;
  };
  using Routes = std::map<std::string, std::vector<Route>, std::less<>>;
  Counters MakeCounters(std::string_view method, std::string_view path, Access access);
  Routes::iterator FindPath(std::string_view path, PathParts* parts);
  Route* Find(const Request& request, PathParts* parts, Reply* reply);
  // Refuses, and returns false, unless the caller may ask this route; null if there is none.
  static bool Admit(const Request& request, const Route* route, Reply* reply);

  metrics::Registry& metrics_;
  Routes routes_;
  std::vector<Routes::iterator> patterns_;  // the paths with braces
  Counters unrouted_;
};

}  // namespace tacit::http
