#include <fmt/format.h>

#include <cctype>
#include <iterator>

#include "serve/api_impl.h"

namespace tacit::serve {
namespace {

constexpr std::string_view kMarkdownHead =
    R"(<!-- tacitd --describe routes --markdown > docs/reference/http.md -->
# HTTP routes

[schemas/openapi.yaml](../../schemas/openapi.yaml) has every route with its schemas and examples, for clients
that are generated from it. [Asking the model](../using/querying.md) has the routes by task, and
[docs/internals/serve.md](../internals/serve.md) their rules and limits. To add a route to Tacit: [a new
route](../../CONTRIBUTING.md#a-new-route).

Without `serve.callers` nobody needs a token: routes for operators or the user are answered at
`serve.operator_listen`, and all others at every listener. With `serve.callers` the second column names the tokens
that a route answers. Routes for operators alone are answered at `serve.operator_listen` only.

| route | for | what |
|---|---|---|
)";

constexpr std::string_view kYamlHead =
    R"(# tacitd --describe routes --yaml > schemas/openapi.yaml
# Every route of tacitd's listeners. tests/unit/serve/openapi_test.cc holds it against a running server: the routes are the same, every example is
# sent, and the answer is of the schema stated here. Objects have no other fields than those that are listed.
)";

std::string_view WhoMayAsk(http::Access access) {
  switch (access) {
    case http::Access::kAll:
      return "everybody";
    case http::Access::kCallers:
      return "any token";
    case http::Access::kQuery:
      return "`query`, operators";
    case http::Access::kOwner:
      return "the user, operators";
    case http::Access::kOperator:
      return "operators";
  }
  return "";
}

// The roles as OpenAPI lists them; if empty, the document's own, query and operator.
std::string_view SecurityOf(http::Access access) {
  switch (access) {
    case http::Access::kAll:
      return "[]";
    case http::Access::kCallers:
      return "[{bearer: [query, user, operator]}]";
    case http::Access::kQuery:
      return "";
    case http::Access::kOwner:
      return "[{bearer: [user, operator]}]";
    case http::Access::kOperator:
      return "[{bearer: [operator]}]";
  }
  return "";
}

// Calls each with the parts of a text.
template <class Each>
void ForParts(std::string_view text, char between, const Each& each) {
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(between, at), text.size());
    each(text.substr(at, end - at));
    at = end + 1;
  }
}

// The sentence, and the daemons that alone have the route.
std::string SentenceOf(const Route& route) {
  const std::string_view of = route.form.of.words;
  return of.empty() ? std::string(route.says) : fmt::format("{} ({})", route.says, of);
}

// "getV1UsersIdPrivacy", by which generated clients name a route.
std::string OperationId(const Route& route) {
  std::string id;
  for (const char c : route.method) id += static_cast<char>(std::tolower(c));
  ForParts(route.path.substr(1), '/', [&](std::string_view part) {
    if (part.empty()) part = "index";
    if (part.starts_with('{')) part = part.substr(1, part.size() - 2);
    id += static_cast<char>(std::toupper(part[0]));
    id += part.substr(1);
  });
  return id;
}

// The references to parameters: the path's, by the texts in their braces, and the others.
std::string ParametersOf(const Route& route) {
  std::string list;
  const auto add = [&](std::string_view name) {
    list +=
        fmt::format("{}{{$ref: \"#/components/parameters/{}\"}}", list.empty() ? "" : ", ", name);
  };
  ForParts(route.path, '/', [&](std::string_view part) {
    if (part.starts_with('{')) add(part.substr(1, part.size() - 2));
  });
  if (!route.form.parameters.empty()) ForParts(route.form.parameters, ',', add);
  return list;
}

void AppendOperation(const Route& route, std::string* out) {
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    *out += "      ";
    fmt::format_to(std::back_inserter(*out), format, std::forward<Args>(args)...);
    *out += '\n';
  };
  *out += "    ";
  for (const char c : route.method) *out += static_cast<char>(std::tolower(c));
  *out += ":\n";
  line("operationId: {}", OperationId(route));
  std::string summary;
  http::AppendJsonString(SentenceOf(route), &summary);
  line("summary: {}", summary);
  if (route.form.gzip != GzipFor::kNobody) line("x-tacit-gzip: true");
  if (http::IsOperators(route.access)) line("x-tacit-listener: operator");
  if (const auto security = SecurityOf(route.access); !security.empty())
    line("security: {}", security);
  if (const std::string list = ParametersOf(route); !list.empty()) line("parameters: [{}]", list);
  if (!route.form.body.empty())
    line("requestBody: {{$ref: \"#/components/requestBodies/{}\"}}", route.form.body);
  const bool is_inference = http::ErrorFormFor(route.path) == http::ErrorForm::kInference;
  line("responses:");
  line("  \"{}\": {{$ref: \"#/components/responses/{}\"}}", route.form.status, route.form.returns);
  line("  default: {{$ref: \"#/components/responses/{}\"}}", is_inference ? "InferError" : "Error");
}

}  // namespace

std::string RoutesAsMarkdown() {
  std::string text(kMarkdownHead);
  for (const Route& route : Api::Routes())
    text += fmt::format("| `{} {}` | {} | {} |\n", route.method, route.path,
                        WhoMayAsk(route.access), SentenceOf(route));
  return text;
}

std::string RoutesAsYaml() {
  const size_t components = kOpenApiParts.find("components:\n");
  const size_t head = kOpenApiParts.find("openapi:");
  std::string text(kYamlHead);
  text += kOpenApiParts.substr(head, components - head);
  text += "paths:\n";
  std::string_view path;
  for (const Route& route : Api::Routes()) {
    if (route.path != path) text += fmt::format("  {}:\n", path = route.path);
    AppendOperation(route, &text);
  }
  text += kOpenApiParts.substr(components);
  return text;
}

std::string RoutesAsJson() {
  std::string text = "[";
  for (const Route& route : Api::Routes()) {
    text += fmt::format(R"({}{{"method":"{}","path":"{}","for":)", text.size() == 1 ? "\n" : ",\n",
                        route.method, route.path);
    http::AppendJsonString(WhoMayAsk(route.access), &text);
    text += R"(,"what":)";
    http::AppendJsonString(SentenceOf(route), &text);
    text += fmt::format(R"(,"operation":"{}"}})", OperationId(route));
  }
  return text + "\n]\n";
}

}  // namespace tacit::serve
