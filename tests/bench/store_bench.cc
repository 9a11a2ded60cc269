// Measures a commit, a fold, a gather and many small commits, or the last alone. Prints figures;
// the folder to work in may be given (the disk matters): store_bench [--small-commits[=COMMITS]]
// [FOLDER]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "store_rig.h"

namespace tacit::store {
namespace {

void BenchCommits(const std::string& folder, const char* name, size_t rows, size_t dense_floats) {
  constexpr int kCommits = 20;
  Bench bench(folder, 32, kCommits * 2);
  auto dense = std::make_shared<DenseState>();
  dense->parameters.assign(dense_floats / 3, 1.0f);
  dense->optimizer.assign(dense_floats - dense_floats / 3, 1.0f);
  double wall = 0, cpu = 0;
  for (int i = 0; i < kCommits; ++i) {
    bench.Change(bench.Draw(rows));
    cpu += CpuTime([&] { wall += Time([&] { bench.Commit(dense); }); });
  }
  const double bytes = static_cast<double>(bench.store().stats().commit_bytes) / kCommits;
  fmt::print("commit, {:<34} {:8.1f} KiB {:8.2f} ms {:8.2f} ms of CPU\n", name, bytes / 1024,
             1e3 * wall / kCommits, 1e3 * cpu / kCommits);
}

// The machine's own limit for such a commit: the same bytes into a plain file, on the disk.
void BenchPlainFile(const std::string& folder, size_t bytes) {
  constexpr int kWrites = 10;
  const std::string content(bytes, 'x');
  std::string name = folder + "/tacit-plain-XXXXXX";
  const int fd = mkstemp(name.data());
  TACIT_CHECK(fd >= 0, "the folder cannot be written");
  double wall = 0, cpu = 0;
  for (int i = 0; i < kWrites; ++i)
    cpu += CpuTime([&] {
      wall += Time([&] {
        TACIT_CHECK(write(fd, content.data(), bytes) == static_cast<ssize_t>(bytes));
        TACIT_CHECK(fdatasync(fd) == 0);
      });
    });
  close(fd);
  unlink(name.c_str());
  fmt::print("plain write and sync {:31.1f} KiB {:8.2f} ms {:8.2f} ms of CPU\n",
             static_cast<double>(bytes) / 1024, 1e3 * wall / kWrites, 1e3 * cpu / kWrites);
}

void BenchFold(const std::string& folder) {
  Bench bench(folder, 64, 8);
  uint64_t rows = 0;
  double wall = 0;
  for (int round = 0; round < 3; ++round) {
    const uint64_t before = bench.store().stats().folded_rows;
    for (int i = 0; i < 7; ++i) {
      bench.Change(bench.Draw(50'000));
      bench.Commit(nullptr);
    }
    bench.Change(bench.Draw(50'000));
    wall += Time([&] {  // the eighth commit sets the fold off
      bench.Commit(nullptr);
      while (bench.store().stats().unfolded_deltas > 0) usleep(200);
    });
    rows += bench.store().stats().folded_rows - before;
  }
  fmt::print("fold, 256-byte rows, one commit of 50,000 rows included {:13.2f} M rows/s\n",
             1e-6 * static_cast<double>(rows) / wall);
}

// Bytes that this process has had written to the disk.
double WrittenBytes() {
  std::ifstream io("/proc/self/io");
  for (std::string name; io >> name;) {
    double bytes = 0;
    io >> bytes;
    if (name == "write_bytes:") return bytes;
  }
  return 0;
}

double FolderBytes(const std::string& folder) {
  double bytes = 0;
  std::error_code gone;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
    if (const auto size = file.file_size(gone); !gone) bytes += static_cast<double>(size);
  return bytes;
}

// A stream that is learnt from as it comes: many commits of few rows each, on tables that are full.
// Folding and RocksDB's own work are in all figures.
void BenchSmallCommits(const std::string& folder, int commits = 4000) {
  constexpr uint32_t kFloats = 16;
  constexpr size_t kRowsEach = 64;
  Bench bench(folder, kFloats, 8);
  for (uint64_t first = 0; first < kRows; first += kRows / 40) {
    std::vector<uint64_t> rows(kRows / 40);
    std::iota(rows.begin(), rows.end(), first);
    bench.Change(rows);
    bench.Commit(nullptr);
  }
  TACIT_CHECK(bench.store().Settle().has_value());
  const double live = static_cast<double>(kRows) * (kFloats * 4 + 13);
  const double before = WrittenBytes();
  double wall = 0, cpu = 0, most = 0, reading = 0;
  constexpr int kRounds = 20;
  constexpr size_t kRead = 4096;
  std::vector<float> out(kRead * kFloats);
  for (int round = 0; round < kRounds; ++round) {
    cpu += CpuTime([&] {
      wall += Time([&] {
        for (int i = 0; i < commits / kRounds; ++i) {
          bench.Change(bench.Draw(kRowsEach));
          bench.Commit(nullptr);
        }
      });
    });
    most = std::max(most, FolderBytes(bench.path()));
    const auto rows = bench.Draw(kRead);
    const auto snapshot = bench.store().Latest();
    reading += Time([&] {
      TACIT_CHECK(snapshot->Rows(LearnerIndex(0), rows, std::span(out).first(rows.size() * kFloats))
                      .has_value());
    });
  }
  fmt::print(
      "small commits, {} rows of {} bytes on {:.0f} MB: {:.3f} ms, {:.3f} ms of CPU, {:.1f} KiB "
      "written each; disk at most {:.2f} of live rows; {:.2f} M rows/s read between them\n",
      kRowsEach, kFloats * 4, live / 1e6, 1e3 * wall / commits, 1e3 * cpu / commits,
      (WrittenBytes() - before) / commits / 1024, most / live, 1e-6 * kRead * kRounds / reading);
}

void BenchGather(const std::string& folder, uint32_t floats) {
  Bench bench(folder, floats, 8);
  constexpr uint64_t kCached = 500'000;
  constexpr size_t kBatch = 16'384;
  std::vector<uint64_t> all(kCached);
  std::iota(all.begin(), all.end(), 0);
  std::vector<float*> places(kCached);
  const double cold = Time([&] { TACIT_CHECK(bench.rows().Gather(all, places).has_value()); });
  std::vector<std::vector<uint64_t>> batches;
  for (int i = 0; i < 32; ++i) batches.push_back(bench.Draw(kBatch, kCached));
  double best_find = 1e9, best_copy = 1e9, best_limit = 1e9;
  std::vector<float> copy(kBatch * floats);
  const auto copy_rows = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (i + 8 < count)
        for (uint32_t line = 0; line < floats; line += 16) __builtin_prefetch(places[i + 8] + line);
      std::copy_n(places[i], floats, copy.data() + i * floats);
    }
  };
  const auto gather = [&](const std::vector<uint64_t>& batch) {
    TACIT_CHECK(bench.rows().Gather(batch, std::span(places).first(batch.size())).has_value());
  };
  for (const auto& batch : batches) {
    const double rows = static_cast<double>(batch.size());
    best_find = std::min(best_find, Time([&] { gather(batch); }) / rows);
    best_limit = std::min(best_limit, Time([&] { copy_rows(batch.size()); }) / rows);
  }
  for (const auto& batch : batches) {
    const auto both = [&] {
      gather(batch);
      copy_rows(batch.size());
    };
    best_copy = std::min(best_copy, Time(both) / static_cast<double>(batch.size()));
  }
  fmt::print(
      "gather, {:3} bytes: {:6.1f} M rows/s cached, {:6.1f} with the copy, {:6.1f} copy alone; "
      "{:5.2f} M rows/s not there\n",
      floats * 4, 1e-6 / best_find, 1e-6 / best_copy, 1e-6 / best_limit, 1e-6 * kCached / cold);
}

void BenchMisses(const std::string& folder) {
  Bench bench(folder, 32, 1);
  bench.Change(bench.Draw(400'000));
  bench.Commit(nullptr);
  while (bench.store().stats().unfolded_deltas > 0) usleep(1000);
  const auto snapshot = bench.store().Latest();
  const auto rows = bench.Draw(16'384);
  std::vector<float> out(rows.size() * 32);
  double best = 1e9;
  for (int i = 0; i < 5; ++i)
    best = std::min(
        best, Time([&] { TACIT_CHECK(snapshot->Rows(LearnerIndex(0), rows, out).has_value()); }));
  fmt::print("snapshot, 128-byte rows from RocksDB's cache {:24.2f} M rows/s\n",
             1e-6 * static_cast<double>(rows.size()) / best);
}

int Main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  const bool small = mode.starts_with("--small-commits");
  const std::string folder =
      argc > 1 + small ? argv[1 + small] : std::filesystem::temp_directory_path().string();
  if (small) {
    const size_t value = mode.find('=');
    if (value == mode.npos)
      BenchSmallCommits(folder);
    else
      BenchSmallCommits(folder, std::atoi(mode.data() + value + 1));
    return 0;
  }
  BenchCommits(folder, "8,192 rows of 128 bytes", 8192, 0);
  BenchCommits(folder, "8,192 rows and 15.6 MB of dense", 8192, 3'900'000);
  BenchPlainFile(folder, 16'385 << 10);
  BenchFold(folder);
  for (uint32_t floats : {16, 32, 64}) BenchGather(folder, floats);
  BenchMisses(folder);
  BenchSmallCommits(folder);
  return 0;
}

}  // namespace
}  // namespace tacit::store

int main(int argc, char** argv) { return tacit::store::Main(argc, argv); }
