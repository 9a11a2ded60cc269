#pragma once

#include <string_view>

namespace tacit {

// U+FEFF in UTF-8. Editors and spreadsheets put it before a text, and it is no part of the text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace tacit
