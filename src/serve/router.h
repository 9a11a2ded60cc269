#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/registry.h"
#include "serve/http.h"

namespace tacit::serve {

// Picks the handler by method and exact path, and counts answers. Answers an unknown path with 404
// and the nearest path, a method that the path lacks with 405 and Allow, and an operator's route at
// a public listener with 403. Only operators get the message of a failure (500); others get a
// general one, and the log has the message. One per server thread.
class Router final : public Handler {
 public:
  using Endpoint = std::function<void(const Request&, Reply*)>;

  explicit Router(metrics::Registry& metrics);

  // REQUIRES a pair not added before. A route for kOperator is answered only at the operator's
  // listener.
  void Add(std::string_view method, std::string_view path, Endpoint endpoint,
           Role role = Role::kPublic);
  void Handle(const Request& request, Reply* reply) override;

 private:
  struct Counters {
    metrics::Counter answered[6];  // by first digit of the status
    metrics::Histogram seconds;
  };
  struct Route {
    std::string method;
    Endpoint endpoint;
    Role role = Role::kPublic;
    Counters counters;
  };
  Counters MakeCounters(std::string_view method, std::string_view path);
  Route* Find(const Request& request, Reply* reply);

  metrics::Registry& metrics_;
  std::map<std::string, std::vector<Route>, std::less<>> routes_;
  Counters unrouted_;
};

}  // namespace tacit::serve
