#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/scales.h"
#include "model/sequence/layout.h"
#include "model/sequence/unit_rows.h"

namespace tacit::cuda {

// The rows of some units, packed: one unit's behind the other's.
struct PackedUnits {
  std::vector<uint32_t> item, position, crop_end, unit_end;
  // Rows that predict: which of those, their item and weight; per unit where its own end.
  std::vector<uint32_t> counted, target, counted_end;
  std::vector<float> weight;
  std::vector<uint32_t> coordinates;  // per unit: the numbers in its gradient
  uint32_t longest = 0;               // crop

  size_t units() const { return unit_end.size(); }
  size_t rows() const { return item.size(); }
  void Clear() { *this = {}; }
  // A unit without a row that predicts has no row here.
  void Append(const model::UnitRows& rows, uint32_t coordinates_of);
};

// Passes of a transformer over packed units, and the bounded sum of their gradients. Work is put on
// the stream that it was made with. Memory grows to the largest wave.
class SequenceWave {
 public:
  virtual ~SequenceWave() = default;

  // Begins a step with these parameters.
  virtual Status BeginStep(DeviceSpan<const float> parameters) = 0;
  // Forward and backward, norms, scales; adds the units' gradients to `sums`, in steps of the
  // rule's grid. `units` must live until the stream has run.
  virtual Status Add(const PackedUnits& units, const ClipRule& rule, DeviceSpan<int64_t> sums) = 0;
  // The outcome of the last Add: per row that predicts its weighted loss; per unit its squared
  // norm, 0 where it was not finite, and whether it was. Report waits for the stream.
  struct Outcome {
    std::vector<float> loss, squared;
    std::vector<uint8_t> bounded;
  };
  virtual Status Report(Outcome* outcome) = 0;
};

// `layout` and `stream` must outlive it. REQUIRES a model with a device form.
std::unique_ptr<SequenceWave> MakeSequenceWave(Stream& stream, const model::SequenceLayout& layout);

}  // namespace tacit::cuda
