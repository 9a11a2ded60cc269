#include "cuda/learn/pctr_scorer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/threads/mutex.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/dense/gather.h"
#include "cuda/learn/device_net.h"
#include "cuda/learn/engine_need.h"
#include "cuda/learn/served_places.h"

namespace tacit::cuda {
namespace {

uint64_t DenseSize(const std::vector<model::LinearLayer>& layers) {
  return layers.back().offset + layers.back().size();
}

uint64_t EmbeddingWidth(const RowSpace& space) {
  uint64_t width = 0;
  for (const RowSpace::Table& table : space.tables()) width += table.dim;
  return width;
}

DeviceNetOptions NetOf(const model::PctrOptions& model, std::vector<model::LinearLayer> layers,
                       const train::GpuScoreSizes& sizes) {
  return {.precision = model.precision,
          .layers = std::move(layers),
          .rows_max = sizes.examples,
          .use = DeviceNetOptions::Use::kScore};
}

class PctrScorer final : public model::PctrDevice {
 public:
  PctrScorer(Device& device, Stream stream, const train::GpuScoreOptions& options)
      : device_(device),
        space_(options.model.space),
        dense_width_(options.model.dense_width),
        sizes_(train::SizesOfGpuScoring(options)),
        layers_(LayersOf(options.model)),
        dense_size_(DenseSize(layers_)),
        stream_(std::move(stream)),
        served_(train::kGpuScoreVersions, sizes_.places) {
    place_.reserve(sizes_.entries);
    missing_.reserve(sizes_.entries);
    missing_rows_.reserve(sizes_.entries);
  }

  // Called once.
  Status Take(const train::GpuScoreOptions& options);

  size_t examples_most() const override { return sizes_.examples; }
  size_t entries_most() const override { return sizes_.entries; }
  size_t rows_most() const override { return sizes_.fetched; }

  Status Forward(const model::PctrVersion& version, const model::Examples& examples,
                 std::span<const uint64_t> rows, std::span<float> logits) override {
    TACIT_CHECK(examples.size <= sizes_.examples && logits.size() == examples.size &&
                    examples.slot_row.size() <= sizes_.entries && rows.size() <= sizes_.fetched &&
                    version.dense.size() == dense_size_,
                "a pass of other sizes than the scorer's");
    if (examples.size == 0) return {};
    const MutexLock lock(mutex_);
    Status done = Pass(version, examples, rows, logits);
    if (done) return done;
    // The stream may still read the caller's memory; and what was to come may not have come.
    (void)stream_.Synchronize();
    served_.Clear();
    return done;
  }

 private:
  Status Pass(const model::PctrVersion& version, const model::Examples& examples,
              std::span<const uint64_t> rows, std::span<float> logits) TACIT_REQUIRES(mutex_);
  Status BringRows(const model::PctrVersion& version, uint32_t shelf,
                   std::span<const uint64_t> rows) TACIT_REQUIRES(mutex_);
  Status ReadMissing(const model::PctrVersion& version, std::span<const uint64_t> rows)
      TACIT_REQUIRES(mutex_);
  GatherInput Pack(const model::Examples& examples, size_t* words) TACIT_REQUIRES(mutex_);
  DeviceSpan<float> DenseOf(uint32_t shelf) const TACIT_REQUIRES(mutex_) {
    return dense_.span().Sub(shelf * dense_size_, dense_size_);
  }

  Device& device_;
  const RowSpace space_;
  const uint32_t dense_width_;
  const train::GpuScoreSizes sizes_;
  const std::vector<model::LinearLayer> layers_;
  const uint64_t dense_size_;
  bool has_fours_ = true;

