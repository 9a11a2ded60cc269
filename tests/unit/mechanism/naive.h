#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "noise/stream_noise.h"
#include "step.h"

// Private updates row by row over the whole id space, in double, straight from the definitions; and
// with the faults that have been made in such mechanisms.
namespace tacit::mechanism {

enum class Fault {
  kNone,
  kThresholdByVariance,    // rows no unit touched: tau / variance instead of tau / deviation
  kUntouchedWithoutNoise,  // rows no unit touched are written without noise
  kTouchedDrawnTwice,      // hits of the skips on touched rows are kept
  kClipBeforeMask,
  kRealisedBatch,    // divides by how many units there were
  kNoiseInsideClip,  // noise is added to each unit before its clip
  kEmptyBatchSilent,
  kOutsideCounted,      // rows outside the vocabulary count in a unit's number of active rows
  kUntouchedOutOfRace,  // rows no unit touched have no chance against touched ones
  kUntouchedNotWritten,
};

// Randomness of the tests' own; normals come many at a time.
class Random {
 public:
  explicit Random(uint64_t seed)
      : engine_(seed),
        normals_(std::make_unique<noise::Keystream>(
            noise::Keystream::Key{static_cast<uint8_t>(seed), 0x5a},
            noise::Keystream::CounterBlock{})) {}
  void FillNormals(std::span<double> out) { normals_.FillGaussian(out); }
  double Normal() {
    if (used_ == sizeof(ready_) / sizeof(double)) {
      FillNormals(ready_);
      used_ = 0;
    }
    return ready_[used_++];
  }
  double Gumbel() { return -std::log(-std::log(uniform_(engine_))); }

 private:
  std::mt19937_64 engine_;
  std::uniform_real_distribution<double> uniform_{std::numeric_limits<double>::min(), 1};
  noise::StreamNoise normals_;
  double ready_[256];
  size_t used_ = 256;
};

// Chooses the rows of the whole space that are written.
using KeepRule = std::function<void(Random& random, std::vector<uint8_t>* kept)>;

struct NaiveOptions {
  double sigma_gradient = 0;
  double clip_gradient = 0;
  double expected_batch = 0;
};

class NaiveStep {
 public:
  // `space` and `units` must outlive it.
  NaiveStep(const RowSpace& space, const StepUnits& units, const NaiveOptions& options,
            KeepRule rule, Fault fault, uint64_t seed)
      : space_(space),
        units_(units),
        options_(options),
        rule_(std::move(rule)),
        fault_(fault),
        random_(seed),
        offset_(space.rows() + 1),
        touched_(space.rows()),
        kept_(space.rows()) {
    for (uint64_t row = 0; row < space.rows(); ++row)
      offset_[row + 1] = offset_[row] + DimOf(space, row);
    for (const UnitGradient& unit : units)
      for (const auto& [row, values] : unit.rows) touched_[row] = 1;
    sums_.resize(offset_.back());
  }

  // Valid until the next call.
  const Update& Step() {
    update_.dense.assign(kDenseSize, 0);
    update_.rows.clear();
    update_.values.clear();
    if (fault_ == Fault::kEmptyBatchSilent && units_.empty()) return update_;
    rule_(random_, &kept_);
    for (const UnitGradient& unit : units_) AddClipped(unit);
    const double divisor = fault_ == Fault::kRealisedBatch
                               ? std::max<double>(1, static_cast<double>(units_.size()))
                               : options_.expected_batch;
    const bool outside = fault_ != Fault::kNoiseInsideClip;
    for (double& value : update_.dense) value = (value + Noise(outside)) / divisor;
    for (uint64_t row = 0; row < space_.rows(); ++row) {
      if (!kept_[row]) continue;
      const bool silent = fault_ == Fault::kUntouchedWithoutNoise && !touched_[row];
      if (fault_ == Fault::kUntouchedNotWritten && !touched_[row]) continue;
      update_.rows.push_back(row);
      for (size_t i = offset_[row]; i < offset_[row + 1]; ++i)
        update_.values.push_back((sums_[i] + Noise(outside && !silent)) / divisor);
    }
    for (const UnitGradient& unit : units_)
      for (const auto& [row, values] : unit.rows)
        for (size_t i = 0; i < values.size(); ++i) sums_[offset_[row] + i] = 0;
    return update_;
  }

 private:
  double Noise(bool wanted) {
    return wanted ? options_.clip_gradient * options_.sigma_gradient * random_.Normal() : 0;
  }

  // Masked to what is kept, then clipped.
  void AddClipped(const UnitGradient& given) {
    UnitGradient noisy;
    if (fault_ == Fault::kNoiseInsideClip) {
      noisy = given;
      for (double& value : noisy.dense) value += Noise(true);
      for (auto& [row, values] : noisy.rows)
        for (double& value : values) value += Noise(true);
    }
    const UnitGradient& unit = fault_ == Fault::kNoiseInsideClip ? noisy : given;
    double squared = 0;
    for (double value : unit.dense) squared += value * value;
    for (const auto& [row, values] : unit.rows)
      if (kept_[row] || fault_ == Fault::kClipBeforeMask)
        for (double value : values) squared += value * value;
    const double scale = std::min(1.0, options_.clip_gradient / std::sqrt(squared));
    for (size_t i = 0; i < unit.dense.size(); ++i) update_.dense[i] += scale * unit.dense[i];
    for (const auto& [row, values] : unit.rows)
      for (size_t i = 0; i < values.size(); ++i) sums_[offset_[row] + i] += scale * values[i];
  }

  const RowSpace& space_;
  const StepUnits& units_;
  const NaiveOptions options_;
  const KeepRule rule_;
  const Fault fault_;
  Random random_;
  std::vector<size_t> offset_;
  std::vector<uint8_t> touched_, kept_;
  std::vector<double> sums_;
  Update update_;
};

}  // namespace tacit::mechanism
