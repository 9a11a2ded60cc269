#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <regex>
#include <string_view>

#include "house_rules.h"

namespace tacit::house {
namespace {

namespace fs = std::filesystem;

constexpr char kDrawsPage[] = "docs/internals/noise.md";

struct Draws {
  size_t count = 0;
  std::string query;  // as the page names it
};

bool IsMeasured(const std::string& path) {
  return path.starts_with("src/lab/") || path.starts_with("src/bench/");
}

bool Has(const SourceFile& file, const std::string& text) {
  return std::ranges::any_of(
      file.lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

// A call of one of these.
bool Calls(std::string_view code, std::initializer_list<std::string_view> methods) {
  return std::ranges::any_of(methods, [&](std::string_view method) {
    return code.find(fmt::format(".{}(", method)) != std::string_view::npos ||
           code.find(fmt::format("->{}(", method)) != std::string_view::npos;
  });
}

// A call of mechanism/grid.h, which adds a grid's noise.
bool ReleasesGrid(std::string_view code) {
  for (const std::string_view name : {"Release(", "ReleaseNoise("}) {
    const size_t at = code.find(name);
    if (at == std::string_view::npos || (at > 0 && code[at - 1] != ' ' && code[at - 1] != ':'))
      continue;
    const std::string_view arguments = code.substr(at + name.size());
    if (!arguments.starts_with("const") && arguments.find("grid") != std::string_view::npos)
      return true;
  }
  return false;
}

std::string_view WithoutComment(std::string_view line) { return line.substr(0, line.find("//")); }

size_t CountDraws(const SourceFile& file) {
  return static_cast<size_t>(std::ranges::count_if(file.lines, [](std::string_view line) {
    const std::string_view code = WithoutComment(line);
    return ReleasesGrid(code) ||
           Calls(code, {"AddGridGaussian", "FillGridGaussian", "Uniform", "Bernoulli", "FillKey",
                        "GeometricSkip", "GaussianTail"});
  }));
}

}  // namespace

std::vector<std::string> CheckDraws(const fs::path& root) {
  static const std::regex kRow(R"(^\| ((?:src|cuda)/\S+) \| (\d+) \| ([a-z ]+) \|$)");
  std::map<std::string, Draws> listed;
  for (const std::string& line : ReadSource(root, kDrawsPage).lines)
    if (std::smatch row; std::regex_match(line, row, kRow))
      listed[row[1]] = {.count = std::stoul(row[2]), .query = row[3]};
  std::vector<std::string> offences;
  for (const char* folder : {"src", "cuda"})
    for (const SourceFile& file : ReadSources(root, folder, {".h", ".cc", ".cu", ".cuh"})) {
      if (file.path.starts_with("src/noise/") || IsMeasured(file.path)) continue;
      for (size_t i = 0; i < file.lines.size(); ++i)
        if (Calls(WithoutComment(file.lines[i]), {"AddGaussian", "FillGaussian"}))
          offences.push_back(
              fmt::format("{}:{}: a float with noise shows what it was before", file.path, i + 1));
      const auto row = listed.find(file.path);
      const Draws told = row == listed.end() ? Draws() : row->second;
      if (row != listed.end()) listed.erase(row);
      if (const size_t found = CountDraws(file); found != told.count)
        offences.push_back(
            fmt::format("{}: draws noise in {} places, and {} lists {}: say there for which query",
                        file.path, found, kDrawsPage, told.count));
      if (told.count > 0 && told.query != "its caller" &&
          !(Has(file, "noise::Declaration") && Has(file, "\"" + told.query + "\"")))
        offences.push_back(
            fmt::format("{}: declares no query \"{}\" for its draws", file.path, told.query));
    }
  for (const auto& [path, draws] : listed)
    offences.push_back(fmt::format("{}: lists {}, which draws no noise", kDrawsPage, path));
  return offences;
}

}  // namespace tacit::house
