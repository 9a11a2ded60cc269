// The row cache. Its index: look-ups with the rows' gather, and filling, of rows of 64 floats, in
// random order, with the index half full and full. What a look-up must move is 145 bytes (row,
// bucket's digests, number of the row that fits, age, name, flag) and 520 to gather (name, cell,
// row read and written); filling moves 521 (a bucket's ages, row, digest, age, name) and 512.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "bench/bench_data.h"
#include "bench/vocabulary_data.h"
#include "cuda/bench/parts.h"
#include "cuda/bench/same_row.h"
#include "cuda/bench/timing.h"
#include "cuda/kernels/dense/gather.h"
#include "cuda/learn/gpu.h"
#include "cuda/rows/cached_rows.h"
#include "cuda/rows/row_index.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "train/click/flat_rows.h"

namespace tacit::cuda {
namespace {

using bench::BenchRow;

constexpr uint32_t kDim = 64;
constexpr double kFindBytes = 145, kGatherBytes = 520, kFillBytes = 521 + 512;
constexpr uint32_t kFirstAge = kNone - 1;

// Rows to place, those of a bucket side by side, on the device.
struct Fill {
  Buffer<uint32_t> row, first, name;
};

// An index with its table.
class IndexRig {
 public:
  static Result<std::unique_ptr<IndexRig>> Make(Stream& stream, uint32_t buckets) {
    auto rig = std::unique_ptr<IndexRig>(new IndexRig(stream, buckets));
    TACIT_RETURN_IF_ERROR(rig->Take());
    return rig;
  }

  uint32_t places() const { return buckets_ * kBucketPlaces; }
  // `count` rows that no call before has returned.
  Result<Fill> NewRows(uint32_t count) {
    std::vector<std::pair<uint32_t, uint32_t>> by_bucket(count);
    for (auto& [bucket, row] : by_bucket) {
      // An odd factor takes each row once.
      row = next_row_++ * 2654435761u % table_.rows;
      bucket = BucketOf(&table_, row);
    }
    std::ranges::sort(by_bucket);
    std::vector<uint32_t> row, first;
    for (uint32_t i = 0; i < count; ++i) {
      if (i == 0 || by_bucket[i].first != by_bucket[i - 1].first) first.push_back(i);
      row.push_back(by_bucket[i].second);
    }
    Fill fill;
    TACIT_ASSIGN(fill.row, OnDevice(row));
    TACIT_ASSIGN(fill.first, OnDevice(first));
    TACIT_ASSIGN(fill.name, Buffer<uint32_t>::Make(stream_.device(), count));
    return fill;
  }
  // Gives the rows places, and their floats if there are any.
  Status Place(const Fill& fill, DeviceSpan<float> floats) {
    --age_;
    TACIT_RETURN_IF_ERROR(
        PlaceRows(stream_, index(),
                  {.row = fill.row.span(), .first = fill.first.span(), .age = age_, .in_use = age_},
                  changed_.span(), fill.name.span()));
    if (floats.size == 0) return {};
    return UnpackRows(
        stream_, places_of_rows(),
        {.row = fill.row.span(), .name = fill.name.span(), .stride = kDim, .floats = floats});
  }
  // Rows that are in the index, at random, with repeats.
  Result<Buffer<uint32_t>> RowsThere(uint32_t count) {
    std::vector<uint32_t> all(places()), some(count);
    TACIT_RETURN_IF_ERROR(
        stream_.Download(DeviceSpan<const uint32_t>(row_.span()), std::span<uint32_t>(all)));
    TACIT_RETURN_IF_ERROR(stream_.Synchronize());
    uint32_t drawn = 0;  // public numbers
    for (uint32_t& row : some) {
      do row = all[Philox({drawn++, 0, 0, 0}, {11, 0})[0] % all.size()];
      while (row == kNone);
    }
    return OnDevice(some);
  }
  Status Find(const Buffer<uint32_t>& row, const Buffer<uint32_t>& name,
              const Buffer<uint8_t>& missing) {
    return FindRows(stream_, index(), row.span(), --age_, name.span(), missing.span());
  }
  DeviceSpan<const DeviceSlot> slots() const { return slots_.span(); }
  DeviceSpan<const uint32_t> slot_of() const { return slot_of_.span(); }
  Result<Buffer<uint32_t>> OnDevice(const std::vector<uint32_t>& values) {
    TACIT_ASSIGN(auto buffer, Buffer<uint32_t>::Make(stream_.device(), values.size()));
    TACIT_RETURN_IF_ERROR(stream_.Upload<uint32_t>(values, buffer.span()));
    TACIT_RETURN_IF_ERROR(stream_.Synchronize());
    return buffer;
  }

