// Sets the store beside bare RocksDB, in one run: gathers of a step's rows by Zipf's law beside
// MultiGet on the same rows, with the head in the cache and with nothing in it; a commit of 4,096
// rows beside as many synced puts; what folds take of the processor.
//   store_limits_bench [FOLDER]
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "store_rig.h"

namespace tacit::store {
namespace {

constexpr uint32_t kFloats = 16;
constexpr size_t kStepDraws = 26 * 2048, kCommitRows = 4096;
constexpr double kExponent = 1.05;
constexpr useconds_t kStepMicroseconds = 100'000;

// A step's rows: ranks by Zipf's law, which lie scattered over the table.
std::vector<uint64_t> StepRows(std::mt19937_64& random) {
  std::vector<uint64_t> rows(kStepDraws);
  const double top = std::pow(static_cast<double>(kRows) + 1, 1 - kExponent);
  for (uint64_t& row : rows) {
    const double u = std::uniform_real_distribution<double>()(random);
    const double rank = std::pow(1 + u * (top - 1), 1 / (1 - kExponent)) - 1;
    row = std::min<uint64_t>(static_cast<uint64_t>(rank), kRows - 1) * 0x9E3779B97F4A7C15u % kRows;
  }
  std::ranges::sort(rows);
  const auto repeats = std::ranges::unique(rows);
  rows.erase(repeats.begin(), repeats.end());
  return rows;
}

// RocksDB as it comes, with the store's memory for blocks.
class BareRocks {
 public:
  explicit BareRocks(const std::string& folder, uint64_t memory) {
    std::string name = folder + "/tacit-bare-XXXXXX";
    TACIT_CHECK(mkdtemp(name.data()) != nullptr, "the folder cannot be written");
    root_ = name;
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(memory);
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* db = nullptr;
    TACIT_CHECK(rocksdb::DB::Open(options, root_, &db).ok());
    db_.reset(db);
  }
  ~BareRocks() {
    db_.reset();
    std::filesystem::remove_all(root_);
  }
  void Fill() {
    for (uint64_t row = 0; row < kRows; ++row) Put(row, {});
    TACIT_CHECK(db_->CompactRange({}, nullptr, nullptr).ok());
  }
  void Put(uint64_t row, const rocksdb::WriteOptions& options) {
    const uint64_t key = __builtin_bswap64(row);
    TACIT_CHECK(db_->Put(options, {reinterpret_cast<const char*>(&key), sizeof(key)},
                         {reinterpret_cast<const char*>(value_.data()), sizeof(value_)})
                    .ok());
  }
  // Copies the rows out, as a step needs them.
  void Get(std::span<const uint64_t> rows, std::vector<float>* out) {
    keys_.resize(rows.size());
    slices_.resize(rows.size());
    values_.resize(rows.size());
    statuses_.resize(rows.size());
    out->resize(rows.size() * kFloats);
    for (size_t i = 0; i < rows.size(); ++i) {
      keys_[i] = __builtin_bswap64(rows[i]);
      slices_[i] = {reinterpret_cast<const char*>(&keys_[i]), sizeof(keys_[i])};
    }
    constexpr size_t kAtOnce = 1024;
    for (size_t i = 0; i < rows.size(); i += kAtOnce) {
      const size_t n = std::min(kAtOnce, rows.size() - i);
      db_->MultiGet({}, db_->DefaultColumnFamily(), n, &slices_[i], &values_[i], &statuses_[i],
                    true);
      for (size_t j = i; j < i + n; ++j) {
        std::memcpy(out->data() + j * kFloats, values_[j].data(), kFloats * sizeof(float));
        values_[j].Reset();
      }
    }
  }

