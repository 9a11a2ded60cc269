#include "train/item_histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "mechanism/unit_histogram.h"
#include "model/transitions/pairs.h"
#include "privacy/mu.h"

namespace tacit::train {

ItemHistogram ReleaseItems(const model::Histories& histories, std::span<const uint32_t> known,
                           size_t items_most, double mu, noise::NoiseSource& noise) {
  TACIT_CHECK(known.empty() || known.size() == histories.units());
  const double stddev = std::isinf(mu) ? 0 : privacy::kMuMargin / mu;
  mechanism::UnitHistogram histogram(histories.catalogue, stddev);
  mechanism::UnitVector vector(histories.catalogue);
  for (size_t unit = 0; unit < histories.units(); ++unit) {
    vector.Clear();
    const auto items = histories.Of(unit).subspan(known.empty() ? 0 : known[unit]);
    model::transitions::AddPopularity(items, items_most, &vector);
    histogram.Add(vector);
  }
  const privacy::Charge charge = histogram.charge();
  return {std::move(histogram).Release(noise), stddev, charge};
}

double ShareOfOne(std::span<const float> sums, double units) {
  units = std::max(1.0, units);
  return std::max(1.0, std::accumulate(sums.begin(), sums.end(), 0.0) / units) / units;
}

std::vector<float> ItemShares(std::span<const float> sums, double units) {
  const double one = ShareOfOne(sums, units);
  std::vector<float> shares(sums.size());
  for (size_t item = 0; item < sums.size(); ++item)
    shares[item] = static_cast<float>(std::clamp(sums[item] * one, 0.0, 1.0));
  return shares;
}

void RunningItems::Add(const ItemHistogram& histogram, double units, double forget) {
  TACIT_CHECK(histogram.sums.size() == sums_.size(), "histograms of one catalogue");
  for (size_t item = 0; item < sums_.size(); ++item)
    sums_[item] = static_cast<float>(forget * sums_[item] + histogram.sums[item]);
  variance_ = forget * forget * variance_ + histogram.stddev * histogram.stddev;
  units_ = forget * units_ + units;
}

std::vector<float> RunningItems::Logits() const {
  std::vector<float> logits = Shares();
  const double noise = std::sqrt(variance_) * ShareOfOne(sums_, units_);
  const auto least = static_cast<float>(std::min(1.0, std::max(1 / std::max(1.0, units_), noise)));
  for (float& logit : logits) logit = std::log(std::max(logit, least));
  return logits;
}

}  // namespace tacit::train
