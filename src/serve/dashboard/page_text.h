#pragma once

#include <string_view>

namespace tacit::serve {

// page.html with style.css and the scripts in it, made by embed.cmake.
extern const std::string_view kPageText;

}  // namespace tacit::serve
