#include <fmt/format.h>

#include <map>
#include <regex>

#include "house_rules.h"

namespace tacit::house {
namespace {

namespace fs = std::filesystem;

constexpr char kPage[] = "docs/checks.md";

// "src/store/view/load.cc" -> "src/store".
std::string TopRoomOf(const std::string& path) {
  return path.substr(0, path.find('/', path.find('/') + 1));
}

std::map<std::string, size_t> ChecksByRoom(const fs::path& root) {
  static const std::regex kCheck(R"(^(?!#define)(?:(?!//).)*TACIT_CHECK\()");
  std::map<std::string, size_t> checks;
  for (const char* folder : {"src", "cuda"})
    for (const SourceFile& file : ReadSources(root, folder, {".h", ".cc", ".cu", ".cuh"}))
      for (const std::string& line : file.lines)
        if (std::regex_search(line, kCheck)) ++checks[TopRoomOf(file.path)];
  return checks;
}

}  // namespace

std::vector<std::string> CheckChecks(const fs::path& root) {
  static const std::regex kRow(R"(^\| ((src|cuda)/\w+) \| (\d+) \| (\d+) \| (\d+) \|)");
  std::map<std::string, size_t> listed;
  for (const std::string& line : ReadSource(root, kPage).lines)
    if (std::smatch row; std::regex_search(line, row, kRow))
      listed[row[1]] = std::stoul(row[3]) + std::stoul(row[4]) + std::stoul(row[5]);
  std::vector<std::string> offences;
  std::map<std::string, size_t> found = ChecksByRoom(root);
  for (const auto& [room, count] : listed) found.try_emplace(room, 0);
  for (const auto& [room, count] : found)
    if (const size_t told = listed.contains(room) ? listed.at(room) : 0; told != count)
      offences.push_back(fmt::format(
          "{}: has {} checks of {}, and there are {}: say there who sees to it that a new one "
          "holds",
          kPage, told, room, count));
  return offences;
}

}  // namespace tacit::house
