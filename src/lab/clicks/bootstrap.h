#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tacit::lab {

// Paired bootstrap over events (Poisson weights of mean 1, which match the multinomial's for many
// events). Resample r gives each event the same weight in every run, so that what two runs have in
// common cancels in their difference. The same seed gives the same resamples. Not thread-safe.
class PairedBootstrap {
 public:
  // `labels` must outlive it; a label above 1/2 is positive.
  PairedBootstrap(std::span<const float> labels, uint32_t resamples, uint64_t seed);

  uint32_t resamples() const { return resamples_; }
  // The AUC of these logits, one per event, in each resample; ties count half. O(n log n) once,
  // then O(n) per resample.
  std::vector<double> Aucs(std::span<const float> logits);

 private:
  void Weigh(uint32_t resample);

  const std::span<const float> labels_;
  const uint32_t resamples_;
  const uint64_t seed_;
  std::vector<uint8_t> poisson_;  // weight by 16 random bits
  std::vector<uint8_t> weight_;   // per event, in the resample at hand
};

// The middle 95 % of the resamples around the observed value.
struct Resampled {
  double mean = 0, low = 0, high = 0;
};
// `difference` has one value per resample. `observed` is returned unchanged as the mean.
Resampled MiddleOf(double observed, std::vector<double> difference);

}  // namespace tacit::lab
