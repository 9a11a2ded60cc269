#include "console/text_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tacit::console {
namespace {

// The number of characters shown; tables hold no wide characters.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string LayOut(const TextLines& lines, std::initializer_list<size_t> left) {
  std::vector<size_t> width(lines[0].size());
  for (const auto& line : lines)
    for (size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], Width(line[i]));
  std::string text;
  for (const auto& line : lines) {
    const char* gap = "";
    for (size_t i = 0; i < line.size(); ++i) {
      if (width[i] == 0) continue;
      const std::string pad(width[i] - Width(line[i]), ' ');
      text += gap + (std::ranges::count(left, i) > 0 ? line[i] + pad : pad + line[i]);
      gap = "  ";
    }
    text += '\n';
  }
  return text;
}

std::string LayOutMarkdown(const TextLines& lines, std::initializer_list<size_t> left) {
  std::string text;
  for (size_t l = 0; l < lines.size(); ++l) {
    text += fmt::format("| {} |\n", fmt::join(lines[l], " | "));
    if (l > 0) continue;
    text += "|";
    for (size_t i = 0; i < lines[0].size(); ++i)
      text += std::ranges::count(left, i) > 0 ? "---|" : "---:|";
    text += '\n';
  }
  return text;
}

}  // namespace tacit::console
