#include "train/click/memory_rows.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/hash.h"

namespace tacit::train {
namespace {

constexpr size_t kSlabFloats = size_t{1} << 18;
constexpr size_t kLineFloats = 16;
constexpr size_t kAhead = 16;

}  // namespace

MemoryRows::MemoryRows(store::RowLayout layout) : layout_(std::move(layout)) {}

Status MemoryRows::Gather(std::span<const uint64_t> rows, std::span<float*> out) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kAhead < rows.size()) places_.Prefetch(rows[i + kAhead]);
    float*& place = places_[rows[i]];
    if (place == nullptr) place = Create(rows[i]);
    out[i] = place;
  }
  return {};
}

float* MemoryRows::Create(uint64_t row) {
  const uint32_t table = layout_.space.TableOf(row);
  const uint32_t dim = layout_.space.tables()[table].dim;
  const size_t floats = layout_.RowFloats(table);
  if (slab_free_ < floats) {
    slab_free_ = (std::max(kSlabFloats, floats) + kLineFloats - 1) / kLineFloats * kLineFloats;
    const size_t bytes = slab_free_ * sizeof(float);
    next_ = static_cast<float*>(std::aligned_alloc(kLineFloats * sizeof(float), bytes));
    if (next_ == nullptr) throw std::bad_alloc();
    slabs_.emplace_back(next_);
    bytes_ += bytes;
  }
  float* place = next_;
  next_ += floats;
  slab_free_ -= floats;
  InitialRow(layout_.seed, row, layout_.initial_scale[table], {place, dim});
  std::fill(place + dim, place + floats, 0.0f);
  return place;
}

std::shared_ptr<const store::RowDelta> MemoryRows::TakeDelta() {
  return std::make_shared<const store::RowDelta>();
}

store::WorkingRows::Stats MemoryRows::stats() const {
  return {.hits = 0, .misses = places_.size(), .evictions = 0, .bytes = bytes_, .pinned_rows = 0};
}

}  // namespace tacit::train
