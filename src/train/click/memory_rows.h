#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "store/rows/working_rows.h"
#include "store/types/delta.h"
#include "train/click/row_map.h"

namespace tacit::train {

// Rows kept in memory alone, for offline experiments and benchmarks. Nothing is ever committed, and
// rows are never freed. Not thread-safe.
class MemoryRows final : public store::WorkingRows {
 public:
  explicit MemoryRows(store::RowLayout layout);

  Status Gather(std::span<const uint64_t> rows, std::span<float*> out) override;
  void MarkChanged(std::span<const uint64_t>) override {}
  std::shared_ptr<const store::RowDelta> TakeDelta() override;
  Stats stats() const override;

 private:
  float* Create(uint64_t row);

  store::RowLayout layout_;
  struct Free {
    void operator()(float* slab) const { std::free(slab); }
  };

  RowMap<float*> places_;
  std::vector<std::unique_ptr<float[], Free>> slabs_;
  float* next_ = nullptr;  // first free float of the last slab
  size_t slab_free_ = 0;   // floats left there
  uint64_t bytes_ = 0;
};

}  // namespace tacit::train
