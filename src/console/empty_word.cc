#include "console/empty_word.h"

#include <fmt/format.h>

#include <string_view>

namespace tacit::console {

std::string WhyWordIsEmpty(int argc, const char* const* argv,
                           const std::function<bool(const std::string& option)>& takes_value) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool no_value = word.starts_with("--") && word.find('=') == word.size() - 1;
    if (!word.empty() && !no_value) continue;
    const std::string before = argv[i - 1];
    if (word.empty() && before.starts_with("-") && takes_value(before)) continue;
    return fmt::format("word {} of the command line, '{}', has no value: give one, or leave it out",
                       i, word);
  }
  return "";
}

}  // namespace tacit::console
