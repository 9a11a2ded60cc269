#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "house_rules.h"

namespace tacit::house {
namespace {

using Names = std::set<std::string>;

// The rooms that wiring is wired from, the configuration among them.
Names Below() {
  return {"config", "metrics", "noise", "privacy", "event", "ops",  "model",  "mechanism",
          "stream", "store",   "train", "http",    "serve", "feed", "workers"};
}

Names And(Names names, const Names& more) {
  names.insert(more.begin(), more.end());
  return names;
}

// The rooms, or single headers, that a room may include besides itself and base. The plan of the
// house, as one table: stream, store, privacy and ops never see each other, except for the ledger
// types that the store keeps; only what is wired sees the configuration; serve never sees train.
const std::map<std::string, Names>& Arrows() {
  static const std::map<std::string, Names> kArrows = {
      {"base", {}},
      // The plain types that a configuration holds are those of the rooms that use them.
      {"config", {"event/record_shape.h", "privacy/charge.h"}},
      {"metrics", {}},
      {"noise", {}},
      {"privacy", {}},
      {"audit", {"privacy"}},
      {"event", {"metrics"}},
      {"ops", {}},
      {"model", {"ops"}},
      {"mechanism", {"ops", "noise", "model/gradient.h", "model/examples.h", "privacy/charge.h"}},
      {"stream", {"event", "metrics", "noise"}},
      {"store", {"metrics", "privacy"}},
      // feed: what the store may show goes into a topic; it stands beside train and serve.
      {"feed", {"privacy", "store", "stream"}},
      // Sees the mark of a record and what a source asks, and no client of Kafka.
      {"workers",
       {"event/raw_records.h", "stream/kafka/identity.h", "stream/kafka/period_share.h",
        "metrics"}},
      {"train",
       {"metrics", "noise", "privacy", "event", "ops", "model", "mechanism", "stream", "store"}},
      // Knows nothing of what is served.
      {"http", {"metrics"}},
      // ops: a model runs on a backend, and a scorer runs a model.
      {"serve", {"event", "store", "model", "ops", "metrics", "privacy", "http"}},
      {"console", {}},
      {"wiring", And(Below(), {"console/text_table.h"})},
      {"inspect", And(Below(), {"wiring", "console"})},
      {"daemon", And(Below(), {"wiring", "console", "cuda/learn/gpu.h"})},
      {"lab", And(Below(), {"wiring", "console", "audit"})},
      {"bench", And(Below(), {"wiring"})},
      {"cli", And(Below(), {"wiring", "console", "inspect", "lab", "bench", "audit",
                            "cuda/bench/gpu_bench.h"})},
      // The device's part. Of src/ it sees the headers that both sides compute with.
      {"cuda", {"cuda/learn/gpu.h"}},
      {"cuda/device", {}},
      {"cuda/kernels",
       {"cuda/device", "mechanism/clip_law.h", "mechanism/nearest.h", "noise/declared.h",
        "noise/grid_gaussian.h", "noise/grid_portable.h", "noise/noise.h", "ops/bf16.h",
        "ops/exp.h", "ops/row_gradient_norm.h", "train/optimizer/optimizer_math.h"}},
      {"cuda/rows",
       {"cuda/device", "cuda/kernels", "store/rows/row_arrival.h", "store/rows/working_rows.h"}},
      {"cuda/learn",
       {"cuda/device", "cuda/kernels", "cuda/rows", "ops", "mechanism", "model", "noise/noise.h",
        "store/types/delta.h", "store/rows/working_rows.h", "stream/steps/participation.h",
        "train/engines/click_engine.h", "train/engines/gpu.h", "train/engines/gpu_scoring.h",
        "train/learner/loss_sum.h", "train/optimizer/optimizer.h",
        "train/engines/sequence_engine.h"}},
      {"cuda/bench", And(Below(), {"wiring", "bench", "cuda/device", "cuda/kernels", "cuda/rows",
                                   "cuda/learn"})}};
  return kArrows;
}

// The folders inside a large room, and the folders of the same room that each may include. "store/"
// is what lies in the room itself. Circles: none, which a test reads off this table.
const std::map<std::string, Names>& FolderArrows() {
  static const std::map<std::string, Names> kArrows = {
      // A store from the bottom up: plain types, files, the three kinds of value, what a commit
      // shows, copies of it, the commit itself, and those who work on stores of others.
      {"store/types", {}},
      {"store/disk", {"store/types"}},
      {"store/rows", {"store/types", "store/disk"}},
      {"store/users", {"store/types", "store/disk"}},
      {"store/witness", {"store/disk", "store/rows"}},
      {"store/view", {"store/types", "store/disk", "store/rows", "store/users", "store/witness"}},
      {"store/checkpoint", {"store/types", "store/disk", "store/rows", "store/view"}},
      {"store/",
       {"store/types", "store/disk", "store/rows", "store/users", "store/witness", "store/view",
        "store/checkpoint"}},
      {"store/replica",
       {"store/types", "store/disk", "store/rows", "store/users", "store/view", "store/"}},
      {"store/care",
       {"store/types", "store/disk", "store/rows", "store/users", "store/witness", "store/view",
        "store/checkpoint", "store/"}},
      {"base/", {}},
      {"base/files", {"base/"}},
      {"base/threads", {"base/"}},
      // A kind of model knows no other, except the counts that others begin with.
      {"model/", {}},
      {"model/carriers", {"model/"}},
      {"model/linear", {}},
      {"model/transitions", {"model/"}},
      {"model/ranking", {"model/transitions"}},
      {"model/sequence", {"model/", "model/transitions"}},
      {"mechanism/", {}},
      {"mechanism/choice", {"mechanism/"}},
      {"mechanism/forward", {"mechanism/"}},
      // Sources do not know each other, nor the steps.
      {"stream/", {}},
      {"stream/generator", {"stream/"}},
      {"stream/kafka", {"stream/"}},
      {"stream/log", {"stream/"}},
      {"stream/steps", {"stream/"}},
      // The trainer knows learners by one header, and no kind of them.
      {"train/learner", {}},
      {"train/optimizer", {}},
      {"train/watch", {}},
      {"train/quality", {"train/learner"}},
      {"train/engines", {"train/learner", "train/optimizer"}},
      {"train/forward", {"train/learner", "train/optimizer", "train/engines"}},
      {"train/click", {"train/learner", "train/optimizer", "train/engines", "train/forward"}},
      {"train/linear", {"train/learner", "train/click"}},
      {"train/counts", {"train/learner"}},
      {"train/sequence", {"train/learner", "train/optimizer", "train/engines", "train/counts"}},
      {"train/ranking", {"train/learner", "train/optimizer", "train/counts", "train/sequence"}},
      {"train/", {"train/learner", "train/quality", "train/watch"}},
      // A command beside what it is made of; small ones lie in the room.
      {"cli/parts", {}},
      {"cli/evaluate", {"cli/parts"}},
      {"cli/export", {"cli/parts"}},
      {"cli/generate", {"cli/parts"}},
      {"cli/ledger", {"cli/parts"}},
      {"cli/privacy", {"cli/parts", "cli/ledger"}},
      {"cli/query", {"cli/parts"}},
      {"cli/replay", {"cli/parts"}},
      {"cli/", {"cli/parts", "cli/export", "cli/ledger"}},
      {"cuda/kernels/", {}},
      {"cuda/kernels/parts", {}},
      {"cuda/kernels/dense", {"cuda/kernels/parts"}},
      {"cuda/kernels/gemm", {"cuda/kernels/parts"}},
      {"cuda/kernels/noise", {"cuda/kernels/parts"}},
      {"cuda/kernels/reattention", {"cuda/kernels/parts"}},
      {"cuda/kernels/rows", {"cuda/kernels/parts", "cuda/kernels/dense", "cuda/kernels/noise"}},
      {"cuda/kernels/sequence", {"cuda/kernels/parts", "cuda/kernels/gemm", "cuda/kernels/rows"}},
      // Scores and items out of a snapshot, the versions they come from, what is said of them; then
      // the routes, and the whole.
      {"serve/scoring", {}},
      {"serve/items", {"serve/scoring"}},
      {"serve/versions", {"serve/items"}},
      {"serve/answers", {"serve/scoring", "serve/items", "serve/versions"}},
      {"serve/routes", {"serve/scoring", "serve/items", "serve/versions"}},
      {"serve/dashboard", {"serve/scoring", "serve/routes"}},
      {"serve/inference", {"serve/scoring", "serve/versions", "serve/answers", "serve/routes"}},
      {"serve/",
       {"serve/scoring", "serve/answers", "serve/routes", "serve/dashboard", "serve/inference"}},
      // The options of one thing each; then the whole, which kinds and restores see.
      {"wiring/plans", {}},
      {"wiring/", {"wiring/plans"}},
      {"wiring/kinds", {"wiring/plans", "wiring/"}},
      {"wiring/restore", {"wiring/plans", "wiring/"}},
      // A worker knows nothing of a trainer.
      {"daemon/worker", {}},
      {"daemon/", {"daemon/worker"}}};
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
      {"openssl/", {"base", "noise", "privacy", "store", "http", "workers"}},
      {"simdjson.h", {"event"}},
      {"xxhash.h", {"base", "store"}},
      {"rocksdb/", {"store"}},
      {"archive.h", {"store"}},
      {"archive_entry.h", {"store"}},
      {"boost/crc.hpp", {"store"}},
      {"boost/math/", {"audit"}},
      {"yaml-cpp/", {"config"}},
      {"oneapi/", {"ops"}},
      {"dnnl", {"ops"}},
      {"omp.h", {"ops"}},
      {"prometheus/", {"metrics"}},
      {"zlib.h", {"stream", "cli", "http"}},
      {"zstd.h", {"stream"}},
      {"curl/", {"stream"}},
      {"boost/json",
       {"event", "privacy", "http", "serve", "console", "wiring", "inspect", "daemon", "lab",
        "bench", "cuda/bench", "cli"}},
      {"boost/asio", {"http", "bench"}},
      {"boost/beast", {"http", "bench"}},
      {"CLI/", {"cli", "console", "daemon"}},
      {"benchmark/", {"bench"}},
      {"cuda", {"cuda/device"}},
      {"sanitizer/", {"cuda/device"}}};
  return kLibraries;
}

// Headers of the operating system and the compiler, which belong to no library.
bool IsSystem(const std::string& header) {
  static const Names kSystem = {"unistd.h",   "fcntl.h",     "signal.h", "sched.h",   "pthread.h",
                                "glob.h",     "immintrin.h", "poll.h",   "dirent.h",  "termios.h",
                                "cpuid.h",    "netdb.h",     "ftw.h",    "endian.h",  "dlfcn.h",
                                "ucontext.h", "fnmatch.h",   "malloc.h", "execinfo.h"};
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

// By the name a file is included with: "ops" of ops/backend.h, "cuda/device" of
// cuda/device/stream.h, "cuda" of what lies between cuda's rooms.
std::string RoomOf(const std::string& path) {
  const size_t first = path.find('/'), second = path.find('/', first + 1);
  if (path.starts_with("cuda/") && second != std::string::npos) return path.substr(0, second);
  return path.substr(0, first);
}

// By the name a file is included with: "store/disk" of store/disk/rocks.h, "store/" of
// store/store.h.
std::string FolderOf(const std::string& path) {
  const size_t room = RoomOf(path).size() + 1, slash = path.find('/', room);
  return slash == std::string::npos ? path.substr(0, room) : path.substr(0, slash);
}

bool HasFolders(const std::string& room) { return FolderArrows().contains(room + "/"); }

// From the top, of the name it is included with.
std::string PathOf(const std::string& file) {
  return file.starts_with("cuda/") ? file : "src/" + file;
}

const Library* LibraryOf(const std::string& header) {
  for (const Library& library : Libraries()) {
    if (header.starts_with(library.prefix)) return &library;
  }
  return nullptr;
}

// The rule that an include of the same room breaks, or nothing.
std::string JudgeFolders(const std::string& folder, const std::string& header) {
  const std::string other = FolderOf(header);
  if (other == folder || FolderArrows().at(folder).contains(other)) return "";
  return fmt::format("{} may not include {}", folder, header);
}

// The rule that one include of this file breaks, or nothing.
std::string Judge(const std::string& file, const Include& include) {
  const std::string room = RoomOf(file);
  if (include.quoted) {
    const std::string other = RoomOf(include.header);
    if (other == room && HasFolders(room)) return JudgeFolders(FolderOf(file), include.header);
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

// The library header that including `header` brings to a room where it is not at home, or "".
std::string Leak(const IncludesByFile& files, const std::string& header, const std::string& room,
                 Names* seen) {
  const auto found = files.find(header);
  if (found == files.end() || !seen->insert(header).second) return "";
  for (const Include& include : found->second) {
    if (!include.quoted) {
      const Library* library = LibraryOf(include.header);
      if (library != nullptr && !library->rooms.empty() && !library->rooms.contains(room))
        return include.header;
      continue;
    }
    if (std::string leak = Leak(files, include.header, room, seen); !leak.empty()) return leak;
  }
  return "";
}

// Follows the arrows from one folder: true if they lead to another, or back to itself.
bool Leads(const std::string& from, const std::string& to, Names* seen) {
  const auto arrows = FolderArrows().find(from);
  if (arrows == FolderArrows().end()) return false;
  for (const std::string& next : arrows->second)
    if (next == to || (seen->insert(next).second && Leads(next, to, seen))) return true;
  return false;
}

}  // namespace

std::vector<std::string> FoldersInCircles() {
  std::vector<std::string> circles;
  for (const auto& [folder, arrows] : FolderArrows()) {
    Names seen;
    if (Leads(folder, folder, &seen)) circles.push_back(folder);
  }
  return circles;
}

std::vector<std::string> CheckIncludes(const std::filesystem::path& root) {
  std::vector<std::string> offences;
  IncludesByFile files;  // by the name they are included with
  for (const SourceFile& file : ReadSources(root, "src", {".cc", ".h"})) {
    files[file.path.substr(4)] = IncludesOf(file);
  }
  for (const SourceFile& file : ReadSources(root, "cuda", {".cc", ".h", ".cu"})) {
    files[file.path] = IncludesOf(file);
  }
  for (const auto& [file, includes] : files) {
    const std::string room = RoomOf(file);
    if (!Arrows().contains(room)) {
      offences.push_back(fmt::format("{}: {} is no room of the house", PathOf(file), room));
      continue;
    }
    if (HasFolders(room) && !FolderArrows().contains(FolderOf(file))) {
      offences.push_back(
          fmt::format("{}: {} is no folder of the room", PathOf(file), FolderOf(file)));
      continue;
    }
    for (const Include& include : includes) {
      std::string offence = Judge(file, include);
      if (offence.empty() && include.quoted && RoomOf(include.header) != room) {
        Names seen;
        const std::string leak = Leak(files, include.header, room, &seen);
        if (!leak.empty()) {
          offence = fmt::format("{} brings <{}> out of its room", include.header, leak);
        }
      }
      if (!offence.empty()) {
        offences.push_back(fmt::format("{}:{}: {}", PathOf(file), include.line, offence));
      }
    }
  }
  return offences;
}

}  // namespace tacit::house
