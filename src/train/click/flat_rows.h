#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"

namespace tacit::train {

// The whole space in memory, each table one contiguous array, for offline experiments and
// benchmarks of mechanisms that write every row. Nothing is ever committed. All rows exist from the
// start. Not thread-safe.
class FlatRows final : public store::WorkingRows {
 public:
  // Allocates and fills the rows, on the workers. Returns kRefused, with nothing allocated, if the
  // tables take more than `bytes_max`; kUnavailable if the system does not give that much.
  static Result<std::unique_ptr<FlatRows>> Make(store::RowLayout layout, uint64_t bytes_max,
                                                WorkerPool& workers);
  static uint64_t BytesNeeded(const store::RowLayout& layout);

  // The table's row 0; the next rows follow at a stride of RowLayout::RowFloats.
  float* Table(uint32_t table) const { return table_[table]; }

  Status Gather(std::span<const uint64_t> rows, std::span<float*> out) override;
  void MarkChanged(std::span<const uint64_t>) override {}
  std::shared_ptr<const store::RowDelta> TakeDelta() override;
  Stats stats() const override;

 private:
  // Memory mapped from the system, in huge pages if it has them.
  struct Unmap {
    size_t bytes = 0;
    void operator()(float* floats) const;
  };
  using Pages = std::unique_ptr<float[], Unmap>;

  FlatRows(store::RowLayout layout, Pages pages);
  void Fill(WorkerPool& workers);

  const store::RowLayout layout_;
  const Pages pages_;
  std::vector<float*> table_;  // each table's first float
};

// Memory in bytes that the system could give now without swapping; 0 if unknown.
uint64_t AvailableMemory();

}  // namespace tacit::train
