#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Pages that tacitd prints about itself: `tacitd --describe NAME`.
namespace tacit::daemon {

enum class PageForm : uint8_t { kMarkdown, kYaml, kJson };

// The names of all pages.
std::vector<std::string> PageNames();

// The text of a page. Fails for a name that is not in PageNames, and for a form that the page does
// not have.
Result<std::string> DescribePage(std::string_view name, PageForm form);

}  // namespace tacit::daemon
