#include "model/ranking/ranker.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/hash.h"

namespace tacit::model::ranking {
namespace {

// The offsets of V, c and o.
constexpr size_t kV = kFeatures, kC = kV + kFeatures * kHidden, kO = kC + kHidden;
// The initial weight of kScore in a: features have deviation 1, and scores of counts are about that
// much too flat for a softmax.
constexpr float kScoreWeight = 2;

// The score of an item that is no candidate. Counts are never below 0, so these are in [-1, 0).
float BelowRanked(float counted) { return -1 / (1 + counted); }

}  // namespace

std::vector<float> InitialRanker(uint64_t seed) {
  std::vector<float> parameters(kRankerParameters);
  parameters[size_t{kScore}] = kScoreWeight;
  // Uniform with the variance of 1 / kFeatures.
  InitialRow(seed, 0, std::sqrt(3.0f / static_cast<float>(kFeatures)),
             std::span(parameters).subspan(kV, kFeatures * kHidden));
  return parameters;
}

std::span<const float> RankerPass::Score(std::span<const float> parameters,
                                         std::span<const float> rows) {
  TACIT_CHECK(parameters.size() == kRankerParameters && rows.size() % kFeatures == 0);
  const size_t count = rows.size() / kFeatures;
  z_.resize(count);
  hidden_.resize(count * kHidden);
  const float *a = parameters.data(), *v = a + kV, *c = a + kC, *o = a + kO;
  for (size_t i = 0; i < count; ++i) {
    const float* x = &rows[i * kFeatures];
    float h[kHidden], z = 0;
    for (size_t k = 0; k < kHidden; ++k) h[k] = c[k];
    for (size_t f = 0; f < kFeatures; ++f) {
#pragma omp simd
      for (size_t k = 0; k < kHidden; ++k) h[k] += x[f] * v[f * kHidden + k];
    }
#pragma omp simd reduction(+ : z)
    for (size_t f = 0; f < kFeatures; ++f) z += a[f] * x[f];
#pragma omp simd reduction(+ : z)
    for (size_t k = 0; k < kHidden; ++k) {
      h[k] = std::max(0.0f, h[k]);
      z += o[k] * h[k];
    }
    std::copy_n(h, kHidden, &hidden_[i * kHidden]);
    z_[i] = z;
  }
  return z_;
}

double RankerPass::AddGradient(std::span<const float> parameters, std::span<const float> rows,
                               size_t answer, double q, std::span<float> gradient) {
  const size_t count = rows.size() / kFeatures;
  TACIT_CHECK(answer < count && gradient.size() == kRankerParameters && q > 0 && q <= 1);
  Score(parameters, rows);
  const float most = *std::ranges::max_element(z_);
  double all = 0;
  for (float& z : z_) all += z = std::exp(z - most);
  const double p = z_[answer] / all, pull = std::pow(p, q);
  const float* o = parameters.data() + kO;
  float *ga = gradient.data(), *gv = ga + kV, *gc = ga + kC, *go = ga + kO;
  for (size_t i = 0; i < count; ++i) {
    const auto d = static_cast<float>(pull * (z_[i] / all - (i == answer ? 1.0 : 0.0)));
    const float* x = &rows[i * kFeatures];
    const float* h = &hidden_[i * kHidden];
    float dh[kHidden];
#pragma omp simd
    for (size_t k = 0; k < kHidden; ++k) {
      go[k] += d * h[k];
      dh[k] = h[k] > 0 ? d * o[k] : 0;
      gc[k] += dh[k];
    }
#pragma omp simd
    for (size_t f = 0; f < kFeatures; ++f) ga[f] += d * x[f];
    for (size_t f = 0; f < kFeatures; ++f) {
#pragma omp simd
      for (size_t k = 0; k < kHidden; ++k) gv[f * kHidden + k] += x[f] * dh[k];
    }
  }
  return (1 - pull) / q;
}

void ScoreRanked(const CandidateSource& source, std::span<const float> parameters, size_t most,
                 std::span<const uint32_t> history, std::span<float> scores) {
  Candidates candidates;
  source.Find(history, most, &candidates);
  if (candidates.scores.empty())
    source.counts().Score(history, scores);
  else
    std::ranges::copy(candidates.scores, scores.begin());
  for (float& score : scores) score = BelowRanked(score);
  RankerPass pass;
  const auto order = pass.Score(parameters, candidates.rows);
  if (order.empty()) return;
  const float least = *std::ranges::min_element(order);
  for (size_t i = 0; i < order.size(); ++i) scores[candidates.items[i]] = 1 + (order[i] - least);
}

void TopRanked(const CandidateSource& source, std::span<const float> parameters, size_t most,
               std::span<const uint32_t> history, size_t count, std::span<const uint8_t> left_out,
               Candidates* candidates, RankerPass* pass,
               std::vector<transitions::ScoredItem>* top) {
  top->clear();
  source.Find(history, most, candidates, left_out);
  const auto order = pass->Score(parameters, candidates->rows);
  if (order.empty()) return;
  const float least = *std::ranges::min_element(order);
  for (size_t i = 0; i < order.size(); ++i)
    top->push_back({candidates->items[i], 1 + (order[i] - least)});
  std::ranges::sort(*top, [](const auto& a, const auto& b) {
    return a.score != b.score ? a.score > b.score : a.item < b.item;
  });
  if (top->size() >= count) return top->resize(count);
  if (top->size() < most) return;  // there are no others

  // The rest is in the counts' order.
  std::vector<uint8_t> taken(left_out.begin(), left_out.end());
  taken.resize(source.items());
  for (const uint32_t item : history) taken[item] = 1;
  for (const auto& ranked : *top) taken[ranked.item] = 1;
  auto& rest = candidates->top;
  source.counts().Top(history, count - top->size(), taken, &candidates->memory, &rest);
  for (const auto& [item, score] : rest) top->push_back({item, BelowRanked(score)});
}

}  // namespace tacit::model::ranking
