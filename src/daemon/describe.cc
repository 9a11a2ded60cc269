#include "daemon/describe.h"

#include <fmt/format.h>

#include "config/reference.h"
#include "metrics/families.h"
#include "serve/route_table.h"

namespace tacit::daemon {
namespace {

// A page with a printer for each form that it has, and a null pointer for the others.
struct Page {
  std::string_view name;
  std::string (*markdown)();
  std::string (*yaml)();
  std::string (*json)();
};

constexpr Page kPages[] = {
    {"config", config::MarkdownReference, config::YamlReference, config::JsonReference},
    {"metrics", metrics::MetricsAsMarkdown, nullptr, metrics::MetricsAsJson},
    {"routes", serve::RoutesAsMarkdown, serve::RoutesAsYaml, serve::RoutesAsJson},
};

}  // namespace

std::vector<std::string> PageNames() {
  std::vector<std::string> names;
  for (const Page& page : kPages) names.emplace_back(page.name);
  return names;
}

Result<std::string> DescribePage(std::string_view name, PageForm form) {
  for (const Page& page : kPages) {
    if (page.name != name) continue;
    const auto print = form == PageForm::kMarkdown ? page.markdown
                       : form == PageForm::kYaml   ? page.yaml
                                                   : page.json;
    if (print != nullptr) return print();
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--describe {}: this page is not printed in that form", name));
  }
  return Fail(ErrorCode::kInvalidArgument, fmt::format("--describe {}: no such page", name));
}

}  // namespace tacit::daemon
