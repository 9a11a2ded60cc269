#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "house_rules.h"

namespace tacit::house {
namespace {

using Names = std::set<std::string>;

// Which rooms, or single headers, a room may include besides itself and base. The plan of the
// house, as one table: stream, store, privacy and ops never see each other, but for the ledger
// types that the store keeps; only app sees the configuration; serve never sees train.
const std::map<std::string, Names>& Arrows() {
  static const std::map<std::string, Names> kArrows = {
      {"base", {}},
      {"config", {}},
      {"metrics", {}},
      {"noise", {}},
      {"privacy", {}},
      {"event", {"metrics"}},
      {"ops", {}},
      {"model", {"ops"}},
      {"mechanism", {"ops", "noise", "model/gradient.h", "model/examples.h", "privacy/charge.h"}},
      {"stream", {"event", "metrics", "noise"}},
      {"store", {"metrics", "privacy"}},
      {"train",
       {"metrics", "noise", "privacy", "event", "ops", "model", "mechanism", "stream", "store"}},
      // ops: a model runs on a backend, and a scorer runs a model.
      {"serve", {"event", "store", "model", "ops", "metrics", "privacy"}},
      {"app",
       {"config", "metrics", "noise", "privacy", "event", "ops", "model", "mechanism", "stream",
        "store", "train", "serve"}}};
  return kArrows;
}

// A library's headers and the rooms where they are at home.
struct Library {
  std::string prefix;
  Names rooms;  // empty: everywhere, headers included
};
const std::vector<Library>& Libraries() {
  static const std::vector<Library> kLibraries = {
      {"fmt/", {}},
      {"spdlog/", {}},
      {"tl/", {}},
      {"google/protobuf/", {"event"}},
      {"kissfft/", {"privacy"}},
      {"librdkafka/", {"stream"}},
      {"openssl/", {"base", "noise", "privacy", "store"}},
      {"simdjson.h", {"event"}},
      {"xxhash.h", {"base", "store"}},
      {"rocksdb/", {"store"}},
      {"yaml-cpp/", {"config"}},
      {"oneapi/", {"ops"}},
      {"dnnl", {"ops"}},
      {"omp.h", {"ops"}},
      {"prometheus/", {"metrics"}},
      {"zlib.h", {"stream", "app"}},
      {"zstd.h", {"stream"}},
      {"curl/", {"stream"}},
      {"boost/json", {"event", "privacy", "serve", "app"}},
      {"boost/asio", {"serve", "app"}},
      {"boost/beast", {"serve"}},
      {"CLI/", {"app"}},
      {"systemd/", {"app"}},
      {"benchmark/", {"app"}}};
  return kLibraries;
}

// Headers of the operating system and the compiler, which belong to nobody.
bool IsSystem(const std::string& header) {
  static const Names kSystem = {"unistd.h", "fcntl.h",     "signal.h", "sched.h",  "pthread.h",
                                "glob.h",   "immintrin.h", "poll.h",   "dirent.h", "termios.h",
                                "cpuid.h",  "netdb.h",     "ftw.h",    "endian.h", "dlfcn.h"};
  const bool standard = header.find_first_of("./") == std::string::npos;
  return standard || kSystem.contains(header) || header.starts_with("sys/") ||
         header.starts_with("netinet/") || header.starts_with("arpa/") ||
         header.starts_with("linux/");
}

struct Include {
  std::string header;
  bool quoted = false;
  size_t line = 0;
};

std::optional<Include> ParseInclude(std::string_view line, size_t number) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#') return std::nullopt;
  const size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string_view::npos || !line.substr(word).starts_with("include")) {
    return std::nullopt;
  }
  const size_t open = line.find_first_of("\"<", word);
  if (open == std::string_view::npos) return std::nullopt;
  const size_t close = line.find(line[open] == '"' ? '"' : '>', open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  return Include{std::string(line.substr(open + 1, close - open - 1)), line[open] == '"', number};
}

std::vector<Include> IncludesOf(const SourceFile& file) {
  std::vector<Include> includes;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    if (std::optional<Include> include = ParseInclude(file.lines[i], i + 1)) {
      includes.push_back(std::move(*include));
    }
  }
  return includes;
}

std::string RoomOf(const std::string& path) { return path.substr(0, path.find('/')); }

const Library* LibraryOf(const std::string& header) {
  for (const Library& library : Libraries()) {
    if (header.starts_with(library.prefix)) return &library;
  }
  return nullptr;
}

// What one include breaks, or nothing.
std::string Judge(const std::string& room, const Include& include) {
  if (include.quoted) {
    const std::string other = RoomOf(include.header);
    const Names& allowed = Arrows().at(room);
    if (other == room || other == "base" || allowed.contains(other) ||
        allowed.contains(include.header)) {
      return "";
    }
    if (!Arrows().contains(other)) return fmt::format("\"{}\" is in no room", include.header);
    return fmt::format("{} may not include {}", room, include.header);
  }
  const Library* library = LibraryOf(include.header);
  if (library == nullptr) {
    return IsSystem(include.header) ? "" : fmt::format("<{}> is a stranger", include.header);
  }
  if (library->rooms.empty() || library->rooms.contains(room)) return "";
  return fmt::format("<{}> is not at home in {}", include.header, room);
}

using IncludesByFile = std::map<std::string, std::vector<Include>>;

// The room-bound library header that including `header` brings along, or "".
std::string Leak(const IncludesByFile& files, const std::string& header, Names* seen) {
  const auto found = files.find(header);
  if (found == files.end() || !seen->insert(header).second) return "";
  for (const Include& include : found->second) {
    if (!include.quoted) {
      const Library* library = LibraryOf(include.header);
      if (library != nullptr && !library->rooms.empty()) return include.header;
      continue;
    }
    if (std::string leak = Leak(files, include.header, seen); !leak.empty()) return leak;
  }
  return "";
}

}  // namespace

std::vector<std::string> CheckIncludes(const std::filesystem::path& root) {
  std::vector<std::string> offences;
  IncludesByFile files;  // by the name they are included with
  for (const SourceFile& file : ReadSources(root, "src", {".cc", ".h"})) {
    files[file.path.substr(4)] = IncludesOf(file);
  }
  for (const auto& [file, includes] : files) {
    const std::string room = RoomOf(file);
    if (!Arrows().contains(room)) {
      offences.push_back(fmt::format("src/{}: {} is no room of the house", file, room));
      continue;
    }
    for (const Include& include : includes) {
      std::string offence = Judge(room, include);
      if (offence.empty() && include.quoted && RoomOf(include.header) != room) {
        Names seen;
        const std::string leak = Leak(files, include.header, &seen);
        if (!leak.empty()) {
          offence = fmt::format("{} brings <{}> out of its room", include.header, leak);
        }
      }
      if (!offence.empty()) {
        offences.push_back(fmt::format("src/{}:{}: {}", file, include.line, offence));
      }
    }
  }
  return offences;
}

}  // namespace tacit::house
