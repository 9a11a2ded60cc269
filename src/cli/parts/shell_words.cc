#include "cli/parts/shell_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tacit::cli {

std::string ShellWord(std::string_view text) {
  const auto is_plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalnum(byte) != 0 || byte >= 0x80 ||
           std::string_view("_-+=:,./@%").find(c) != std::string_view::npos;
  };
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  const bool escaped = std::ranges::any_of(text, is_control);
  std::string word = escaped ? "$'" : "'";
  for (const char c : text) {
    if (is_control(c))
      word += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else if (escaped && (c == '\'' || c == '\\'))
      word += fmt::format("\\{}", c);
    else
      word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return word + '\'';
}

std::string OptionWords(std::string_view name, std::string_view value) {
  return fmt::format(" {}{}{}", name, value.starts_with('-') ? '=' : ' ', ShellWord(value));
}

std::string GivenWords(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    const std::vector<std::string>& values = option->results();
    if (option->get_positional()) {
      for (const std::string& value : values) words += ' ' + ShellWord(value);
      continue;
    }
    words += option->get_items_expected_max() == 0  // a flag
                 ? ' ' + option->get_name()
                 : OptionWords(option->get_name(), fmt::format("{}", fmt::join(values, ",")));
  }
  return words;
}

}  // namespace tacit::cli