  // Host memory is declared before the stream: the stream may read it until the stream is gone.
  std::vector<DeviceSlot> host_slots_;
  std::vector<uint32_t> host_slot_of_;
  Mutex mutex_;
  // Rows on their way, the examples of a pass as they are packed, and its logits.
  HostBuffer<float> fetched_ TACIT_GUARDED_BY(mutex_);
  HostBuffer<uint32_t> packed_ TACIT_GUARDED_BY(mutex_);
  HostBuffer<float> answer_ TACIT_GUARDED_BY(mutex_);
  Stream stream_ TACIT_GUARDED_BY(mutex_);
  ServedPlaces served_ TACIT_GUARDED_BY(mutex_);
  std::vector<uint32_t> place_ TACIT_GUARDED_BY(mutex_), missing_ TACIT_GUARDED_BY(mutex_);
  std::vector<uint64_t> missing_rows_ TACIT_GUARDED_BY(mutex_);
  Buffer<float> rows_ TACIT_GUARDED_BY(mutex_), dense_ TACIT_GUARDED_BY(mutex_);  // of all shelves
  Buffer<DeviceSlot> slots_ TACIT_GUARDED_BY(mutex_);
  Buffer<uint32_t> slot_of_ TACIT_GUARDED_BY(mutex_), input_ TACIT_GUARDED_BY(mutex_);
  Buffer<float> logits_ TACIT_GUARDED_BY(mutex_);
  std::unique_ptr<DeviceNet> net_ TACIT_GUARDED_BY(mutex_);
};

Status PctrScorer::Take(const train::GpuScoreOptions& options) {
  const MutexLock lock(mutex_);
  TACIT_ASSIGN(fetched_, HostBuffer<float>::Make(device_, sizes_.fetched * sizes_.stride));
  TACIT_ASSIGN(packed_, HostBuffer<uint32_t>::Make(device_, sizes_.input_words));
  TACIT_ASSIGN(answer_, HostBuffer<float>::Make(device_, sizes_.examples));
  TACIT_ASSIGN(net_, MakeDeviceNet(stream_, NetOf(options.model, layers_, sizes_)));
  TACIT_ASSIGN(dense_, Buffer<float>::Make(device_, train::kGpuScoreVersions * dense_size_));
  TACIT_ASSIGN(rows_, Buffer<float>::Make(
                          device_, train::kGpuScoreVersions * sizes_.places * sizes_.stride));
  TACIT_ASSIGN(input_, Buffer<uint32_t>::Make(device_, sizes_.input_words));
  TACIT_ASSIGN(logits_, Buffer<float>::Make(device_, sizes_.examples));
  for (const RowSpace::Table& table : space_.tables()) {
    host_slots_.push_back({.rows = rows_.span().data,
                           .stride = sizes_.stride,
                           .dim = table.dim,
                           .column = static_cast<uint32_t>(host_slot_of_.size())});
    host_slot_of_.insert(host_slot_of_.end(), table.dim,
                         static_cast<uint32_t>(host_slots_.size() - 1));
    has_fours_ &= table.dim % 4 == 0;
  }
  TACIT_ASSIGN(slots_, Buffer<DeviceSlot>::Make(device_, host_slots_.size()));
  TACIT_ASSIGN(slot_of_, Buffer<uint32_t>::Make(device_, host_slot_of_.size()));
  TACIT_RETURN_IF_ERROR(stream_.Upload<DeviceSlot>(host_slots_, slots_.span()));
  TACIT_RETURN_IF_ERROR(stream_.Upload<uint32_t>(host_slot_of_, slot_of_.span()));
  return stream_.Synchronize();
}

Status PctrScorer::Pass(const model::PctrVersion& version, const model::Examples& examples,
                        std::span<const uint64_t> rows, std::span<float> logits) {
  TACIT_RETURN_IF_ERROR(device_.BindThread());
  const ServedPlaces::Shelf shelf = served_.ShelfOf(version.name);
  if (shelf.is_new)
    TACIT_RETURN_IF_ERROR(stream_.Upload<float>(version.dense, DenseOf(shelf.number)));
  TACIT_RETURN_IF_ERROR(BringRows(version, shelf.number, rows));
  size_t words = 0;
  const GatherInput input = Pack(examples, &words);
  TACIT_RETURN_IF_ERROR(
      stream_.Upload<uint32_t>(packed_.span().first(words), input_.span().Sub(0, words)));
  const auto n = static_cast<uint32_t>(examples.size);
  TACIT_RETURN_IF_ERROR(net_->Input(input, n));
  TACIT_RETURN_IF_ERROR(net_->Forward(DenseOf(shelf.number), logits_.span().Sub(0, n)));
  TACIT_RETURN_IF_ERROR(stream_.Download<float>(logits_.span().Sub(0, n), answer_.span().first(n)));
  TACIT_RETURN_IF_ERROR(stream_.Synchronize());
  std::ranges::copy(answer_.span().first(n), logits.begin());
  return {};
}

// Gives every row its place, and brings those that are not there.
Status PctrScorer::BringRows(const model::PctrVersion& version, uint32_t shelf,
                             std::span<const uint64_t> rows) {
  if (rows.empty()) return {};
  served_.Place(shelf, rows, &place_, &missing_);
  if (missing_.empty()) return {};
  TACIT_RETURN_IF_ERROR(ReadMissing(version, rows));
  const uint64_t floats = missing_.size() * sizes_.stride;
  return stream_.Upload<float>(
      fetched_.span().first(floats),
      rows_.span().Sub(uint64_t{place_[missing_.front()]} * sizes_.stride, floats));
}

// Reads the missing rows into pinned memory, each at the stride of places.
Status PctrScorer::ReadMissing(const model::PctrVersion& version, std::span<const uint64_t> rows) {
  const auto tables = space_.tables();
  missing_rows_.clear();
  size_t floats = 0, table = 0;
  for (const uint32_t i : missing_) {  // ascending, so the table only moves forward
    const uint64_t row = rows[i];
    while (row >= tables[table].first + tables[table].rows) ++table;
    missing_rows_.push_back(row);
    floats += tables[table].dim;
  }
  TACIT_RETURN_IF_ERROR(version.read(missing_rows_, fetched_.span().first(floats)));
  // From the last one on: no row is written over before it was moved.
  for (size_t m = missing_rows_.size(); m > 0; --m) {
    while (missing_rows_[m - 1] < tables[table].first) --table;
    floats -= tables[table].dim;
    std::memmove(fetched_.span().data() + (m - 1) * sizes_.stride, fetched_.span().data() + floats,
                 tables[table].dim * sizeof(float));
  }
  return {};
}

// Packs the examples as one upload: cells, names of rows, numbers.
GatherInput PctrScorer::Pack(const model::Examples& examples, size_t* words) {
  uint32_t* const host = packed_.span().data();
  uint32_t* const device = input_.span().data;
  size_t at = 0;
  const auto next = [&](size_t size) {
    const size_t begin = at;
    at += (size + 3) / 4 * 4;
    return begin;
  };
  const size_t cells = next(examples.slot_end.size()), names = next(examples.slot_row.size()),
               numbers = next(examples.size * dense_width_);
  std::ranges::copy(examples.slot_end, host + cells);
  for (size_t i = 0; i < examples.slot_row.size(); ++i)
    host[names + i] = place_[examples.slot_row[i]];
  for (size_t i = 0; i < examples.size * dense_width_; ++i)
    host[numbers + i] = std::bit_cast<uint32_t>(examples.dense[i]);
  *words = at;
  return {.slots = slots_.span(),
          .slot_of = slot_of_.span(),
          .cell_end = {device + cells, examples.slot_end.size()},
          .name = {device + names, examples.slot_row.size()},
          .numbers = {reinterpret_cast<const float*>(device + numbers),
                      static_cast<uint32_t>(examples.size), dense_width_, dense_width_},
          .has_fours = has_fours_};
}

}  // namespace

Result<std::unique_ptr<model::PctrDevice>> MakePctrScorer(Device& device,
                                                          const train::GpuScoreOptions& options) {
  TACIT_CHECK(options.model.input_clip == 0, "inputs that are clipped have no form for a GPU");
  TACIT_ASSIGN(Stream stream, Stream::Make(device));
  auto scorer = std::make_unique<PctrScorer>(device, std::move(stream), options);
  TACIT_RETURN_IF_ERROR(scorer->Take(options));
  return std::unique_ptr<model::PctrDevice>(std::move(scorer));
}

train::GpuNeed NeedOfPctrScorer(const DeviceFacts& facts, const train::GpuScoreOptions& options) {
  const train::GpuScoreSizes sizes = train::SizesOfGpuScoring(options);
  const std::vector<model::LinearLayer> layers = LayersOf(options.model);
  const DeviceNetBytes net = BytesOfDeviceNet(facts, NetOf(options.model, layers, sizes));
  MemoryNeed rows(facts.memory_piece_bytes), rest(facts.memory_piece_bytes);
  rows.Add<float>(train::kGpuScoreVersions * sizes.places * sizes.stride);
  rest.Add<float>(train::kGpuScoreVersions * DenseSize(layers))
      .Add<uint32_t>(sizes.input_words)
      .Add<float>(sizes.examples)
      .Add<DeviceSlot>(sizes.slots)
      .Add<uint32_t>(EmbeddingWidth(options.model.space));
  return {
      .rows = rows.bytes(), .rest = std::max(net.kept + rest.bytes(), net.making), .caches = true};
}

}  // namespace tacit::cuda
