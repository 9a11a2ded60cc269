#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace tacit::app {

// Lines of as many cells each; the first is the header.
using TextLines = std::vector<std::vector<std::string>>;

// The lines for a terminal: columns two blanks apart, those that are listed to the left, the others
// to the right; a column without a character is left out.
std::string LayOut(const TextLines& lines, std::initializer_list<size_t> left);
// The same as a table of Markdown, all columns.
std::string LayOutMarkdown(const TextLines& lines, std::initializer_list<size_t> left);

}  // namespace tacit::app