 private:
  std::string root_;
  std::unique_ptr<rocksdb::DB> db_;
  const std::array<float, kFloats> value_{};
  std::vector<uint64_t> keys_;
  std::vector<rocksdb::Slice> slices_;
  std::vector<rocksdb::PinnableSlice> values_;
  std::vector<rocksdb::Status> statuses_;
};

// The median of the rates in `each`.
double Median(std::vector<double> each) {
  std::ranges::sort(each);
  return each[each.size() / 2];
}

void FillStore(Bench& bench) {
  for (uint64_t first = 0; first < kRows; first += kRows / 20) {
    std::vector<uint64_t> rows(kRows / 20);
    std::iota(rows.begin(), rows.end(), first);
    bench.Change(rows);
    bench.Commit(nullptr);
  }
  TACIT_CHECK(bench.store().Settle().has_value());
}

void BenchGathers(const std::string& folder) {
  constexpr uint64_t kMemory = uint64_t{256} << 20;
  Bench bench(folder, kFloats, 8);
  FillStore(bench);
  BareRocks bare(folder, kMemory);
  bare.Fill();
  std::mt19937_64 random(3);
  std::vector<float*> places;
  std::vector<float> out;
  const auto measure = [&](const std::vector<uint64_t>& rows, std::vector<double>* store,
                           std::vector<double>* rocks) {
    places.resize(rows.size());
    const auto count = static_cast<double>(rows.size());
    store->push_back(count /
                     Time([&] { TACIT_CHECK(bench.rows().Gather(rows, places).has_value()); }));
    rocks->push_back(count / Time([&] { bare.Get(rows, &out); }));
  };
  const auto say = [](const char* what, const std::vector<double>& store,
                      const std::vector<double>& rocks) {
    fmt::print("{:<44} {:7.2f} M rows/s, MultiGet {:6.2f}: {:6.2f} times\n", what,
               1e-6 * Median(store), 1e-6 * Median(rocks), Median(store) / Median(rocks));
  };
  // Nothing in the row cache, and the blocks of both in memory: rows that no gather has asked for.
  bench.options().row_cache_bytes = uint64_t{1} << 30;
  bench.options().memory_bytes = kMemory;
  bench.options().reader_threads = 8;
  bench.Open();
  std::vector<double> cold, cold_bare;
  for (uint64_t round = 0; round < 2; ++round) {
    if (round == 1) {
      bench.Open();  // the files stay in the system's memory, the blocks go
      cold.clear();
      cold_bare.clear();
    }
    for (uint64_t step = 0; step < 40; ++step) {
      std::vector<uint64_t> rows(kStepDraws / 2);
      for (size_t i = 0; i < rows.size(); ++i)
        rows[i] = (i * 74 + step) % kRows;  // all over the table
      std::ranges::sort(rows);
      rows.erase(std::ranges::unique(rows).begin(), rows.end());
      measure(rows, &cold, &cold_bare);
    }
  }
  say("gather, nothing in the cache", cold, cold_bare);
  for (const uint64_t share : {uint64_t{100}, uint64_t{10}}) {
    bench.options().row_cache_bytes = kRows * (kFloats * 4 + 32) * share / 100;
    bench.Open();
    std::vector<double> hot, hot_bare;
    for (int step = 0; step < 60; ++step) measure(StepRows(random), &hot, &hot_bare);
    hot.clear();
    hot_bare.clear();
    const auto before = bench.rows().stats();
    for (int step = 0; step < 60; ++step) measure(StepRows(random), &hot, &hot_bare);
    const auto after = bench.rows().stats();
    const double hits = static_cast<double>(after.hits - before.hits);
    say(fmt::format("gather of a step, memory for {} %, {:.0f} % there", share,
                    100 * hits / (hits + static_cast<double>(after.misses - before.misses)))
            .c_str(),
        hot, hot_bare);
    // The rows of the next step are read while this one is computed.
    hot.clear();
    hot_bare.clear();
    auto rows = StepRows(random);
    for (int step = 0; step < 60; ++step) {
      measure(rows, &hot, &hot_bare);
      rows = StepRows(random);
      bench.rows().Announce(rows);
      usleep(kStepMicroseconds);
    }
    say("  the same, announced a step before", hot, hot_bare);
  }
}

void BenchCommitAndFold(const std::string& folder) {
  constexpr int kCommits = 64;
  double with = 0, without = 0, puts = 0, wall = 0, wall_puts = 0;
  for (const bool folds : {false, true}) {
    Bench bench(folder, kFloats, folds ? 8 : 100'000);
    FillStore(bench);
    double cpu = CpuTime([&] {
      wall = Time([&] {
        for (int i = 0; i < kCommits; ++i) {
          bench.Change(bench.Draw(kCommitRows));
          bench.Commit(nullptr);
        }
        while (folds && bench.store().stats().unfolded_deltas >= 8) usleep(200);
      });
    });
    (folds ? with : without) = cpu / kCommits;
  }
  BareRocks bare(folder, uint64_t{64} << 20);
  rocksdb::WriteOptions synced;
  synced.sync = true;
  puts = CpuTime([&] {
    wall_puts = Time([&] {
      for (uint64_t row = 0; row < kCommitRows; ++row) bare.Put(row * 401, synced);
    });
  });
  fmt::print(
      "commit of {} rows: {:.2f} ms of CPU, with its fold {:.2f} ({:.2f} ms in all); as many "
      "synced "
      "puts {:.1f} ms of CPU ({:.0f} ms in all): {:.3f} of it, with the fold {:.3f}\n",
      kCommitRows, 1e3 * without, 1e3 * with, 1e3 * wall / kCommits, 1e3 * puts, 1e3 * wall_puts,
      without / puts, with / puts);
}

}  // namespace
}  // namespace tacit::store

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : std::filesystem::temp_directory_path().string();
  tacit::store::BenchGathers(folder);
  tacit::store::BenchCommitAndFold(folder);
  return 0;
}
