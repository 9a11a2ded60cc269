#include "cli/ledger/document.h"

#include <fmt/format.h>

#include <string_view>

#include "base/markup.h"

namespace tacit::cli {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{0}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; }}
h2 {{ font-size: 1.2rem; margin-top: 2rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .9rem; }}
th, td {{ text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8886; }}
pre {{ overflow-x: auto; padding: .75rem; border: 1px solid #8886; font-size: .8rem; }}
svg {{ max-width: 100%; height: auto; }}
@media print {{ body {{ margin: 0; max-width: none; }} }}
</style>
</head>
<body>
<h1>{0}</h1>
)";

std::string TableHtml(const console::TextLines& lines) {
  std::string html = "<div class=\"wide\"><table>\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    html += "<tr>";
    for (const std::string& cell : lines[i])
      html += fmt::format("<{0}>{1}</{0}>", i == 0 ? "th" : "td", EscapeMarkup(cell));
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string BlockHtml(const Block& block) {
  switch (block.kind) {
    case Block::Kind::kHeading:
      return fmt::format("<h2>{}</h2>\n", EscapeMarkup(block.text));
    case Block::Kind::kText:
      return fmt::format("<p>{}</p>\n", EscapeMarkup(block.text));
    case Block::Kind::kCode:
      return fmt::format("<pre>{}</pre>\n", EscapeMarkup(block.text));
    case Block::Kind::kFigure:
      return "<figure class=\"wide\">\n" + block.text + "</figure>\n";
    case Block::Kind::kTable:
      return TableHtml(block.lines);
    case Block::Kind::kList:
      break;
  }
  std::string html = "<ul>\n";
  for (const std::string& item : block.items)
    html += fmt::format("<li>{}</li>\n", EscapeMarkup(item));
  return html + "</ul>\n";
}

// A bar ends a cell of a table, wherever it stands.
console::TextLines WithoutBars(console::TextLines lines) {
  for (auto& line : lines)
    for (std::string& cell : line)
      for (size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2)
        cell.insert(at, 1, '\\');
  return lines;
}

std::string BlockMarkdown(const Block& block) {
  switch (block.kind) {
    case Block::Kind::kHeading:
      return "## " + block.text + "\n\n";
    case Block::Kind::kText:
      return block.text + "\n\n";
    case Block::Kind::kCode:
      return "```\n" + block.text + "\n```\n\n";
    case Block::Kind::kFigure:
      return "";
    case Block::Kind::kTable:
      return console::LayOutMarkdown(WithoutBars(block.lines), {0, 1, 2, 3, 4, 5, 6, 7}) + "\n";
    case Block::Kind::kList:
      break;
  }
  std::string text;
  for (const std::string& item : block.items) text += "- " + item + "\n";
  return text + "\n";
}

}  // namespace

std::string RenderMarkdown(const Document& document) {
  std::string text = "# " + document.title + "\n\n";
  for (const Block& block : document.blocks) text += BlockMarkdown(block);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

std::string RenderHtml(const Document& document) {
  std::string html = fmt::format(fmt::runtime(kHead), EscapeMarkup(document.title));
  for (const Block& block : document.blocks) html += BlockHtml(block);
  return html + "</body>\n</html>\n";
}

}  // namespace tacit::cli
