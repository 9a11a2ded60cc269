#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/rows/scales.h"
#include "cuda/kernels/sequence/logits.h"
#include "cuda/learn/packed_units.h"
#include "model/sequence/layout.h"
#include "train/engines/sequence_engine.h"

namespace tacit::cuda {

// The numbers that a step's waves have in common.
struct SequenceStepFacts {
  DeviceSpan<const float> parameters = {};
  uint64_t dropout_seed = 0;
  // The variances of the parameters' noise, and of each item's; no item's: attention is not
  // corrected.
  float weight_variance = 0;
  DeviceSpan<const float> item_variance = {};
  // Logits that the model's are added to, if it has a prior.
  bool has_prior = false;
  PriorLogits prior = {};
};

// The largest wave for which there is memory from the start.
struct WavePlan {
  train::GpuWaveSizes sizes = {};
  bool corrected = false;  // attention is
  bool has_prior = false;  // logits have one
};

// Passes of a transformer over packed units, and the bounded sum of their gradients. Work is put on
// the stream that it was made with. Memory grows to the largest wave.
class SequenceWave {
 public:
  virtual ~SequenceWave() = default;

  virtual Status TakePlanned(const WavePlan& plan) = 0;

  virtual Status BeginStep(const SequenceStepFacts& facts) = 0;
  // Two waves may be on their way at a time, each in a turn of its own.
  static constexpr uint32_t kTurns = 2;
  // Forward and backward, norms, scales; adds the units' gradients to `sums`, in steps of the
  // rule's grid. The units are copied. REQUIRES that the turn's last wave was awaited.
  virtual Status Add(const PackedUnits& units, uint32_t turn, const ClipRule& rule,
                     DeviceSpan<int64_t> sums) = 0;
  // The outcome of a turn's last Add: per row that predicts its weighted loss; per unit its squared
  // norm, 0 where it was not finite, and whether it was. Good until the turn's next Add. Await
  // waits for it, and not for the sums.
  struct Outcome {
    std::span<const float> loss, squared;
    std::span<const uint8_t> bounded;
  };
  virtual Result<Outcome> Await(uint32_t turn) = 0;
};

// `layout` and `stream` must outlive it. `logit_rows` as in DeviceSequenceOptions. REQUIRES a model
// with a device form.
std::unique_ptr<SequenceWave> MakeSequenceWave(Stream& stream, const model::SequenceLayout& layout,
                                               uint32_t logit_rows);
// Adds the device memory that TakePlanned takes.
Status PlanSequenceWave(const model::SequenceLayout& layout, uint32_t logit_rows,
                        const WavePlan& plan, MemoryNeed* need);

}  // namespace tacit::cuda
