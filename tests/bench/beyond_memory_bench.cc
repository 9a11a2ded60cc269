// Measures training steps over a table that memory has no room for: steps of rows drawn by Zipf's
// law, each gathered, changed and now and then committed, with rows on disk that are read past the
// system's own cache. Beside it stand the same steps over a table that fits, and what the disk
// itself does: reads of one block at random places, by as many threads.
//   beyond_memory_bench FOLDER MILLIONS_OF_ROWS MEMORY_MIB [STORE]
// STORE: the folder in FOLDER of a run that was cut short, which is gone on with.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <optional>
#include <thread>

#include "store_rig.h"

namespace tacit::store {
namespace {

constexpr uint32_t kDim = 64, kState = 1;  // and the state of row-wise Adagrad
constexpr size_t kDraws = 26 * 2048;       // a step's, before repeats are dropped
constexpr double kZipf = 1.05;
constexpr int kSteps = 25;
constexpr size_t kOneChanged = 10;  // a sparse private step writes few of the rows that it reads
constexpr size_t kThreads = 8, kManyThreads = 16;
constexpr int kStepsACommit = 10;

// Ranks by Zipf's law over [0, n), by the inverse of its integral; rows are ranks in another order.
class ZipfRows {
 public:
  explicit ZipfRows(uint64_t n) : n_(n) {}
  std::vector<uint64_t> Draw() {
    std::vector<uint64_t> rows(kDraws);
    const double top = std::pow(static_cast<double>(n_) + 1, 1 - kZipf);
    for (uint64_t& row : rows) {
      const double u = std::uniform_real_distribution<double>()(random_);
      const double rank = std::pow(1 + u * (top - 1), 1 / (1 - kZipf)) - 1;
      row = std::min<uint64_t>(static_cast<uint64_t>(rank), n_ - 1) * 0x9E3779B97F4A7C15u % n_;
    }
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
  }

