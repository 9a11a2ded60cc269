#pragma once

#include <string>
#include <string_view>

namespace tacit {

// Returns the text with the characters escaped that HTML and SVG take for their own, for elements
// and quoted attributes.
std::string EscapeMarkup(std::string_view text);

}  // namespace tacit
