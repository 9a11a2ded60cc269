#include "train/engines/sequence_engine.h"

#include <algorithm>

namespace tacit::train {

// A position has a logit for each item: those of a wave take a gigabyte at most.
GpuWaveLimits LimitsOfGpuWave(uint32_t catalogue, uint32_t wave_positions) {
  constexpr uint64_t kLogitsMost = uint64_t{1} << 28, kUnitsMost = 32768;
  const uint64_t positions =
      std::min<uint64_t>(wave_positions, std::max<uint64_t>(1, kLogitsMost / catalogue));
  return {.positions = positions, .units = std::min(kUnitsMost, positions)};
}

// A unit brings `crops` windows of `length` positions at most, for any history; each of
// them is read in the worst case, and predicts. One of more than a wave's is a wave by itself.
GpuWaveSizes LargestGpuWave(const model::SequenceOptions& model, uint64_t units,
                            uint32_t wave_positions) {
  if (units == 0) return {};
  const GpuWaveLimits most = LimitsOfGpuWave(model.catalogue, wave_positions);
  const uint64_t of_unit = uint64_t{model.crops} * model.length;
  GpuWaveSizes wave{.units = std::min(units, most.units)};
  wave.rows = std::min(units * of_unit, std::max(most.positions, of_unit));
  wave.crops = std::min(wave.units * model.crops, wave.rows);
  wave.counted = model.last_position_only ? wave.crops : wave.rows;
  return wave;
}

// As cuda/learn/packed_units.cc lays them out; a test compares them.
uint64_t GpuWaveSizes::words() const {
  const auto aligned = [](uint64_t words) { return (words + 3) / 4 * 4; };
  return 2 * aligned(rows) + 2 * aligned(crops) + 3 * aligned(counted) + 5 * aligned(units);
}

uint64_t GpuWavesPinnedBytes(const GpuWaveSizes& largest) {
  const uint64_t outcome = sizeof(float) * (largest.counted + largest.units) + largest.units;
  return 2 * (sizeof(uint32_t) * largest.words() + outcome);
}

uint64_t GpuWavesHostBytes(const GpuWaveSizes& largest) {
  constexpr uint64_t kDoubling = 2;  // as vectors grow
  return GpuWavesPinnedBytes(largest) + 2 * kDoubling * sizeof(uint32_t) * largest.words();
}

std::string WhyNotOnEngine(const SequenceEngineOptions& options) {
  const model::SequenceOptions& model = options.model;
  if (model.encoder != model::SequenceOptions::Encoder::kTransformer)
    return "a recurrent encoder has no form for a GPU";
  if (!options.is_private) return "training without privacy has no form for a GPU";
  if (options.prior_has_no_table)
    return "start counts over a catalogue without a table of all pairs has no form for a GPU";
  if (options.maps_sums) return "a sum by low-rank factors has no form for a GPU";
  if (model.negatives > 0) return "sampled negatives have no form for a GPU";
  if (model.catalogue > kEngineItemsMost)
    return "a catalogue of more than 8,388,480 items has no form for a GPU";
  if (options.recipe.clip == mechanism::Recipe::Clip::kPerLayer)
    return "a clip per layer has no form for a GPU";
  return "";
}

}  // namespace tacit::train
