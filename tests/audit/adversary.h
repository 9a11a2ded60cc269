#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "audit/runner.h"
#include "audit/setting.h"

namespace tacit::audit {

// All that leaves one run.
struct View {
  Update before;                  // of a step without the canary, where there is one
  Update update;                  // of the step that the canary may be in
  std::span<const float> counts;  // of a vocabulary's histogram
  double log_clip = 0;            // ln of the clip, after the step
};

// The statistics looked at. Each is large, or small, when the canary was there; the threshold says
// which.
enum Statistic {
  kLikelihood,  // ln of the likelihood ratio of all that is seen, were the mechanism right
  kDifference,  // the update less the one before it, along the canary
  kContrast,    // two coordinates of which the canary moves one
  kSilence,     // the canary's rows that were written without noise
  kFineBits,    // dense numbers that are no multiple of 2^-25 clips
  kStatistics,
};
inline constexpr std::array<const char*, kStatistics> kStatisticNames = {
    "likelihood", "difference", "contrast", "silence", "fine bits"};
using Statistics = std::array<double, kStatistics>;

// The adversary's knowledge of the mechanism.
struct Evidence {
  bool per_layer = false;     // clip: groups equally, or jointly
  double sigma_gradient = 0;  // in units of the clip
  // Log-likelihood ratios: of a canary's row being written and not, of a unit of its count in the
  // histogram, and of a unit of log_clip.
  double written = 0, unwritten = 0, per_count = 0, per_log_clip = 0;
  std::vector<uint64_t> rows = {};  // of the canary, that the selection may be about
};

// Knows everything but whether the canary was there: all gradients, all options.
class Adversary {
 public:
  // REQUIRES that no unit of the background shares a row with the canary, and that only units
  // without rows share dense coordinates with it.
  Adversary(const Setting& setting, const Evidence& evidence);

  Statistics Look(const View& view) const;

 private:
  double GradientLikelihood(const Update& update) const;

  const Evidence evidence_;
  const double clip_, batch_;
  struct Row {
    uint64_t id = 0;
    std::vector<double> gradient;
    double squared = 0;
  };
  std::vector<double> dense_;  // the canary's
  std::vector<Row> rows_;
  std::array<double, kGroups> squared_{};  // without rows
  std::vector<double> background_;         // the dense sum of the others, as far as it matters
};

}  // namespace tacit::audit
