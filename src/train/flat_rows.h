#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "store/delta.h"
#include "store/working_rows.h"

namespace tacit::train {

// The whole space in memory, each table one contiguous array, for offline experiments and
// benchmarks of mechanisms that write every row: nothing is ever committed. All rows exist from the
// start. Not thread-safe.
class FlatRows final : public store::WorkingRows {
 public:
  // kRefused, with nothing allocated, when the tables take more than `bytes_max`; kUnavailable when
  // the system does not give that much. Initial values are filled in on the workers.
  static Result<std::unique_ptr<FlatRows>> Make(store::RowLayout layout, uint64_t bytes_max,
                                                WorkerPool& workers);
  static uint64_t BytesNeeded(const store::RowLayout& layout);

  // A table's row 0; the others follow, RowLayout::RowFloats apart.
  float* Table(uint32_t table) const { return table_[table]; }

  Status Gather(std::span<const uint64_t> rows, std::span<float*> out) override;
  void MarkChanged(std::span<const uint64_t>) override {}
  std::shared_ptr<const store::RowDelta> TakeDelta() override;
  Stats stats() const override;

 private:
  // Pages straight from the system, in huge ones where it has them.
  struct Unmap {
    size_t bytes = 0;
    void operator()(float* floats) const;
  };
  using Pages = std::unique_ptr<float[], Unmap>;

  FlatRows(store::RowLayout layout, Pages pages);
  void Fill(WorkerPool& workers);

  const store::RowLayout layout_;
  const Pages pages_;
  std::vector<float*> table_;  // where each begins
};

// What the system could give now without swapping; 0 when it does not tell.
uint64_t AvailableMemory();

}  // namespace tacit::train
