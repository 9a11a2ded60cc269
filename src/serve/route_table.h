#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/router.h"
#include "serve/routes/services.h"

namespace tacit::serve {

class Api;

// The readers to whom a route may answer as gzip: its answer is the same for all of them.
enum class GzipFor : uint8_t { kNobody, kPublic, kAll };

// The daemons that have a route.
struct RouteOf {
  std::string_view words = {};  // if empty, all have it
  bool (*has_it)(const Services&) = [](const Services&) { return true; };
};

// A route as it is declared.
struct Route {
  // The names are components of openapi.yaml.
  struct Form {
    std::string_view parameters = {};  // besides those of the path, separated by commas
    std::string_view body = {};        // if empty, the request has none
    std::string_view returns = {};
    int status = 200;  // of the answer
    GzipFor gzip = GzipFor::kNobody;
    RouteOf of = {};
    bool probe = false;  // also where no model is served
  };
  std::string_view method, path;  // "GET", "/v1/users/{id}"
  http::Access access;
  std::string_view says;  // its sentence
  void (*answer)(Api&, const http::Request&, http::Reply*);
  Form form;
};

// Tells whether a daemon has the route.
inline bool Has(const Services& services, const Route& route) {
  return route.form.of.has_it(services) && (services.serves || route.form.probe);
}

// The head and the components of schemas/openapi.yaml: openapi.yaml of this folder.
extern const std::string_view kOpenApiParts;

// docs/reference/http.md, schemas/openapi.yaml, and the routes for programs.
std::string RoutesAsMarkdown();
std::string RoutesAsYaml();
std::string RoutesAsJson();

}  // namespace tacit::serve
