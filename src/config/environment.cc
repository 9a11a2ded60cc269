#include "config/environment.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <iterator>

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

bool IsNumber(std::string_view text) { return !text.empty() && std::ranges::all_of(text, IsDigit); }

bool IsAddress(const std::string& text) {
  in6_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

constexpr std::string_view kServiceHost = "_SERVICE_HOST", kServicePort = "_SERVICE_PORT",
                           kPort = "_PORT";

// Returns the variables' names without "_SERVICE_HOST" where the value is an address: the Services
// of a Kubernetes namespace, as kubelet tells every pod of them.
std::vector<std::string_view> ServicesIn(const std::vector<std::string>& variables) {
  std::vector<std::string_view> services;
  for (const std::string_view variable : variables) {
    const std::string_view name = variable.substr(0, variable.find('='));
    if (name.ends_with(kServiceHost) && name.size() < variable.size() &&
        IsAddress(std::string(variable.substr(name.size() + 1))))
      services.push_back(name.substr(0, name.size() - kServiceHost.size()));
  }
  return services;
}

// Returns true for the "8980_TCP_ADDR" of a variable that tells of one port, or for its "8980_TCP".
bool IsPortWord(std::string_view word) {
  const size_t number = std::ranges::find_if_not(word, IsDigit) - word.begin();
  if (number == 0) return false;
  word.remove_prefix(number);
  for (const std::string_view protocol : {"_TCP", "_UDP", "_SCTP"})
    if (word.starts_with(protocol)) {
      const std::string_view of = word.substr(protocol.size());
      return of.empty() || of == "_PROTO" || of == "_PORT" || of == "_ADDR";
    }
  return false;
}

// Returns true for a variable that kubelet sets for one of these Services. It has one of five
// names, and a port in digits or an address with its protocol as its value, so that no misspelt key
// passes for one.
bool TellsOfService(std::string_view name, std::string_view value,
                    const std::vector<std::string_view>& services) {
  return std::ranges::any_of(services, [&](std::string_view service) {
    if (!name.starts_with(service)) return false;
    const std::string_view word = name.substr(service.size());
    if (word == kServiceHost) return true;
    if (word == kServicePort || word.starts_with("_SERVICE_PORT_")) return IsNumber(value);
    if (word == kPort) return value.find("://") != value.npos;
    return word.starts_with("_PORT_") && IsPortWord(word.substr(kPort.size() + 1));
  });
}

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
    if (at == name.size() || name[at] != expected) return "";
    ++at;
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

std::vector<Row> RowsWithNames() {
  Config scratch;
  scratch.features.resize(1);
  scratch.learners.resize(1);
  std::vector<Row> rows = RowsOf(scratch);
  // Names of a section that are the user's own cannot be told apart from paths in a variable's
  // name.
  std::erase_if(rows, [](const Row& row) {
    return row.type < Row::Type::kSettings || row.type == Row::Type::kWords;
  });
  return rows;
}

// Writes the value of a list as YAML: "a, b" as ["a", "b"]. A value that begins with a bracket, or
// with a quotation mark, is YAML already.
std::string ListText(std::string_view value, bool texts) {
  if (value.find(',') == value.npos || std::string_view("[\"'").find(value[0]) != value.npos)
    return std::string(value);
  std::string list = "[";
  for (size_t begin = 0, end = 0; end < value.size(); begin = end + 1) {
    end = std::min(value.find(',', begin), value.size());
    std::string_view item = value.substr(begin, end - begin);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    item = item.substr(0, item.find_last_not_of(' ') + 1);
    fmt::format_to(std::back_inserter(list), "{}{}", begin > 0 ? ", " : "",
                   texts ? QuotedYaml(item) : std::string(item));
  }
  return list + "]";
}

}  // namespace

std::vector<std::string> KeyPatterns() {
  std::vector<std::string> patterns;
  for (Row& row : RowsWithNames()) patterns.push_back(std::move(row.pattern));
  return patterns;
}

std::string EnvironmentName(std::string_view pattern) {
  std::string name(kPrefix);
  for (char c : pattern) name += c == '.' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

Result<std::vector<Setting>> ReadEnvironment(const std::vector<std::string>& variables) {
  std::vector<Setting> settings;
  const std::vector<Row> rows = RowsWithNames();
  const std::vector<std::string_view> services = ServicesIn(variables);
  for (const std::string& variable : variables) {
    const std::string name = variable.substr(0, variable.find('='));
    if (!name.starts_with(kPrefix) || Reserved(name) || name.size() == variable.size()) continue;
    const std::string_view value = std::string_view(variable).substr(name.size() + 1);
    if (TellsOfService(name, value, services)) continue;
    std::string path;
    const auto row = std::ranges::find_if(rows, [&](const Row& key) {
      path = MatchPattern(name, key.pattern);
      return !path.empty();
    });
    if (row == rows.end()) {
      std::vector<std::string> names;
      for (const Row& key : rows) names.push_back(EnvironmentName(key.pattern));
      const std::vector<std::string_view> views(names.begin(), names.end());
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("environment {}: no key has this name{}", name,
                              DidYouMean(NumbersHidden(name), views)));
    }
    const bool texts = row->type == Row::Type::kTexts;
    const bool list = texts || row->type == Row::Type::kIntegers;
    settings.push_back({name, std::move(path), list ? ListText(value, texts) : std::string(value)});
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
