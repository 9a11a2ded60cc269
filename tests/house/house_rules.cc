#include "house_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <set>

namespace tacit::house {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLinesMax = 600;
constexpr size_t kReadmeLinesMost = 60;

// The line without what follows //. Good enough: no rule concerns what a string holds.
std::string_view Code(std::string_view line) { return line.substr(0, line.find("//")); }

// Every line outside comments of the files that holds one of these texts.
std::vector<std::string> FindTexts(const std::vector<SourceFile>& files,
                                   const std::vector<std::string>& texts, std::string_view why) {
  std::vector<std::string> offences;
  for (const SourceFile& file : files) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& text : texts) {
        if (Code(file.lines[i]).find(text) == std::string_view::npos) continue;
        offences.push_back(fmt::format("{}:{}: {}: {}", file.path, i + 1, text, why));
      }
    }
  }
  return offences;
}

std::vector<fs::directory_entry> RoomsOfCuda(const fs::path& root) {
  std::vector<fs::directory_entry> rooms;
  if (!fs::exists(root / "cuda")) return rooms;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "cuda"))
    if (entry.is_directory()) rooms.push_back(entry);
  return rooms;
}

void Append(std::vector<std::string>* all, std::vector<std::string> more) {
  all->insert(all->end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

// The code of src/ and cuda/.
std::vector<SourceFile> ReadProduct(const fs::path& root) {
  std::vector<SourceFile> files = ReadSources(root, "src", {".cc", ".h"});
  for (SourceFile& file : ReadSources(root, "cuda", {".cc", ".h", ".cu"}))
    files.push_back(std::move(file));
  return files;
}

// Adds an offence if the README of a room, or of cuda/, is longer than a first page.
void CheckReadme(const fs::path& root, const std::string& room,
                 std::vector<std::string>* offences) {
  const SourceFile readme = ReadSource(root, room + "/README.md");
  if (readme.lines.size() > kReadmeLinesMost)
    offences->push_back(fmt::format("{}: {} lines, more than {}: docs/internals has the details",
                                    readme.path, readme.lines.size(), kReadmeLinesMost));
}

// A class of another room is declared, and nothing else.
bool DeclaresOneClass(const SourceFile& file, size_t line) {
  return line + 2 < file.lines.size() && file.lines[line + 1].starts_with("class ") &&
         file.lines[line + 1].ends_with(";") && file.lines[line + 2].starts_with("}");
}

}  // namespace

SourceFile ReadSource(const fs::path& root, const std::string& path) {
  SourceFile file{.path = path, .lines = {}};
  std::ifstream in(root / path);
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

std::vector<SourceFile> ReadSources(const fs::path& root, const std::string& folder,
                                    const std::vector<std::string>& extensions) {
  std::vector<SourceFile> files;
  if (!fs::exists(root / folder)) return files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
    const fs::path& path = entry.path();
    const bool wanted = std::ranges::any_of(extensions, [&](const std::string& extension) {
      return path.extension() == extension || path.filename() == extension;
    });
    if (!entry.is_regular_file() || !wanted) continue;
    files.push_back(ReadSource(root, path.lexically_relative(root).generic_string()));
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

std::vector<std::string> CheckRooms(const fs::path& root) {
  std::vector<std::string> offences;
  for (const fs::directory_entry& room : fs::directory_iterator(root / "src")) {
    if (!room.is_directory()) continue;
    for (const char* name : {"README.md", "CMakeLists.txt"}) {
      if (fs::exists(room.path() / name)) continue;
      offences.push_back(fmt::format("src/{}: has no {}", room.path().filename().string(), name));
    }
    CheckReadme(root, "src/" + room.path().filename().string(), &offences);
  }
  CheckReadme(root, "cuda", &offences);
  // Those of cuda/ are built by its one CMakeLists.txt.
  for (const fs::directory_entry& room : RoomsOfCuda(root)) {
    if (fs::exists(room.path() / "README.md")) continue;
    offences.push_back(fmt::format("cuda/{}: has no README.md", room.path().filename().string()));
  }
  std::ranges::sort(offences);
  return offences;
}

std::vector<std::string> CheckTopLevel(const fs::path& root) {
  static const std::set<std::string> kAllowed = {
      "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "CONTRIBUTING.md",
      "CHANGELOG.md", "SECURITY.md", "src", "cuda", "config", "schemas", "tools", "tests",
      "systemd", "docs", "packaging",
      // Made by the tools, and ignored by git.
      "build", "demo-data", "demo-data-witness", "kafka-data", "kafka-data-witness", "own", "shop",
      "shop-witness", "criteo", "movies"};
  std::vector<std::string> offences;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || kAllowed.contains(name)) continue;
    offences.push_back(fmt::format("{}: does not belong at the top", name));
  }
  std::ranges::sort(offences);
  return offences;
}

std::vector<std::string> CheckRandomness(const fs::path& root) {
  return FindTexts(ReadProduct(root),
                   {"mt19937", "random_device", "normal_distribution", "default_random_engine",
                    "minstd_rand", "std::rand", "#include <random>"},
                   "randomness comes from the noise room");
}

std::vector<std::string> CheckProcessor(const fs::path& root) {
  std::vector<SourceFile> files = ReadSources(root, "src", {".cc", ".h"});
  std::erase_if(files, [](const SourceFile& file) { return file.path == "src/base/cpu.cc"; });
  return FindTexts(files, {"__builtin_cpu", "cpuid", "target_clones"},
                   "base/cpu.h says what the processor has");
}

std::vector<std::string> CheckLocks(const fs::path& root) {
  std::vector<SourceFile> files = ReadProduct(root);
  std::erase_if(files,
                [](const SourceFile& file) { return file.path == "src/base/threads/mutex.h"; });
  return FindTexts(
      files, {"std::mutex", "std::recursive_mutex", "std::shared_mutex", "std::condition_variable"},
      "clang checks the locks of base/threads/mutex.h alone");
}

std::vector<std::string> CheckNamespaces(const fs::path& root) {
  std::vector<std::string> offences;
  for (const SourceFile& file : ReadSources(root, "src", {".cc", ".h"})) {
    const std::string room = file.path.substr(4, file.path.find('/', 4) - 4);  // after "src/"
    if (room == "base") continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (!line.starts_with("namespace tacit")) continue;
      if (line.starts_with("namespace tacit::" + room + " {") ||
          line.starts_with("namespace tacit::" + room + "::"))
        continue;
      if (line.starts_with("namespace tacit::") && DeclaresOneClass(file, i)) continue;
      offences.push_back(
          fmt::format("{}:{}: the namespace of {} is tacit::{}", file.path, i + 1, room, room));
    }
  }
  return offences;
}

