#include "model/transitions/estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace tacit::model::transitions {

template <class Visit>
void Estimate::ForCells(const Visit& visit) const {
  workers_.Run(cells_.items(), [&](size_t begin, size_t end, size_t) {
    for (auto a = static_cast<uint32_t>(begin); a < end; ++a)
      for (uint64_t place = cells_.row_begin(a); place < cells_.row_end[a]; ++place)
        visit(static_cast<uint32_t>(place), a, cells_.column[place]);
  });
}

Estimate::Estimate(const Prior& prior, Cells cells, const Options& options, WorkerPool& workers)
    : prior_(prior),
      cells_(std::move(cells)),
      options_(options),
      workers_(workers),
      posterior_(options.prior_log_deviation),
      expected_(cells_.size()),
      mean_(cells_.size()),
      precision_(cells_.size()) {
  ForCells([&](uint32_t place, uint32_t a, uint32_t b) { expected_[place] = prior_.Of(a, b); });
  weights_ = expected_;
}

float Estimate::Of(uint32_t a, uint32_t b) const {
  const uint32_t place = cells_.Find(a, b);
  return place == Cells::kNone ? Unmeasured(a, b) : weights_[place];
}

void Estimate::Update(uint32_t place) {
  const double expected = kappa_ * expected_[place];
  weights_[place] =
      static_cast<float>(noiseless_ ? std::max(mean_[place], 0.0f)
                                    : posterior_.Mean(expected, mean_[place],
                                                      1 / std::sqrt(double{precision_[place]})));
}

void Estimate::MeasureAll(std::span<const float> sums, double deviation) {
  TACIT_CHECK(sums.size() == cells_.size());
  noiseless_ = deviation == 0;
  const double measured = std::accumulate(sums.begin(), sums.end(), 0.0);
  const double expected = std::accumulate(expected_.begin(), expected_.end(), 0.0);
  // Where noise has drowned the sum, the least that is plainly above 0: one deviation of it.
  const double least = deviation * std::sqrt(static_cast<double>(std::max<size_t>(1, sums.size())));
  // Without noise the cells are all there were, and the others are known to be empty.
  kappa_ = expected > 0 && !noiseless_ ? std::max(measured, least) / expected : 0;
  const auto precision = static_cast<float>(noiseless_ ? 1 : 1 / (deviation * deviation));
  ForCells([&](uint32_t place, uint32_t, uint32_t) {
    mean_[place] = sums[place];
    precision_[place] = precision;
    Update(place);
  });
}

void Estimate::MeasureMore(std::span<const uint32_t> places, std::span<const float> sums,
                           double deviation) {
  TACIT_CHECK(places.size() == sums.size());
  double cross = 0, square = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const double weight = weights_[places[i]];
    cross += weight * sums[i];
    square += weight * weight;
  }
  // Of a measurement that does not even agree in sign nothing can be made.
  if (!(cross > 0 && square > 0)) return;
  const double scale = cross / square;
  const double precision = deviation == 0 ? 1 : scale * scale / (deviation * deviation);
  workers_.Run(places.size(), [&](size_t begin, size_t end, size_t) {
    for (size_t i = begin; i < end; ++i) {
      const uint32_t place = places[i];
      const double before = precision_[place], both = before + precision;
      mean_[place] =
          static_cast<float>((before * mean_[place] + precision * (sums[i] / scale)) / both);
      precision_[place] = static_cast<float>(both);
      Update(place);
    }
  });
}

std::vector<uint32_t> Estimate::Top(uint64_t count) const {
  std::vector<float> score(cells_.size());
  const auto popularity = prior_.popularity();
  std::vector<float> from(popularity.size()), to(popularity.size());
  for (size_t i = 0; i < popularity.size(); ++i) {
    from[i] = static_cast<float>(std::pow(popularity[i], -options_.support_from));
    to[i] = static_cast<float>(std::pow(popularity[i], -options_.support_to));
  }
  ForCells([&](uint32_t place, uint32_t a, uint32_t b) {
    score[place] = weights_[place] * from[a] * to[b];
  });
  std::vector<uint32_t> top(cells_.size());
  std::iota(top.begin(), top.end(), 0u);
  if (top.size() > count) {
    std::nth_element(
        top.begin(), top.begin() + static_cast<ptrdiff_t>(count), top.end(),
        [&](uint32_t x, uint32_t y) { return score[x] != score[y] ? score[x] > score[y] : x < y; });
    top.resize(count);
    std::sort(top.begin(), top.end());
  }
  return top;
}

}  // namespace tacit::model::transitions
