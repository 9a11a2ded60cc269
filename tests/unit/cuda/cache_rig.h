#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "cuda/device/device.h"
#include "cuda/rows/cached_rows.h"
#include "store/types/delta.h"
#include "unit/cuda/watched_rows.h"

namespace tacit::cuda::testing {

// Rows on the host, as floats; a naive store.
class PlainRows final : public store::WorkingRows {
 public:
  explicit PlainRows(const store::RowLayout& layout) {
    for (uint32_t t = 0; t < layout.space.tables().size(); ++t)
      for (uint64_t i = 0; i < layout.space.tables()[t].rows; ++i)
        rows.emplace_back(layout.RowFloats(t), static_cast<float>(rows.size()) + 0.5f);
  }
  Status Gather(std::span<const uint64_t> wanted, std::span<float*> out) override {
    for (size_t i = 0; i < wanted.size(); ++i) out[i] = rows[wanted[i]].data();
    return {};
  }
  void MarkChanged(std::span<const uint64_t>) override {}
  std::shared_ptr<const store::RowDelta> TakeDelta() override { return nullptr; }
  Stats stats() const override { return {}; }

  std::vector<std::vector<float>> rows;
};

// The faults of a cache under random operations, counted.
struct CacheFindings {
  uint64_t checked = 0;             // floats of rows that steps saw
  uint64_t wrong_floats = 0;        // of them not what was last written
  uint64_t wrong_names = 0;         // names that two rows had, or two that a row had
  uint64_t marked_not_written = 0;  // rows that went home and that no step had written
  uint64_t lost = 0;                // rows that were written and not at home after Settle
  uint64_t failed = 0;              // calls

  uint64_t wrong() const { return wrong_floats + wrong_names + marked_not_written + lost + failed; }
};

// A cache in front of a naive store, and beside it the truth: the floats of each row as they were
// last written. A kernel of the test writes in FinishRows' place.
class CacheRig {
 public:
  CacheRig(Device& device, const CachedRowsOptions& options, uint64_t seed);

  // Steps with previews, announcements that come true and others, extra rows, and Settle at times.
  void Run(int steps);
  const CacheFindings& findings() const { return findings_; }
  const CachedRows::Stats& stats() const { return cache_->stats(); }
  DeviceSpan<uint8_t> changed() const { return cache_->view().changed; }
  const RowSpace& space() const { return layout_.space; }

 private:
  using Rows = std::vector<uint64_t>;
  bool Ok(const Status& status);
  Rows RandomRows(size_t most);
  void Step(const Rows& rows);
  void Look(const Rows& rows, DeviceSpan<const uint32_t> names);
  void Write(const Rows& rows, const std::vector<uint32_t>& names);
  void CheckHome();
  std::vector<uint32_t> Read(DeviceSpan<const uint32_t> from);

  std::mt19937_64 random_;
  store::RowLayout layout_;
  PlainRows plain_;
  WatchedRows watched_;
  std::vector<std::vector<float>> truth_;
  CacheFindings findings_;
  std::set<uint64_t> written_;  // since the last Settle
  std::set<uint64_t> marked_;
  Stream compute_;
  std::unique_ptr<CachedRows> cache_;
  float next_number_ = 10'000;
};

}  // namespace tacit::cuda::testing
