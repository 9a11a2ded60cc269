#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/interval.h"
#include "base/result.h"

// Histograms of predictions by what came of them, and the figures that follow from them. Counts may
// carry noise, and are numbers then.
namespace tacit {

// The bins of predictions: of equal width in log-odds from -8 to 8, the outer ones open. They are
// public, and follow from their number alone. A value.
class ScoreBins {
 public:
  // REQUIRES at least one.
  explicit ScoreBins(uint32_t bins) : bins_(bins) {}

  uint32_t size() const { return bins_; }
  // The bin of a prediction; NaN counts as the lowest.
  uint32_t Of(float logit) const {
    const double place = (static_cast<double>(logit) + kMost) / width();
    if (!(place > 0)) return 0;
    return place >= bins_ ? bins_ - 1 : static_cast<uint32_t>(place);
  }
  double width() const { return 2 * kMost / bins_; }
  // A bin's middle in log-odds, and its probability, which stand for the bin's predictions.
  double Middle(uint32_t bin) const { return (bin + .5) * width() - kMost; }
  double Probability(uint32_t bin) const { return 1 / (1 + std::exp(-Middle(bin))); }

 private:
  static constexpr double kMost = 8;
  uint32_t bins_;
};

// The figures of a histogram. They are NaN where the noise leaves nothing to say.
struct ScoreFigures {
  double events = 0, clicks = 0;
  double auc = NAN, auc_deviation = NAN;                  // deviations are of the noise alone
  Interval auc_interval = {};                             // of the noise, and of which records came
  double calibration = NAN, calibration_deviation = NAN;  // clicks predicted over clicks
};

// Figures of counts by bin, each with noise of this deviation: AUC with half of each bin's pairs
// won, and calibration with all of a bin's predictions in its middle. REQUIRES as many counts of
// each label as there are bins.
ScoreFigures FiguresOf(const ScoreBins& bins, std::span<const double> misses,
                       std::span<const double> clicks, double deviation);

// Noised counts of predictions, as they are released: of the last window, and of all windows with
// the same bins together. A value.
struct ReleasedScores {
  struct Counts {
    uint64_t windows = 0;
    double variance = 0;  // of each count's noise
    std::vector<double> misses, clicks;

    ScoreFigures Figures() const;
    void Add(const Counts& more);
  };
  uint64_t step_begin = 0, step_end = 0;  // the last window's steps
  Counts last, all;

  std::string Encode() const;
  // kCorruption for bytes that are none.
  static Result<ReleasedScores> Decode(std::string_view bytes);
};

}  // namespace tacit