 private:
  IndexRig(Stream& stream, uint32_t buckets)
      : stream_(stream),
        buckets_(buckets),
        // A power of two, four rows a place at least.
        table_{.rows = std::bit_ceil(4 * buckets * kBucketPlaces), .count = buckets} {}
  Status Take() {
    Device& device = stream_.device();
    TACIT_ASSIGN(tables_, Buffer<CachedTable>::Make(device, 1));
    TACIT_ASSIGN(digests_, Buffer<Digests>::Make(device, places() / 16));
    TACIT_ASSIGN(row_, Buffer<uint32_t>::Make(device, places()));
    TACIT_ASSIGN(held_age_, Buffer<uint32_t>::Make(device, places()));
    TACIT_ASSIGN(changed_, Buffer<uint8_t>::Make(device, places()));
    TACIT_ASSIGN(embeddings_, Buffer<float>::Make(device, uint64_t{places()} * kDim));
    TACIT_ASSIGN(device_tables_, Buffer<DeviceTable>::Make(device, 1));
    TACIT_ASSIGN(slots_, Buffer<DeviceSlot>::Make(device, 1));
    const std::vector<DeviceTable> table = {
        {.embedding = embeddings_.span().data, .rows = table_.rows, .dim = kDim}};
    const std::vector<DeviceSlot> slot = {
        {.rows = embeddings_.span().data, .stride = kDim, .dim = kDim}};
    TACIT_ASSIGN(slot_of_, OnDevice(std::vector<uint32_t>(kDim, 0)));
    TACIT_RETURN_IF_ERROR(stream_.Upload<CachedTable>(std::span(&table_, 1), tables_.span()));
    TACIT_RETURN_IF_ERROR(stream_.Upload<DeviceTable>(table, device_tables_.span()));
    TACIT_RETURN_IF_ERROR(stream_.Upload<DeviceSlot>(slot, slots_.span()));
    TACIT_RETURN_IF_ERROR(stream_.Fill(digests_.span(), 0));
    TACIT_RETURN_IF_ERROR(stream_.Fill(row_.span(), 0xff));
    TACIT_RETURN_IF_ERROR(stream_.Fill(held_age_.span(), 0xff));
    TACIT_RETURN_IF_ERROR(stream_.Fill(changed_.span(), 0));
    return stream_.Synchronize();
  }
  RowIndex index() const {
    return {.tables = tables_.span(),
            .digests = digests_.span(),
            .row = row_.span(),
            .age = held_age_.span()};
  }
  RowPlaces places_of_rows() const { return {.tables = device_tables_.span()}; }

