#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace tacit::console {

// Lines with equal numbers of cells; the first is the header.
using TextLines = std::vector<std::vector<std::string>>;

// Lays the lines out for a terminal with two blanks between columns. Columns listed in `left` are
// left-aligned, the others right-aligned; a column without any character is left out.
std::string LayOut(const TextLines& lines, std::initializer_list<size_t> left);
// The same as a Markdown table, with all columns.
std::string LayOutMarkdown(const TextLines& lines, std::initializer_list<size_t> left);

}  // namespace tacit::console
