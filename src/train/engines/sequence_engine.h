#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "mechanism/recipe.h"
#include "model/sequence/sequence_model.h"
#include "train/optimizer/optimizer.h"

namespace tacit::train {

// The outcome of a step. Un-noised: operator-only.
struct SequenceStepReport {
  uint64_t step = 0;
  size_t units = 0;
  double loss = 0;  // mean over the units that had one
  size_t units_clipped = 0;
};

// The largest step for which a GPU has memory beforehand. No units: nothing is planned, and memory
// is taken as steps ask for it.
struct SequenceStepSizes {
  uint64_t units = 0;
  bool prior_has_each = false, prior_has_table = false;  // model::LogitPrior::Numbers
};

// The positions that go through the model on a GPU at a time, fewer for large catalogues.
inline constexpr uint32_t kGpuWavePositions = 65536;
// A wave has fewer units than a grid has blocks on its third side, and no more than positions.
struct GpuWaveLimits {
  uint64_t positions = 0, units = 0;
};
GpuWaveLimits LimitsOfGpuWave(uint32_t catalogue, uint32_t wave_positions = kGpuWavePositions);

// The sizes of the largest wave of steps of this many units: positions, units, positions that
// predict, and windows of histories.
struct GpuWaveSizes {
  uint64_t rows = 0, units = 0, counted = 0, crops = 0;

  // It is sent to the GPU in this number of 32-bit words.
  uint64_t words() const;
};
GpuWaveSizes LargestGpuWave(const model::SequenceOptions& model, uint64_t units,
                            uint32_t wave_positions = kGpuWavePositions);
// The pinned memory of steps on their way to a GPU and of what comes back: two waves'. And all of
// the host's: units are packed beside it.
uint64_t GpuWavesPinnedBytes(const GpuWaveSizes& largest);
uint64_t GpuWavesHostBytes(const GpuWaveSizes& largest);

struct SequenceEngineOptions {
  model::SequenceOptions model;
  // Logits added to the model's, or null; must outlive the engine.
  const model::LogitPrior* prior = nullptr;
  bool prior_has_no_table = false;  // its rows are made where they are needed
  bool maps_sums = false;           // by factors
  OptimizerOptions optimizer;
  // Clip, bound, grid and factor; nothing where privacy is off.
  bool is_private = true;
  mechanism::Recipe recipe = {};
  double update_stddev = 0;  // of the noise on each number of the update
  SequenceStepSizes planned = {};
};

// A grid has 65,535 blocks on its second side, each of 128 items.
inline constexpr uint32_t kEngineItemsMost = 65'535 * 128;
// The reason for which these have no form for a GPU, by the name of what they ask for; empty where
// they have one.
std::string WhyNotOnEngine(const SequenceEngineOptions& options);

// The work of a sequence model's private step where it is not done on the processor. The stepper
// keeps what is policy: charges, coins, the rates. A step is GradientOf, then Release. After a
// failure in either it must not be used again: nothing was released. Not thread-safe.
class SequenceEngine {
 public:
  virtual ~SequenceEngine() = default;

  // Goes on from this state.
  virtual Status Load(std::span<const float> parameters, std::span<const float> state) = 0;
  // The bounded sum over the units, whose public coins follow from the seed. `noise` is that of the
  // parameters, if it corrects attention. Releases nothing. The units need not live longer.
  virtual Status GradientOf(const model::SequenceUnits& units, uint64_t seed,
                            const model::ParameterNoise& noise) = 0;
  // Noise on every number of it, then a step of the optimiser, its rate times this factor. The
  // report lacks its step. The engine may still work on it afterwards.
  virtual Result<SequenceStepReport> Release(double rate_factor) = 0;
  // Writes the parameters and the state that the steps have come to. A step that failed behind its
  // Release fails here.
  virtual Status Settle(std::span<float> parameters, std::span<float> state) = 0;
};

}  // namespace tacit::train