std::vector<std::string> CheckReading(const fs::path& root) {
  constexpr std::string_view kWhy = "base/files/regular_file.h reads files";
  std::vector<std::string> offences = FindTexts(ReadProduct(root), {"istreambuf_iterator"}, kWhy);
  // Rooms whose files a daemon reads by the names of its configuration: a pipe would hold it up.
  for (const char* room : {"src/config", "src/daemon", "src/event", "src/serve", "src/wiring"})
    Append(&offences, FindTexts(ReadSources(root, room, {".cc", ".h"}), {"ifstream"}, kWhy));
  return offences;
}

namespace {

std::vector<SourceFile> ReadBuildFiles(const fs::path& root) {
  std::vector<SourceFile> files;
  for (const char* folder : {"src", "tests", "cuda"}) {
    for (SourceFile& file : ReadSources(root, folder, {"CMakeLists.txt", ".cmake"})) {
      files.push_back(std::move(file));
    }
  }
  files.push_back(ReadSource(root, "CMakeLists.txt"));
  return files;
}

}  // namespace

std::vector<std::string> CheckCompileFlags(const fs::path& root) {
  return FindTexts(ReadBuildFiles(root), {"march=native", "mtune=native"},
                   "a shipped binary must run on other machines than this");
}

std::vector<std::string> CheckSourceLists(const fs::path& root) {
  std::vector<std::string> offences;
  for (const SourceFile& file : ReadBuildFiles(root)) {
    std::string last;  // the source that the line before is
    for (size_t i = 0; i < file.lines.size(); ++i) {
      std::string line = file.lines[i].substr(0, file.lines[i].find('#'));
      if (line.starts_with("set_source_files_properties")) continue;
      std::ranges::replace_if(
          line, [](char c) { return c == '(' || c == ')'; }, ' ');
      std::istringstream words(line);
      std::vector<std::string> sources;
      bool alone = true;
      for (std::string word; words >> word;) {
        if (word.ends_with(".cc") || word.ends_with(".cu"))
          sources.push_back(word);
        else
          alone = false;
      }
      if (sources.size() > 1)
        offences.push_back(fmt::format("{}:{}: more than one source", file.path, i + 1));
      const bool in_list = alone && sources.size() == 1 && !sources[0].starts_with("$");
      if (in_list && !last.empty() && sources[0] < last)
        offences.push_back(
            fmt::format("{}:{}: {} stands after {}", file.path, i + 1, sources[0], last));
      last = in_list ? sources[0] : "";
    }
  }
  return offences;
}

std::vector<std::string> CheckFolders(const fs::path& root) {
  constexpr size_t kUnitsMost = 30;  // a header with its source
  std::map<fs::path, std::set<std::string>> units;
  for (const char* folder : {"src", "cuda"})
    for (const SourceFile& file : ReadSources(root, folder, {".cc", ".h", ".cu"}))
      units[fs::path(file.path).parent_path()].insert(fs::path(file.path).stem());
  std::vector<std::string> offences;
  for (const auto& [folder, names] : units)
    if (names.size() > kUnitsMost)
      offences.push_back(
          fmt::format("{}: {} units, more than {}", folder.string(), names.size(), kUnitsMost));
  return offences;
}

