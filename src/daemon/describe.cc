#include "daemon/describe.h"

#include <fmt/format.h>

#include "config/environment.h"

namespace tacit::daemon {
namespace {

// A page with a printer for each form. Null: the page does not have this form.
struct Page {
  std::string_view name;
  std::string (*markdown)();
  std::string (*yaml)();
  std::string (*json)();
};

std::string ConfigKeys() {
  std::string text;
  for (const std::string& key : config::KeyPatterns()) text += fmt::format("- `{}`\n", key);
  return text;
}

constexpr Page kPages[] = {
    {"config", ConfigKeys, nullptr, nullptr},
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