  Stream& stream_;
  const uint32_t buckets_;
  const CachedTable table_;
  uint32_t next_row_ = 1, age_ = kFirstAge;
  Buffer<CachedTable> tables_;
  Buffer<Digests> digests_;
  Buffer<uint32_t> row_, held_age_, slot_of_;
  Buffer<uint8_t> changed_;
  Buffer<float> embeddings_;
  Buffer<DeviceTable> device_tables_;
  Buffer<DeviceSlot> slots_;
};

Status AddFull(const GpuSizes& sizes, Stream& stream, double copy, uint32_t percent,
               std::vector<BenchRow>* rows) {
  Device& device = stream.device();
  TACIT_ASSIGN(const auto rig, IndexRig::Make(stream, sizes.index_buckets));
  // Twice as many rows as places fill all of them but a few: the rest is evicted.
  const uint32_t begin_with = percent == 100 ? 2 * rig->places() : rig->places() / 8 * 3;
  for (uint32_t done = 0; done < begin_with; done += rig->places() / 8) {
    TACIT_ASSIGN(const Fill fill, rig->NewRows(rig->places() / 8));
    TACIT_RETURN_IF_ERROR(rig->Place(fill, {}));
    TACIT_RETURN_IF_ERROR(stream.Synchronize());
  }
  const uint32_t n = sizes.look_ups;
  TACIT_ASSIGN(const auto there, rig->RowsThere(n));
  TACIT_ASSIGN(const auto name, Buffer<uint32_t>::Make(device, n));
  TACIT_ASSIGN(const auto missing, Buffer<uint8_t>::Make(device, n));
  TACIT_ASSIGN(const auto out, Buffer<float>::Make(device, uint64_t{n} * kDim));
  std::vector<uint32_t> ends(n);
  std::iota(ends.begin(), ends.end(), 1);
  TACIT_ASSIGN(const auto cell_end, rig->OnDevice(ends));
  const auto find = [&](Stream&) { return rig->Find(there, name, missing); };
  const auto both = [&](Stream& on) -> Status {
    TACIT_RETURN_IF_ERROR(find(on));
    return GatherSum<float>(on,
                            {.slots = rig->slots(),
                             .slot_of = rig->slot_of(),
                             .cell_end = cell_end.span(),
                             .name = name.span(),
                             .has_fours = true},
                            DeviceMatrix<float>(out.span().data, n, kDim, kDim));
  };
  TACIT_ASSIGN(const double found, SecondsOnDevice(stream, sizes.seconds, find));
  TACIT_ASSIGN(const double gathered, SecondsOnDevice(stream, sizes.seconds, both));
  // Each filling takes rows of its own; on average the index is as full as that says.
  const uint32_t fill_rows = std::max(1u, std::min(n, rig->places() / 16));
  std::vector<Fill> fills;
  for (int i = 0; i < 4; ++i) {
    TACIT_ASSIGN(Fill fill, rig->NewRows(fill_rows));
    fills.push_back(std::move(fill));
  }
  const auto floats = out.span().Sub(0, uint64_t{fill_rows} * kDim);
  std::vector<double> filled;
  const SystemClock clock;
  for (const Fill& fill : fills) {
    const auto start = clock.Now();
    TACIT_RETURN_IF_ERROR(rig->Place(fill, floats));
    TACIT_RETURN_IF_ERROR(stream.Synchronize());
    filled.push_back(Seconds(clock.Now() - start));
  }
  const double fill = bench::Median(std::move(filled));
  const auto add = [&](const char* what, double count, double seconds, double bytes) {
    rows->push_back({fmt::format("gpu-rows-{}-{}", what, percent),
                     count / seconds / 1e9,
                     "G rows/s",
                     copy / bytes / 1e9,
                     {{"bytes_per_row", bytes}}});
  };
  add("find", n, found, kFindBytes);
  add("find-gather", n, gathered, kFindBytes + kGatherBytes);
  add("fill", fill_rows, fill, kFillBytes);
  return {};
}

// A click model of one table whose examples have 26 rows each, drawn by Zipf's law.
struct CacheModel {
  static constexpr uint32_t kEntries = 26;
  train::ClickOptions options;
  std::vector<stream::StepBatch> steps;

