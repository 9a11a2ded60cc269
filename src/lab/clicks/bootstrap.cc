#include "lab/clicks/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/hash.h"

namespace tacit::lab {
namespace {

constexpr size_t kDraws = 1 << 16;

// The quantile function of Poisson(1) at (i + 1/2) / 2^16, accurate to 2^-17 in every probability.
std::vector<uint8_t> PoissonTable() {
  std::vector<uint8_t> table(kDraws);
  double probability = std::exp(-1.0), below = probability;
  uint8_t weight = 0;
  for (size_t i = 0; i < kDraws; ++i) {
    const double u = (static_cast<double>(i) + 0.5) / kDraws;
    while (u > below && weight < 20) below += probability /= ++weight;
    table[i] = weight;
  }
  return table;
}

float Rank(float score) { return std::isnan(score) ? -INFINITY : score; }

}  // namespace

PairedBootstrap::PairedBootstrap(std::span<const float> labels, uint32_t resamples, uint64_t seed)
    : labels_(labels),
      resamples_(resamples),
      seed_(seed),
      poisson_(PoissonTable()),
      weight_(labels.size()) {}

void PairedBootstrap::Weigh(uint32_t resample) {
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(seed_),
                                    static_cast<uint32_t>(seed_ >> 32)};
  for (size_t i = 0; i < weight_.size(); i += 8) {
    const auto bits = Philox(
        {static_cast<uint32_t>(i / 8), static_cast<uint32_t>(i >> 35), resample, 0x626f6f74}, key);
    for (size_t j = 0; j < std::min<size_t>(8, weight_.size() - i); ++j)
      weight_[i + j] = poisson_[bits[j / 2] >> (j % 2 * 16) & (kDraws - 1)];
  }
}

std::vector<double> PairedBootstrap::Aucs(std::span<const float> logits) {
  TACIT_CHECK(logits.size() == labels_.size(), "one logit per event");
  std::vector<uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return Rank(logits[a]) < Rank(logits[b]); });
  std::vector<uint8_t> ends_tie(order.size()), positive(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    ends_tie[i] = i + 1 == order.size() || Rank(logits[order[i]]) != Rank(logits[order[i + 1]]);
    positive[i] = labels_[order[i]] > 0.5f;
  }
  std::vector<double> aucs;
  for (uint32_t resample = 0; resample < resamples_; ++resample) {
    Weigh(resample);
    // Sums of whole numbers and halves: exact below 2^52 pairs.
    double wins = 0;
    uint64_t positives = 0, negatives = 0, tied[2] = {0, 0};
    for (size_t i = 0; i < order.size(); ++i) {
      tied[positive[i]] += weight_[order[i]];
      if (!ends_tie[i]) continue;
      wins += static_cast<double>(tied[1]) *
              (static_cast<double>(negatives) + static_cast<double>(tied[0]) / 2);
      positives += tied[1];
      negatives += tied[0];
      tied[0] = tied[1] = 0;
    }
    const double pairs = static_cast<double>(positives) * static_cast<double>(negatives);
    aucs.push_back(pairs == 0 ? 0.5 : wins / pairs);
  }
  return aucs;
}

Resampled MiddleOf(double observed, std::vector<double> difference) {
  if (difference.empty()) return {observed, observed, observed};
  std::sort(difference.begin(), difference.end());
  const auto quantile = [&](double share) {
    const double place = share * static_cast<double>(difference.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, difference.size() - 1);
    return difference[below] +
           (place - static_cast<double>(below)) * (difference[above] - difference[below]);
  };
  return {observed, quantile(0.025), quantile(0.975)};
}

}  // namespace tacit::lab
