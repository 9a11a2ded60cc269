#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "house_rules.h"

namespace tacit::house {
namespace {

namespace fs = std::filesystem;

// Everything that a page can point at: files by path or by name, and the words of each source file.
class Tree {
 public:
  explicit Tree(const fs::path& root) : root_(root) {
    for (const char* folder : {"src", "cuda", "tests", "tools", "config"})
      for (const SourceFile& file :
           ReadSources(root, folder, {".h", ".cc", ".cu", ".cuh", ".md", ".yaml", ".txt"})) {
        names_.insert(fs::path(file.path).filename().string());
        if (!file.path.ends_with(".md")) words_.push_back(WordsOf(file));
      }
  }

  bool HasFile(const std::string& path, const fs::path& page) const {
    if (path.find('/') == std::string::npos)
      return names_.contains(path) || fs::exists(root_ / path);
    // A page of docs/internals has the name of its room.
    for (const fs::path& from : {fs::path(), fs::path("src"), page.parent_path(),
                                 fs::path("src") / page.stem(), page.stem()})
      if (fs::exists(root_ / from / path)) return true;
    return false;
  }

  // Tells whether one file has every part of a name, as both of `Trainer::TakeStep`.
  bool HasName(const std::string& name) const {
    static const std::regex kPart(R"(\w+)");
    const std::sregex_iterator begin(name.begin(), name.end(), kPart), end;
    return std::ranges::any_of(words_, [&](const std::set<std::string>& words) {
      return std::all_of(begin, end, [&](const auto& part) { return words.contains(part.str()); });
    });
  }

 private:
  static std::set<std::string> WordsOf(const SourceFile& file) {
    std::set<std::string> words;
    for (const std::string& line : file.lines)
      for (size_t at = 0; (at = line.find_first_of(kLetters, at)) != std::string::npos;) {
        const size_t end = std::min(line.find_first_not_of(kLetters, at), line.size());
        words.insert(line.substr(at, end - at));
        at = end;
      }
    return words;
  }

  static constexpr const char* kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  const fs::path root_;
  std::set<std::string> names_;
  std::vector<std::set<std::string>> words_;
};

}  // namespace

std::vector<std::string> CheckSignposts(const fs::path& root) {
  static const std::regex kQuoted("`([^`]+)`");
  static const std::regex kFile(R"([\w./+-]*\w\.(h|cc|cu|cuh|md|yaml))");
  static const std::regex kName(R"([A-Z]\w*[a-z]\w*(::\w+)*)");
  std::vector<SourceFile> pages;
  for (const char* folder : {"src", "cuda"})
    for (SourceFile& page : ReadSources(root, folder, {"README.md"}))
      pages.push_back(std::move(page));
  for (SourceFile& page : ReadSources(root, "docs/internals", {".md"}))
    pages.push_back(std::move(page));
  pages.push_back(ReadSource(root, "CONTRIBUTING.md"));
  const Tree tree(root);
  std::vector<std::string> offences;
  for (const SourceFile& page : pages)
    for (size_t i = 0; i < page.lines.size(); ++i) {
      const std::string& line = page.lines[i];
      for (std::sregex_iterator quoted(line.begin(), line.end(), kQuoted), end; quoted != end;
           ++quoted) {
        const std::string text = (*quoted)[1];
        const bool is_file = std::regex_match(text, kFile);
        if (is_file ? tree.HasFile(text, page.path)
                    : !std::regex_match(text, kName) || tree.HasName(text))
          continue;
        offences.push_back(fmt::format("{}:{}: there is no {} {}", page.path, i + 1,
                                       is_file ? "file" : "name", text));
      }
    }
  return offences;
}

}  // namespace tacit::house