  explicit CacheModel(const GpuSizes& sizes, uint32_t count) {
    options.id = "cache";
    options.index = LearnerIndex(0);
    options.model.space.AddTable("id", sizes.cache_rows, 16);
    options.model.dense_width = 13;
    options.model.hidden = sizes.hidden;
    options.model.precision = ops::Precision::kBf16;
    constexpr double kZipf = 1.05;
    const uint32_t n = sizes.cache_examples;
    const auto ids = bench::ZipfRows(kZipf, sizes.cache_rows, size_t{count} * n * kEntries, 5);
    for (uint32_t s = 0; s < count; ++s) {
      stream::StepBatch step;
      event::Batch& batch = step.examples;
      batch.slots = 1;
      batch.dense_width = 13;
      const auto begin = ids.begin() + static_cast<ptrdiff_t>(size_t{s} * n * kEntries);
      batch.row.assign(begin, begin + n * kEntries);
      batch.dense.assign(size_t{n} * 13, 0.5f);
      for (uint32_t i = 0; i < n; ++i) {
        batch.offset.push_back(uint64_t{s} * n + i);
        batch.timestamp_ms.push_back(0);
        batch.slot_end.push_back((i + 1) * kEntries);
        batch.label.push_back(i % 4 == 0 ? 1.0f : 0.0f);
        step.unit_of.push_back(i);
      }
      step.units = n;
      step.ranges = {{0, uint64_t{s} * n, uint64_t{s + 1} * n}};
      step.number = stream::NewStepNumber();
      steps.push_back(std::move(step));
    }
  }
};

// The cache by itself: what it finds of the entries once it is warm.
Status AddHits(const GpuSizes& sizes, const CacheModel& model, std::vector<BenchRow>* rows) {
  TACIT_ASSIGN(const auto device, OpenDevice(0));
  TACIT_ASSIGN(Stream stream, Stream::Make(*device));
  SameRow host(16);
  // Index and flags take 18 bytes a place beside its floats.
  const uint64_t bytes = sizes.cache_rows / 10 * (16 * 4 + 18);
  TACIT_ASSIGN(const auto cache,
               CachedRows::Make(stream, model.options.model.space, {0}, {.bytes = bytes}, host));
  CachedRows::Stats warm;
  for (size_t s = 0; s < model.steps.size(); ++s) {
    if (s == sizes.cache_warm_steps) warm = cache->stats();
    TACIT_RETURN_IF_ERROR(cache->Begin(model.steps[s].examples.row, DeviceRows::Purpose::kStep));
    TACIT_RETURN_IF_ERROR(stream.Synchronize());
    TACIT_RETURN_IF_ERROR(cache->End({}));
  }
  const CachedRows::Stats& all = cache->stats();
  const double entries = static_cast<double>(all.entries - warm.entries);
  const double missed = static_cast<double>(all.entries_missed - warm.entries_missed);
  rows->push_back({"gpu-cache-hits",
                   100 * (1 - missed / entries),
                   "% of entries",
                   {},
                   {{"places", all.places}, {"rows", sizes.cache_rows}},
                   fmt::format("{} places for {} rows, Zipf 1.05", all.places, sizes.cache_rows)});
  return {};
}

Result<double> StepsWith(const GpuSizes& sizes, const CacheModel& model,
                         const train::GpuRowOptions& row_options) {
  WorkerPool workers{{.workers = 2}};
  const auto backend = ops::MakeCpuBackend(workers);
  TACIT_ASSIGN(const auto gpu, OpenGpu({.rows = row_options}));
  const train::ClickOptions& options = model.options;
  auto mechanism = bench::VocabularyAdaFest(options.model.space);
  auto noise = noise::MakeNoiseSource();
  const model::Pctr net(options.model, *backend);
  const store::RowLayout layout = train::MakeRowLayout(options, net);
  TACIT_ASSIGN(const auto rows, train::FlatRows::Make(layout, uint64_t{32} << 30, workers));
  TACIT_ASSIGN(auto engine, gpu->MakeClickEngine(options.Engine(0), *mechanism, *noise, *rows,
                                                 train::InitialDense(options, net)));
  train::ClickLearner learner(options, std::move(mechanism), std::move(noise), std::move(engine));
  const SystemClock clock;
  std::vector<double> seconds;
  for (size_t s = 0; s + 1 < model.steps.size(); ++s) {
    const std::atomic<bool> abandon = false;
    train::StepReport report;
    const auto start = clock.Now();
    learner.Announce(model.steps[s + 1]);
    const auto taken = learner.TakeStep(model.steps[s], abandon, &report);
    learner.Withdraw();
    TACIT_RETURN_IF_ERROR(taken);
    if (s >= sizes.cache_warm_steps) seconds.push_back(Seconds(clock.Now() - start));
  }
  return bench::Median(std::move(seconds));
}

}  // namespace

Result<std::vector<BenchRow>> BenchRowCache(const GpuSizes& sizes) {
  std::vector<BenchRow> rows;
  {
    TACIT_ASSIGN(const auto device, OpenDevice(0));
    TACIT_ASSIGN(Stream stream, Stream::Make(*device));
    TACIT_ASSIGN(const double copy, CopyRate(stream, sizes.seconds, sizes.copy_bytes));
    for (const uint32_t percent : {50u, 100u})
      TACIT_RETURN_IF_ERROR(AddFull(sizes, stream, copy, percent, &rows));
  }
  const CacheModel model(sizes, sizes.cache_warm_steps + sizes.cache_steps);
  TACIT_RETURN_IF_ERROR(AddHits(sizes, model, &rows));
  using Kind = train::GpuRowOptions::Kind;
  TACIT_ASSIGN(const double whole, StepsWith(sizes, model, {.kind = Kind::kWhole}));
  // A place takes its row's floats, Adam's two beside each and three more, and 18 bytes.
  const uint64_t bytes = sizes.cache_rows / 10 * ((3 * 16 + 3) * 4 + 18);
  TACIT_ASSIGN(const double cached,
               StepsWith(sizes, model, {.kind = Kind::kCache, .cache_bytes = bytes}));
  const double examples = sizes.cache_examples;
  rows.push_back({"gpu-cache-step",
                  examples / cached / 1e6,
                  "M examples/s",
                  examples / whole / 1e6,
                  {{"step_us", cached * 1e6}, {"whole_us", whole * 1e6}},
                  "a tenth of the rows on the device, the rest in memory"});
  return rows;
}

}  // namespace tacit::cuda
