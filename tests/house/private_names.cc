#include <fmt/format.h>

#include <map>
#include <optional>
#include <regex>

#include "house_rules.h"

namespace tacit::house {
namespace {

// A private name, by the place where it is declared.
struct Declared {
  std::string place, file;
  std::string line;
};

// The name that a line of an unnamed namespace declares: a type, an alias or a constant. Functions
// are left out, because two with the same name may differ in their parameters.
std::optional<std::string> NameIn(const std::string& line) {
  static const std::regex kType(R"(^(?:struct|class|enum class|enum|union) (\w+).*)");
  static const std::regex kAlias(R"(^using (\w+) =.*)");
  static const std::regex kConstant(
      R"(^(?:constexpr|const) [\w:<>, \*&]+?[ \*&](k[A-Z]\w*)(?:\[.*|\(.*|\{.*| =.*))");
  std::smatch match;
  if (line.empty() || line.starts_with(' ') || line.starts_with("//")) return std::nullopt;
  if (std::regex_match(line, match, kType) && !line.ends_with(';')) return match[1];
  if (std::regex_match(line, match, kAlias)) return match[1];
  if (std::regex_match(line, match, kConstant)) return match[1];
  return std::nullopt;
}

}  // namespace

std::vector<std::string> CheckPrivateNames(const std::filesystem::path& root) {
  std::vector<std::string> offences;
  std::map<std::string, Declared> first;  // by room, namespace and name
  for (const SourceFile& file : ReadSources(root, "src", {".cc"})) {
    const std::string room = file.path.substr(0, file.path.find('/', std::string("src/").size()));
    std::string outer;
    bool is_private = false;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (line.starts_with("namespace tacit")) outer = line;
      if (line == "namespace {") is_private = true;
      if (line == "}  // namespace") is_private = false;
      const auto name = is_private ? NameIn(line) : std::nullopt;
      if (!name) continue;
      const Declared here{fmt::format("{}:{}", file.path, i + 1), file.path, line};
      const auto [known, is_new] = first.emplace(room + outer + *name, here);
      const bool same_alias = line.starts_with("using") && line == known->second.line;
      if (!is_new && known->second.file != file.path && !same_alias)
        offences.push_back(
            fmt::format("{}: {} is private to {} too, and a room is compiled together", here.place,
                        *name, known->second.place));
    }
  }
  return offences;
}

}  // namespace tacit::house