std::vector<std::string> CheckFiles(const fs::path& root) {
  std::vector<std::string> offences;
  for (const char* folder : {"src", "tests", "cuda"}) {
    for (const SourceFile& file : ReadSources(root, folder, {".cc", ".h", ".cu", ".cuh"})) {
      if (file.lines.size() > kLinesMax) {
        offences.push_back(
            fmt::format("{}: {} lines, more than {}", file.path, file.lines.size(), kLinesMax));
      }
      const bool header = file.path.ends_with(".h") || file.path.ends_with(".cuh");
      if (header && std::ranges::find(file.lines, "#pragma once") == file.lines.end()) {
        offences.push_back(fmt::format("{}: has no #pragma once", file.path));
      }
      for (size_t i = 0; i < file.lines.size(); ++i) {
        for (const char* mark : {"TO"
                                 "DO",
                                 "FIX"
                                 "ME",
                                 "X"
                                 "XX:"}) {
          if (file.lines[i].find(mark) == std::string::npos) continue;
          offences.push_back(fmt::format("{}:{}: leaves something for later", file.path, i + 1));
        }
      }
    }
  }
  return offences;
}

std::vector<std::string> HeadlessComments(const fs::path& root,
                                          const std::vector<std::string>& folders) {
  static const std::set<std::string> kOpenings = {
      "What", "Of", "Whose", "Whoever", "Who", "Whom", "Where", "How", "Why", "Which", "Whether"};
  std::vector<std::string> found;
  for (const std::string& folder : folders) {
    for (const SourceFile& file : ReadSources(root, folder, {".cc", ".h", ".cu", ".cuh"})) {
      bool in_comment = false;
      for (size_t i = 0; i < file.lines.size(); ++i) {
        const std::string& line = file.lines[i];
        const size_t begin = line.find_first_not_of(' ');
        const bool comment = begin != std::string::npos && line.compare(begin, 3, "// ") == 0;
        if (comment && !in_comment) {
          const size_t word = begin + 3;
          if (kOpenings.contains(line.substr(word, line.find_first_of(" ,.:;", word) - word)))
            found.push_back(fmt::format("{}:{}", file.path, i + 1));
        }
        in_comment = comment;
      }
    }
  }
  return found;
}

namespace {

// The comment at the end of a line; empty if // stands in a string.
std::string_view CommentOf(std::string_view line) {
  const size_t at = line.find("//");
  if (at == std::string_view::npos || std::ranges::count(line.substr(0, at), '"') % 2 == 1)
    return {};
  return line.substr(at);
}

// A page's line without what stands in backticks.
std::string Prose(const std::string& line) {
  std::string prose;
  bool quoted = false;
  for (const char c : line) {
    if (c == '`') quoted = !quoted;
    if (!quoted) prose += c;
  }
  return prose;
}

// The first of the words that a text has, or "".
std::string_view DialectIn(std::string_view text) {
  static constexpr std::string_view kDialect[] = {
      "whoever", "whatever", "whichever", "thrice",   "likewise",
      "but for", "so many",  "null:",     "nullptr:", "nullopt:"};
  const auto is_letter = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view word : kDialect)
    for (size_t at = 0; (at = lower.find(word, at)) != std::string::npos; ++at) {
      const size_t end = at + word.size();
      const bool colon = word.ends_with(':');  // not that of a namespace, nor of JSON
      if ((at == 0 || (!is_letter(lower[at - 1]) && lower[at - 1] != '"')) &&
          (end == lower.size() || (colon ? lower[end] == ' ' : !is_letter(lower[end]))))
        return word;
    }
  return {};
}

}  // namespace

std::vector<std::string> CheckWords(const fs::path& root) {
  std::vector<SourceFile> files;
  for (const char* folder : {"src", "cuda", "tests", "docs"})
    for (SourceFile& file : ReadSources(root, folder, {".h", ".cc", ".cu", ".cuh", ".md"}))
      // Figures of the past stay as they were told.
      if (!file.path.starts_with("tests/bench/history")) files.push_back(std::move(file));
  for (const char* page : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"})
    files.push_back(ReadSource(root, page));
  std::vector<std::string> offences;
  for (const SourceFile& file : files)
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      const bool page = file.path.ends_with(".md");
      if (const std::string_view word = page ? DialectIn(Prose(line)) : DialectIn(CommentOf(line));
          !word.empty())
        offences.push_back(fmt::format("{}:{}: {}", file.path, i + 1, word));
    }
  return offences;
}

std::vector<std::string> CheckHouse(const fs::path& root) {
  std::vector<std::string> offences = CheckIncludes(root);
  Append(&offences, CheckRooms(root));
  Append(&offences, CheckTopLevel(root));
  Append(&offences, CheckRandomness(root));
  Append(&offences, CheckDraws(root));
  Append(&offences, CheckProcessor(root));
  Append(&offences, CheckLocks(root));
  Append(&offences, CheckReading(root));
  Append(&offences, CheckCompileFlags(root));
  Append(&offences, CheckSourceLists(root));
  Append(&offences, CheckPrivateNames(root));
  Append(&offences, CheckNamespaces(root));
  Append(&offences, CheckSignposts(root));
  Append(&offences, CheckChecks(root));
  Append(&offences, CheckFolders(root));
  Append(&offences, CheckFiles(root));
  Append(&offences, CheckWords(root));
  return offences;
}

}  // namespace tacit::house