 private:
  const uint64_t n_;
  std::mt19937_64 random_{5};
};

void Fill(Bench& bench, uint64_t rows) {
  constexpr uint64_t kAtOnce = 250'000;
  const uint64_t filled = bench.store().Latest()->version().value * kAtOnce;
  for (uint64_t first = filled; first < rows; first += kAtOnce) {
    std::vector<uint64_t> some(std::min(kAtOnce, rows - first));
    std::iota(some.begin(), some.end(), first);
    bench.Change(some);
    bench.Commit(nullptr);
  }
  TACIT_CHECK(bench.store().Settle().has_value());
}

struct Measured {
  double steps = 0, misses = 0, ahead = 0;  // per second, and per step
};

// `compute` is the processor's time that a step takes beside its rows.
Measured Steps(Bench& bench, uint64_t rows, bool announces, double compute) {
  ZipfRows zipf(rows);
  std::vector<std::vector<uint64_t>> steps;
  for (int i = 0; i < 2 * kSteps + 1; ++i) steps.push_back(zipf.Draw());
  WorkingRows::Stats before;
  double wall = 0;
  for (int i = 0; i < 2 * kSteps; ++i) {
    if (i == kSteps) before = bench.rows().stats();  // the first half warms up
    const double took = Time([&] {
      if (announces) bench.rows().Announce(steps[i + 1]);
      bench.Change(steps[i], kOneChanged);
      if (compute > 0) {
        const auto end = std::chrono::steady_clock::now() + Seconds(compute);
        while (std::chrono::steady_clock::now() < end) {
        }
      }
      if (i % kStepsACommit == 0) bench.Commit(nullptr);
    });
    if (i >= kSteps) wall += took;
  }
  const WorkingRows::Stats after = bench.rows().stats();
  return {.steps = kSteps / wall,
          .misses = static_cast<double>(after.misses - before.misses) / kSteps,
          .ahead = static_cast<double>(after.read_ahead - before.read_ahead) / kSteps};
}

// Blocks a second that the disk gives, at random places of the store's largest files.
double RandomReads(const std::string& store, size_t readers) {
  std::vector<std::pair<int, uint64_t>> files;  // descriptor, blocks
  for (const auto& entry : std::filesystem::recursive_directory_iterator(store)) {
    if (entry.path().extension() != ".sst" || entry.file_size() < (1 << 20)) continue;
    const int fd = open(entry.path().c_str(), O_RDONLY | O_DIRECT);
    TACIT_CHECK(fd >= 0, "the disk takes no direct reads");
    files.emplace_back(fd, entry.file_size() / 4096);
  }
  TACIT_CHECK(!files.empty());
  constexpr int kReads = 4000;
  const double wall = Time([&] {
    std::vector<std::thread> threads;
    for (size_t t = 0; t < readers; ++t)
      threads.emplace_back([&, t] {
        std::mt19937_64 random(t);
        void* block = nullptr;
        TACIT_CHECK(posix_memalign(&block, 4096, 4096) == 0);
        for (int i = 0; i < kReads; ++i) {
          const auto& [fd, blocks] = files[random() % files.size()];
          const auto at = static_cast<off_t>(random() % blocks * 4096);
          TACIT_CHECK(pread(fd, block, 4096, at) == 4096);
        }
        std::free(block);
      });
    for (std::thread& thread : threads) thread.join();
  });
  for (const auto& [fd, blocks] : files) close(fd);
  return kReads * static_cast<double>(readers) / wall;
}

StoreOptions OptionsFor(uint64_t memory_bytes) {
  StoreOptions options;
  options.memory_bytes = memory_bytes / 4;
  options.row_cache_bytes = memory_bytes / 2;
  options.overlay_bytes = memory_bytes / 8;
  options.direct_reads = true;
  return options;
}

// Trains in the store at `root`, and is killed in the middle of it.
void TrainAndDie(const std::string& root, uint64_t rows, uint64_t memory_bytes) {
  Bench bench(OptionsFor(memory_bytes), root, rows, kDim, kState);
  ZipfRows zipf(rows);
  for (int step = 0; step < 3 * kStepsACommit + 5; ++step) {
    bench.Change(zipf.Draw(), kOneChanged);
    if (step % kStepsACommit == 0) bench.Commit(nullptr);
  }
  kill(getpid(), SIGKILL);
}

// A start after the owner was killed.
void BenchCrash(Bench& bench, const char* program, uint64_t rows, uint64_t memory_bytes) {
  bench.Close();
  const std::string command =
      fmt::format("exec {} --die {} {} {}", program, bench.root(), rows, memory_bytes);
  TACIT_CHECK(std::system(command.c_str()) != 0, "it was to be killed");
  fmt::print("a start after a kill: {:.2f} s\n", Time([&] { bench.Open(); }));
}

// Checkpoints while training goes on beside them, and their second one.
void BenchCheckpoints(Bench& bench, uint64_t rows) {
  ZipfRows zipf(rows);
  for (const char* which : {"a checkpoint", "the next one"}) {
    bench.Change(zipf.Draw(), kOneChanged);
    bench.Commit(nullptr);
    std::atomic<bool> made = false;
    std::thread trainer([&] {
      for (int step = 0; !made; ++step) {
        bench.Change(zipf.Draw(), kOneChanged);
        if (step % kStepsACommit == 0) bench.Commit(nullptr);
      }
    });
    double paused = 0;
    const double took = Time([&] {
      const auto one = bench.store().MakeCheckpoint(
          {.kind = CheckpointKind::kFull, .parent = bench.root() + "/checkpoints", .schema = ""});
      TACIT_CHECK(one.has_value(), "no checkpoint was made");
      paused = one->paused_ms;
    });
    made = true;
    trainer.join();
    fmt::print("{} beside training: {:.2f} s, commits paused {:.1f} ms\n", which, took, paused);
  }
}

void Run(const char* program, const std::string& folder, const std::string& store, uint64_t rows,
         uint64_t memory_bytes) {
  const StoreOptions options = OptionsFor(memory_bytes);
  Bench bench(options, store.empty() ? Bench::NewFolder(folder) : store, rows, kDim, kState);
  const double filling = Time([&] { Fill(bench, rows); });
  fmt::print("{} million rows of {} bytes written in {:.0f} s, {:.2f} M rows/s\n", rows / 1000000,
             (kDim + kState) * 4, filling, 1e-6 * static_cast<double>(rows) / filling);
  double reads = 0;  // the most that the disk gives
  for (const size_t readers : {kThreads, kManyThreads}) {
    const double rate = RandomReads(bench.path(), readers);
    fmt::print("the disk: {:.0f} blocks/s by {} threads\n", rate, readers);
    reads = std::max(reads, rate);
  }
  std::fflush(stdout);
  StoreOptions ample = options;
  ample.row_cache_bytes = uint64_t{8} << 30;
  std::optional<Bench> fits(std::in_place, folder, ample, rows / 100, kDim, kState);
  for (const double compute : {0.0, 0.02}) {
    const Measured memory = Steps(*fits, rows / 100, false, compute);
    for (const size_t readers : {size_t{0}, kThreads, kManyThreads}) {
      const auto threads = static_cast<uint32_t>(readers);
      bench.options().reader_threads = threads;
      bench.Open();
      const Measured disk = Steps(bench, rows, threads > 0, compute);
      const double bound = std::min(memory.steps, reads / disk.misses);
      fmt::print(
          "{} reader threads, {:.0f} ms of other work: {:.2f} steps/s, {:.0f} rows of a step not "
          "in "
          "memory, {:.0f} of them read ahead; in memory {:.2f} steps/s, by the disk {:.2f}: {:.2f} "
          "of the lesser\n",
          threads, 1e3 * compute, disk.steps, disk.misses, disk.ahead, memory.steps,
          reads / disk.misses, disk.steps / bound);
      std::fflush(stdout);
    }
  }
  fits.reset();
  BenchCrash(bench, program, rows, memory_bytes);
  BenchCheckpoints(bench, rows);
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM")) fmt::print("most memory: {}\n", line);
}

}  // namespace
}  // namespace tacit::store

int main(int argc, char** argv) {
  if (argc == 5 && argv[1] == std::string("--die")) {
    tacit::store::TrainAndDie(argv[2], std::strtoull(argv[3], nullptr, 10),
                              std::strtoull(argv[4], nullptr, 10));
    return 0;
  }
  TACIT_CHECK(argc == 4 || argc == 5,
              "beyond_memory_bench FOLDER MILLIONS_OF_ROWS MEMORY_MIB [STORE]");
  tacit::store::Run(argv[0], argv[1], argc == 5 ? argv[4] : "",
                    std::strtoull(argv[2], nullptr, 10) * 1'000'000,
                    std::strtoull(argv[3], nullptr, 10) << 20);
}
