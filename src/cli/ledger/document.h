#pragma once

#include <string>
#include <vector>

#include "console/text_table.h"

namespace tacit::cli {

// A document to be read on paper or on a screen: a title, and blocks in their order.
struct Block {
  enum class Kind { kHeading, kText, kList, kTable, kFigure, kCode };
  Kind kind = Kind::kText;
  std::string text = {};                // heading, text, code; a figure's SVG
  std::vector<std::string> items = {};  // of a list
  console::TextLines lines = {};        // of a table; the first is its header
};

struct Document {
  std::string title;
  std::vector<Block> blocks;

  void Heading(std::string text) {
    blocks.push_back({.kind = Block::Kind::kHeading, .text = text});
  }
  void Text(std::string text) { blocks.push_back({.kind = Block::Kind::kText, .text = text}); }
  void Code(std::string text) { blocks.push_back({.kind = Block::Kind::kCode, .text = text}); }
  void Figure(std::string svg) { blocks.push_back({.kind = Block::Kind::kFigure, .text = svg}); }
  void List(std::vector<std::string> items) {
    blocks.push_back({.kind = Block::Kind::kList, .items = std::move(items)});
  }
  void Table(console::TextLines lines) {
    blocks.push_back({.kind = Block::Kind::kTable, .lines = std::move(lines)});
  }
};

// Markdown has no figures: they are left out.
std::string RenderMarkdown(const Document& document);
// One page without scripts, which loads nothing and follows the reader's choice of light or dark.
std::string RenderHtml(const Document& document);

}  // namespace tacit::cli
