#include "config/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "config/lister.h"

namespace tacit::config {
namespace {

constexpr std::string_view kPrefix = "TACIT_";

bool Reserved(std::string_view name) {
  return name == "TACIT_REQUIRE" || name == "TACIT_TOKEN_FILE" || name == "TACIT_CA_FILE" ||
         name.starts_with("TACIT_CLIENT_") || name.starts_with("TACIT_CACHE_") ||
         name.starts_with("TACIT_TEST_");
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the dotted path that `name` stands for under `pattern`, or "".
std::string MatchPattern(std::string_view name, std::string_view pattern) {
  name.remove_prefix(kPrefix.size());
  std::string path;
  size_t at = 0;
  for (char c : pattern) {
    if (c == '#') {
      const size_t begin = at;
      while (at < name.size() && IsDigit(name[at])) path += name[at++];
      if (at == begin) return "";
      continue;
    }
    if (c == '*') {
      for (; at < name.size(); ++at)
        path += name[at] == '_' ? '.' : static_cast<char>(std::tolower(name[at]));
      return path.ends_with('.') ? "" : path;
    }
    const char expected = c == '.' ? '_' : static_cast<char>(std::toupper(c));
    if (at == name.size() || name[at++] != expected) return "";
    path += c;
  }
  return at == name.size() ? path : "";
}

// Makes names comparable with EnvironmentName: "TACIT_LEARNERS_12_ID" -> "TACIT_LEARNERS_#_ID".
std::string NumbersHidden(std::string_view name) {
  std::string hidden;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool number = IsDigit(name[i]) && (hidden.ends_with('_') || hidden.ends_with('#'));
    if (!number) hidden += name[i];
    if (number && !hidden.ends_with('#')) hidden += '#';
  }
  return hidden;
}

}  // namespace

std::vector<std::string> KeyPatterns() {
  Config scratch;
  scratch.features.resize(1);
  scratch.learners.resize(1);
  std::vector<std::string> patterns;
  // Names of a section that are the user's own cannot be told apart from paths in a variable's
  // name.
  for (Row& row : RowsOf(scratch))
    if (row.type >= Row::Type::kSettings && row.type != Row::Type::kWords)
      patterns.push_back(std::move(row.pattern));
  return patterns;
}

std::string EnvironmentName(std::string_view pattern) {
  std::string name(kPrefix);
  for (char c : pattern) name += c == '.' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

Result<std::vector<Setting>> ReadEnvironment(const std::vector<std::string>& variables) {
  std::vector<Setting> settings;
  const std::vector<std::string> patterns = KeyPatterns();
  for (const std::string& variable : variables) {
    const std::string name = variable.substr(0, variable.find('='));
    if (!name.starts_with(kPrefix) || Reserved(name) || name.size() == variable.size()) continue;
    std::string path;
    for (size_t i = 0; path.empty() && i < patterns.size(); ++i) {
      path = MatchPattern(name, patterns[i]);
    }
    if (path.empty()) {
      std::vector<std::string> names;
      for (const std::string& pattern : patterns) names.push_back(EnvironmentName(pattern));
      const std::vector<std::string_view> views(names.begin(), names.end());
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("environment {}: no key has this name{}", name,
                              DidYouMean(NumbersHidden(name), views)));
    }
    settings.push_back({name, std::move(path), variable.substr(name.size() + 1)});
  }
  // The order of variables in the environment has no meaning, so it must not matter.
  std::ranges::sort(settings, {}, &Setting::variable);
  return settings;
}

std::vector<std::string> ProcessEnvironment() {
  std::vector<std::string> variables;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) variables.emplace_back(*at);
  return variables;
}

}  // namespace tacit::config
