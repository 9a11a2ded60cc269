#pragma once

#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "base/row_space.h"
#include "mechanism/mechanism.h"

// One private update in two ways: through a Mechanism, as the trainer does it, and naively, row by
// row over the whole id space in double, straight from the definition.
namespace tacit::mechanism {

// The gradient of one privacy unit: dense and by row.
struct UnitGradient {
  std::vector<double> dense;
  std::map<uint64_t, std::vector<double>> rows;  // its keys are the rows it activates
};
using StepUnits = std::vector<UnitGradient>;

// An update over the whole id space; unwritten rows hold nothing.
struct Update {
  std::vector<double> dense;
  std::map<uint64_t, std::vector<double>> rows;
};

inline constexpr size_t kDenseSize = 3;

// What can be wrong with an AdaFEST. The statistical tests must find each of these.
enum class Fault {
  kNone,
  kThresholdByVariance,    // rows nobody touched: tau / variance instead of tau / deviation
  kUntouchedWithoutNoise,  // rows nobody touched are written without noise
  kTouchedDrawnTwice,      // hits of the skips on touched rows are kept
  kClipBeforeMask,
  kRealisedBatch,    // divides by how many units there were
  kNoiseInsideClip,  // noise is added to each unit before its clip
  kEmptyBatchSilent,
};

class NaiveAdaFest {
 public:
  NaiveAdaFest(const RowSpace& space, const AdaFestOptions& options, Fault fault, uint64_t seed)
      : space_(space), options_(options), fault_(fault), random_(seed) {}

  Update Step(const StepUnits& units) {
    Update update;
    update.dense.assign(kDenseSize, 0);
    if (fault_ == Fault::kEmptyBatchSilent && units.empty()) return update;
    const double divisor = fault_ == Fault::kRealisedBatch
                               ? std::max<double>(1, static_cast<double>(units.size()))
                               : options_.expected_batch;
    const std::vector<bool> touched = Touched(units), kept = Kept(units, touched);
    for (uint64_t row = 0; row < space_.rows(); ++row)
      if (kept[row]) update.rows[row].assign(space_.tables()[space_.TableOf(row)].dim, 0);
    for (const UnitGradient& unit : units) AddClipped(unit, kept, &update);
    const bool noise_outside = fault_ != Fault::kNoiseInsideClip;
    for (double& value : update.dense) value = (value + Noise(noise_outside)) / divisor;
    for (auto& [row, values] : update.rows) {
      const bool silent = fault_ == Fault::kUntouchedWithoutNoise && !touched[row];
      for (double& value : values) value = (value + Noise(noise_outside && !silent)) / divisor;
    }
    return update;
  }

 private:
  double Normal() { return normal_(random_); }
  double Noise(bool wanted) {
    return wanted ? options_.clip_gradient * options_.sigma_gradient * Normal() : 0;
  }

  std::vector<bool> Touched(const StepUnits& units) const {
    std::vector<bool> touched(space_.rows());
    for (const UnitGradient& unit : units)
      for (const auto& [row, values] : unit.rows) touched[row] = true;
    return touched;
  }

  std::vector<bool> Kept(const StepUnits& units, const std::vector<bool>& touched) {
    const double stddev = options_.clip_selection * options_.sigma_selection;
    std::vector<double> map(space_.rows());
    for (const UnitGradient& unit : units) {
      const double norm = std::sqrt(static_cast<double>(unit.rows.size()));
      for (const auto& [row, values] : unit.rows)
        map[row] += std::min(1.0, options_.clip_selection / norm);
    }
    std::vector<bool> kept(space_.rows());
    for (uint64_t row = 0; row < space_.rows(); ++row) {
      double threshold = options_.threshold;
      if (fault_ == Fault::kThresholdByVariance && !touched[row]) threshold /= stddev;
      kept[row] = map[row] + stddev * Normal() >= threshold;
      if (fault_ == Fault::kTouchedDrawnTwice && touched[row])
        kept[row] = kept[row] || stddev * Normal() >= threshold;
    }
    return kept;
  }

  void AddClipped(UnitGradient unit, const std::vector<bool>& kept, Update* update) {
    if (fault_ == Fault::kNoiseInsideClip) {
      for (double& value : unit.dense) value += Noise(true);
      for (auto& [row, values] : unit.rows)
        for (double& value : values) value += Noise(true);
    }
    double squared = 0;
    for (double value : unit.dense) squared += value * value;
    for (const auto& [row, values] : unit.rows)
      if (kept[row] || fault_ == Fault::kClipBeforeMask)
        for (double value : values) squared += value * value;
    const double scale = std::min(1.0, options_.clip_gradient / std::sqrt(squared));
    for (size_t i = 0; i < kDenseSize; ++i) update->dense[i] += scale * unit.dense[i];
    for (const auto& [row, values] : unit.rows) {
      if (!kept[row]) continue;
      for (size_t i = 0; i < values.size(); ++i) update->rows[row][i] += scale * values[i];
    }
  }

  const RowSpace& space_;
  const AdaFestOptions options_;
  const Fault fault_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

model::Activations ActivationsOf(const StepUnits& units);
// A whole step through the seam: Select, the clipped sum as a model forms it, Finalize.
Update RunStep(Mechanism& mechanism, const RowSpace& space, const StepUnits& units,
               noise::NoiseSource& noise);

}  // namespace tacit::mechanism
