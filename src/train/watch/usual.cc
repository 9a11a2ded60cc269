#include "train/watch/usual.h"

#include <algorithm>
#include <cmath>

namespace tacit::train {
namespace {

constexpr uint32_t kUsualFrom = 5;   // figures before anything can be unusual
constexpr double kFiguresKept = 16;  // figures that the usual is a mean of
constexpr double kDeviations = 6;    // mean absolute deviations
constexpr uint32_t kAccepted = 60;   // figures outside after which they are what is usual

}  // namespace

void Usual::See(double figure) {
  last_ = figure;
  const double away = std::abs(figure - mean_);
  if (seen_ >= kUsualFrom && away > least_jump_ + kDeviations * deviation_) {
    if (++outside_ < kAccepted) return;
    seen_ = 0;
    deviation_ = 0;
  }
  outside_ = 0;
  ++seen_;
  const double share = 1 / std::min<double>(seen_, kFiguresKept);
  if (seen_ > 1) deviation_ += share * (away - deviation_);
  mean_ += (seen_ == 1 ? 1 : share) * (figure - mean_);
}

}  // namespace tacit::train
