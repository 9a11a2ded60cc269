#include "train/watch/usual.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tacit::train {
namespace {

constexpr uint32_t kUsualFrom = 5;  // figures before anything can be unusual
constexpr double kDeviations = 6;   // mean absolute deviations
constexpr uint32_t kAccepted = 60;  // figures outside after which they are what is usual

}  // namespace

void Usual::See(double figure) {
  last_ = figure;
  const double away = std::abs(figure - mean_);
  if (seen_ >= kUsualFrom && away > least_jump_ + kDeviations * deviation_) {
    if (++outside_ < kAccepted) return;
    seen_ = 0;
  }
  outside_ = 0;
  Keep(figure);
}

void Usual::Keep(double figure) {
  kept_[seen_++ % kFiguresKept] = figure;
  const std::span kept(kept_.data(), std::min<size_t>(seen_, kFiguresKept));
  const auto count = static_cast<double>(kept.size());
  double sum = 0, away = 0;
  for (const double one : kept) sum += one;
  mean_ = sum / count;
  for (const double one : kept) away += std::abs(one - mean_);
  deviation_ = away / count;
}

}  // namespace tacit::train
