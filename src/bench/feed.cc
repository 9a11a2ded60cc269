// Measures the feed without a broker, by stages and then together; `feed_topic.h` says what it
// reads. With --brokers and --topic the same model goes through real ones (feed_broker.cc).
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "bench/bench_data.h"
#include "bench/feed_broker.h"
#include "bench/feed_model.h"
#include "bench/feed_topic.h"
#include "bench/suite.h"
#include "feed/replica.h"
#include "store/bare.h"
#include "store/replica/replica_store.h"

namespace tacit::bench {
namespace {

using Steady = std::chrono::steady_clock;

// The bars: rows a second of a replica that follows; seconds until a new one is ready.
constexpr double kAskedRows = 500'000, kAskedSeconds = 120;
// Rows of a version of a busy trainer.
constexpr uint64_t kVersionRows = 50'000;
constexpr uint64_t kPipelineRows = 1'000'000;

struct FeedSizes {
  uint64_t rows = 0, versions = 0, version_rows = 0, first_rows = 0;
  std::vector<uint64_t> checks;  // sizes of models that the computed seconds are held against
};

FeedSizes SizesOf(bool quick) {
  if (quick)
    return {
        .rows = 20'000, .versions = 12, .version_rows = 2'000, .first_rows = 50'000, .checks = {}};
  return {.rows = kPipelineRows,
          .versions = 40,
          .version_rows = kVersionRows,
          .first_rows = 10'000'000,
          .checks = {100'000, 1'000'000, 3'000'000}};
}

// Seconds of the wall and of the processor, all threads together, since this began.
class Stopwatch {
 public:
  double Wall() const { return std::chrono::duration<double>(Steady::now() - start_).count(); }
  double Processor() const { return Now() - processor_; }

 private:
  static double Now() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
  }
  const Steady::time_point start_ = Steady::now();
  const double processor_ = Now();
};

struct Spent {
  double wall = 0, processor = 0;
  void Add(const Stopwatch& watch) {
    wall += watch.Wall();
    processor += watch.Processor();
  }
};

class FeedFolder {
 public:
  FeedFolder()
      : root_(std::filesystem::temp_directory_path() /
              fmt::format("tacit-bench-feed-{}", ::getpid())) {
    std::filesystem::create_directories(root_);
  }
  ~FeedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FeedFolder(const FeedFolder&) = delete;
  FeedFolder& operator=(const FeedFolder&) = delete;
  std::string In(std::string_view name) const { return root_ / name; }

 private:
  const std::filesystem::path root_;
};

// The seconds that each of several rounds has spent.
class Rounds {
 public:
  void Add(const Spent& spent) {
    wall_.push_back(spent.wall);
    processor_.push_back(spent.processor);
  }
  double wall() const { return Median(wall_); }
  double processor() const { return Median(processor_); }

 private:
  std::vector<double> wall_, processor_;
};

// Encoded versions, as a reader of a topic shows them.
struct EncodedFeed {
  struct Item {
    int32_t partition;
    uint64_t offset;
    uint32_t key, value;  // bytes
  };
  std::string bytes;
  std::vector<Item> items;
  std::vector<size_t> ends;  // of versions, in items
  Spent spent;               // to encode
  uint64_t rows = 0;
};

Result<EncodedFeed> Encode(const SyntheticModel& model, const FeedSizes& sizes) {
  EncodedFeed feed;
  feed.rows = sizes.versions * sizes.version_rows;
  feed.bytes.reserve(feed.rows * 128 + sizes.versions * 8192);
  feed.items.reserve(feed.rows + sizes.versions * SyntheticModel::kPartitions);
  std::array<uint64_t, SyntheticModel::kPartitions> offsets{};
  const Stopwatch watch;
  for (uint64_t v = 0; v < sizes.versions; ++v) {
    TACIT_RETURN_IF_ERROR(
        model.Send({.version = CommitSeq(v + 1),
                    .previous = CommitSeq(v),
                    .whole_since = CommitSeq(1),
                    .first = v * sizes.version_rows,
                    .rows = sizes.version_rows},
                   [&](int32_t partition, std::string_view key, std::string_view value) -> Status {
                     feed.bytes.append(key).append(value);
                     feed.items.push_back({partition, offsets[static_cast<size_t>(partition)]++,
                                           static_cast<uint32_t>(key.size()),
                                           static_cast<uint32_t>(value.size())});
                     return {};
                   }));
    feed.ends.push_back(feed.items.size());
  }
  feed.spent.Add(watch);
  return feed;
}

// The seconds of each stage, summed over all versions, and those of one version without rows.
struct Stages {
  Spent assemble, apply;
  double version = 0;
};

store::ReplicaOptions ReplicaOptionsAt(const std::string& path, const SyntheticModel& model) {
  store::ReplicaOptions options;
  options.path = path;
  options.learners = {model.layout()};
  return options;
}

store::ReplicaVersion WithoutRows(CommitSeq seq) {
  store::ReplicaVersion version;
  version.tip.seq = seq;
  version.position = "benchmark";
  return version;
}

// Follows as feed::Replica does: whole versions, each applied with its rows, folds behind.
Result<Stages> FollowEncoded(const SyntheticModel& model, const EncodedFeed& feed,
                             const std::string& path) {
  TACIT_ASSIGN(const auto store, store::ReplicaStore::Open(ReplicaOptionsAt(path, model)));
  TACIT_RETURN_IF_ERROR(store->Begin(model.origin()));
  // A version without rows, so that all that is measured is followed and none begins.
  TACIT_RETURN_IF_ERROR(store->Apply(WithoutRows(CommitSeq(1))));
  feed::Assembler assembler("bench", model.identity(), CommitSeq(0),
                            feed::Assembler::Beginning::kBehindBase);
  Stages stages;
  std::map<int32_t, uint64_t> position;
  const char* at = feed.bytes.data();
  size_t item = 0;
  for (const size_t end : feed.ends) {
    const Stopwatch assembling;
    for (; item < end; ++item) {
      const EncodedFeed::Item& one = feed.items[item];
      TACIT_RETURN_IF_ERROR(assembler.Take({.partition = one.partition,
                                            .offset = one.offset,
                                            .key = std::string_view(at, one.key),
                                            .value = std::string_view(at + one.key, one.value)}));
      at += one.key + one.value;
      position[one.partition] = one.offset + 1;
    }
    TACIT_ASSIGN(auto whole, assembler.TakeWhole(position));
    if (!whole) return Fail(ErrorCode::kInternal, "a version is not whole");
    stages.assemble.Add(assembling);
    const Stopwatch applying;
    // Behind the one without rows.
    store::ReplicaVersion version = WithoutRows(CommitSeq(whole->end.tip.seq.value + 1));
    for (const feed::VersionLearner& learner : whole->learners)
      version.learners.push_back({.key = learner.key, .rows = learner.rows});
    TACIT_RETURN_IF_ERROR(store->Apply(std::move(version)));
    stages.apply.Add(applying);
  }
  const Stopwatch settling;
  TACIT_RETURN_IF_ERROR(store->Settle());  // the last fold is of these rows too
  stages.apply.Add(settling);
  constexpr int kEmptyVersions = 9;
  std::vector<double> seconds;
  for (int i = 0; i < kEmptyVersions; ++i) {
    const Stopwatch watch;
    TACIT_RETURN_IF_ERROR(
        store->Apply(WithoutRows(CommitSeq(feed.ends.size() + 2 + static_cast<uint64_t>(i)))));
    seconds.push_back(watch.Wall());
  }
  stages.version = Median(seconds);
  return stages;
}

// Seconds to copy as many bytes in memory, out of a part that no cache holds.
double CopySeconds(const std::string& bytes) {
  std::string copy(bytes.size(), '\0');
  return MedianSeconds([&] { std::memcpy(copy.data(), bytes.data(), bytes.size()); },
                       std::chrono::milliseconds(200));
}

// Seconds to write bytes to a file, synced after each part.
Result<double> SyncedWriteSeconds(const std::string& path, const std::string& bytes, size_t parts) {
  const UniqueFd file(::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600));
  const Stopwatch watch;
  const size_t part = bytes.size() / parts + 1;
  for (size_t at = 0; at < bytes.size(); at += part) {
    const size_t count = std::min(part, bytes.size() - at);
    if (::write(file.get(), bytes.data() + at, count) != static_cast<ssize_t>(count) ||
        ::fdatasync(file.get()) != 0)
      return Fail(ErrorCode::kIo, fmt::format("writing {}: {}", path, std::strerror(errno)));
  }
  const double seconds = watch.Wall();
  std::filesystem::remove(path);
  return seconds;
}

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Notes the most memory that the process has while this lives, above what it had before.
class MemoryPeak {
 public:
  MemoryPeak() : before_(ResidentBytes()), thread_([this] { Watch(); }) {}
  ~MemoryPeak() { Stop(); }
  MemoryPeak(const MemoryPeak&) = delete;
  MemoryPeak& operator=(const MemoryPeak&) = delete;
  uint64_t Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return most_ - std::min<uint64_t>(most_, before_);
  }

 private:
  void Watch() {
    while (!stop_) {
      most_ = std::max<uint64_t>(most_, ResidentBytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  const uint64_t before_;
  std::atomic<uint64_t> most_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

struct FirstVersion {
  Spent spent;
  uint64_t memory = 0, disk = 0;
};

uint64_t FolderBytes(const std::string& path) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

// A new replica reads a topic that holds a model once, until it shows its version; then some rows
// of it are compared.
Result<FirstVersion> BeginReplica(uint64_t rows, const std::string& path) {
  const SyntheticModel model(rows);
  SyntheticVersion version;
  version.version = version.whole_since = CommitSeq(1);
  version.rows = rows;
  FirstVersion first;
  MemoryPeak peak;
  // The reader counts the topic's records before it is asked for them, as a broker knows them.
  std::unique_ptr<stream::KafkaTopicReader> reader = ReadSynthetic(model, version);
  const Stopwatch watch;
  TACIT_ASSIGN(const auto store, store::ReplicaStore::Open(ReplicaOptionsAt(path, model)));
  feed::Replica replica(
      *store, {model.layout()},
      {.topic = "bench",
       .check_topic = [] { return Status(); },
       .newest_ends = [&] { return Result<feed::NewestEnds>(model.NewestEndsOf(version)); },
       .open_reader =
           [&] { return Result<std::unique_ptr<stream::KafkaTopicReader>>(std::move(reader)); }});
  for (bool shown = false; !shown;) {
    TACIT_ASSIGN(shown, replica.Step(std::chrono::milliseconds(100)));
  }
  first.spent.Add(watch);
  first.memory = peak.Stop();
  first.disk = FolderBytes(path);
  constexpr uint64_t kSample = 1000;
  std::vector<uint64_t> sample(std::min(rows, kSample));
  for (size_t i = 0; i < sample.size(); ++i) sample[i] = i * (rows / sample.size());
  std::vector<float> is(sample.size() * SyntheticModel::kDimension), expected(is.size());
  for (size_t i = 0; i < sample.size(); ++i)
    SyntheticModel::FillRow(
        sample[i], version.version,
        std::span(expected).subspan(i * SyntheticModel::kDimension, SyntheticModel::kDimension));
  TACIT_RETURN_IF_ERROR(store->Latest()->Rows(LearnerIndex(0), sample, is));
  if (is != expected) return Fail(ErrorCode::kInternal, "the replica shows other rows");
  return first;
}

std::string Megabytes(uint64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string_view BoundName(FeedOutlook::Bound bound) {
  switch (bound) {
    case FeedOutlook::Bound::kTrainer:
      return "trainer";
    case FeedOutlook::Bound::kBroker:
      return "broker";
    case FeedOutlook::Bound::kReplica:
      break;
  }
  return "replica";
}

// The load that is asked about: a hundredth of the rows changes in a minute, versions come every
// second, and the brokers send 10 Gbit/s.
void AddOutlooks(const FeedRates& rates, std::vector<BenchRow>* to) {
  constexpr double kBrokerBytes = 1.25e9;
  for (const double rows : {1e6, 1e7, 1e8, 1e9})
    for (const double replicas : {1., 10., 100.}) {
      const FeedLoad load{.rows = rows,
                          .replicas = replicas,
                          .changed_rows_s = rows / 6000,
                          .interval_s = 1,
                          .broker_bytes_s = kBrokerBytes,
                          .topic_factor = 2};
      const FeedOutlook outlook = LookAhead(rates, load);
      BenchRow& row = to->emplace_back();
      row.name = fmt::format("feed-ahead-{:.0e}-{:.0f}", rows, replicas);
      row.value = outlook.lag_s;
      row.unit = "s behind, computed";
      row.more = {{"rows", rows},
                  {"replicas", replicas},
                  {"changed_rows_s", load.changed_rows_s},
                  {"interval_s", load.interval_s},
                  {"broker_limit_bytes_s", load.broker_bytes_s},
                  {"topic_factor", load.topic_factor},
                  {"follows", outlook.follows},
                  {"broker_in_bytes_s", outlook.broker_in_bytes_s},
                  {"broker_out_bytes_s", outlook.broker_out_bytes_s},
                  {"topic_bytes", outlook.topic_bytes},
                  {"catch_up_s", outlook.catch_up_s},
                  {"all_begin_s", outlook.all_begin_s},
                  {"changed_rows_s_most", outlook.changed_rows_s_most},
                  {"bound", BoundName(outlook.bound)}};
      row.note = fmt::format(
          "{}, out {:.3g} MB/s, begins in {:.3g} s (all at once {:.3g} s), at most {:.3g} changed "
          "rows/s ({})",
          outlook.follows ? "follows" : "falls behind", outlook.broker_out_bytes_s / 1e6,
          outlook.catch_up_s, outlook.all_begin_s, outlook.changed_rows_s_most,
          BoundName(outlook.bound));
    }
}

}  // namespace

Result<std::vector<BenchRow>> BenchFeed(const BenchRequest& request) {
  if (request.brokers.empty() != request.topic.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "the feed benchmark needs --brokers and --topic together, or neither");
  const FeedSizes sizes = SizesOf(request.quick);
  const FeedFolder folder;
  std::vector<BenchRow> rows;

  // Memory is told first, before the rest has used any.
  TACIT_ASSIGN(const FirstVersion first, BeginReplica(sizes.first_rows, folder.In("first")));
  std::filesystem::remove_all(folder.In("first"));
  const double first_rows = static_cast<double>(sizes.first_rows);

  const SyntheticModel model(sizes.rows);
  constexpr int kRounds = 3;
  std::vector<double> version, copy, file, bare;
  Rounds encode, assemble, apply;
  double n = 0, row_bytes = 0, mark_bytes = 0;
  for (int round = 0; round < (request.quick ? 1 : kRounds); ++round) {
    TACIT_ASSIGN(const EncodedFeed feed, Encode(model, sizes));
    n = static_cast<double>(feed.rows);
    row_bytes = feed.items.front().key + feed.items.front().value;
    mark_bytes = (static_cast<double>(feed.bytes.size()) - n * row_bytes) /
                 static_cast<double>(sizes.versions);
    encode.Add(feed.spent);
    copy.push_back(n / CopySeconds(feed.bytes));
    TACIT_ASSIGN(const Stages stages, FollowEncoded(model, feed, folder.In("replica")));
    std::filesystem::remove_all(folder.In("replica"));
    assemble.Add(stages.assemble);
    apply.Add(stages.apply);
    version.push_back(stages.version);
    TACIT_ASSIGN(const double written,
                 SyncedWriteSeconds(folder.In("file"), feed.bytes, sizes.versions));
    file.push_back(n / written);
    TACIT_ASSIGN(const double bare_seconds,
                 store::WriteBareRows(folder.In("bare"), feed.rows, SyntheticModel::kDimension,
                                      sizes.version_rows));
    bare.push_back(n / bare_seconds);
  }
  const double together = n / (assemble.wall() + apply.wall());
  const double together_processor = n / (assemble.processor() + apply.processor());
  const double version_bytes = static_cast<double>(sizes.version_rows) * row_bytes + mark_bytes;
  rows.push_back({.name = "feed-version-bytes",
                  .value = version_bytes / static_cast<double>(sizes.version_rows),
                  .unit = "bytes a row",
                  .limit = SyntheticModel::kDimension * sizeof(float),
                  .more = {{"version_rows", sizes.version_rows},
                           {"version_bytes", version_bytes},
                           {"row_bytes", row_bytes},
                           {"mark_bytes", mark_bytes}},
                  .note = fmt::format("(the numbers alone); {:.0f} more a version", mark_bytes)});
  rows.push_back({.name = "feed-encode",
                  .value = n / encode.wall(),
                  .unit = "rows/s",
                  .limit = Median(copy),
                  .more = {{"processor_rows_s", n / encode.processor()}},
                  .note = fmt::format("(copied in memory); {:.3g} by the processor's time",
                                      n / encode.processor())});
  rows.push_back(
      {.name = "feed-assemble",
       .value = n / assemble.wall(),
       .unit = "rows/s",
       .limit = Median(copy),
       .more = {{"processor_rows_s", n / assemble.processor()}},
       .note = fmt::format("(copied in memory); decoded too; {:.3g} by the processor's time",
                           n / assemble.processor())});
  rows.push_back(
      {.name = "feed-apply",
       .value = n / apply.wall(),
       .unit = "rows/s",
       .limit = Median(bare),
       .more = {{"synced_file_rows_s", Median(file)},
                {"processor_rows_s", n / apply.processor()},
                {"version_s", Median(version)}},
       .note = fmt::format("(RocksDB's own batches; {:.3g} in a synced file); {:.3g} by the "
                           "processor's time; a version without rows takes {:.2f} ms",
                           Median(file), n / apply.processor(), Median(version) * 1e3)});
  rows.push_back(
      {.name = "feed-replica",
       .value = together,
       .unit = "rows/s",
       .limit = kAskedRows,
       .more = {{"version_rows", sizes.version_rows},
                {"rows", sizes.rows},
                {"processor_rows_s", together_processor}},
       .note = fmt::format("(asked); assembled and applied; {:.3g} by the processor's time",
                           together_processor)});
  rows.push_back(
      {.name = "feed-first-version",
       .value = first.spent.wall,
       .unit = "s to be ready",
       .limit = kAskedSeconds,
       .more = {{"rows", sizes.first_rows},
                {"rows_s", first_rows / first.spent.wall},
                {"processor_s", first.spent.processor},
                {"memory_bytes", first.memory},
                {"disk_bytes", first.disk}},
       .note = fmt::format("(asked at the most); {:.0e} rows, {:.3g} s of the processor, which "
                           "makes the records too, {} of memory, {} on disk",
                           first_rows, first.spent.processor, Megabytes(first.memory),
                           Megabytes(first.disk))});
  FeedRates rates{.row_bytes = row_bytes,
                  .version_bytes = mark_bytes,
                  .publish_rows_s = n / encode.wall(),
                  .apply_rows_s = together,
                  .first_rows_s = first_rows / first.spent.wall,
                  .version_s = Median(version)};
  for (const uint64_t check : sizes.checks) {
    TACIT_ASSIGN(const FirstVersion one, BeginReplica(check, folder.In("check")));
    std::filesystem::remove_all(folder.In("check"));
    const FeedOutlook outlook =
        LookAhead(rates, {.rows = static_cast<double>(check), .broker_bytes_s = 1e18});
    rows.push_back({.name = fmt::format("feed-computed-{}", check),
                    .value = outlook.catch_up_s,
                    .unit = "s to be ready, computed",
                    .limit = one.spent.wall,
                    .more = {{"rows", check}},
                    .note = "(measured)"});
  }
  if (!request.brokers.empty()) {
    TACIT_RETURN_IF_ERROR(BenchFeedBroker(request, folder.In("broker"), &rates, &rows));
  }
  AddOutlooks(rates, &rows);
  return rows;
}

}  // namespace tacit::bench
