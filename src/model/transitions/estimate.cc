#include "model/transitions/estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "model/transitions/score_bins.h"

namespace tacit::model::transitions {
namespace {

Measured Nothing(Cells cells) {
  const size_t size = cells.size();
  return {.cells = std::move(cells),
          .mean = std::vector<float>(size),
          .precision = std::vector<float>(size)};
}

struct ScoredPlace {
  float score = 0;
  uint32_t place = 0;
  // Orders larger scores first, of equals the earlier place.
  friend bool operator<(const ScoredPlace& x, const ScoredPlace& y) {
    return x.score != y.score ? x.score > y.score : x.place < y.place;
  }
};

// Returns the last of the `count` places that come first, of more than that. Only those in its bin
// of scores are put in order. REQUIRES a count above 0, and scores that are not below it.
ScoredPlace PlaceInOrder(std::span<const float> score, uint64_t count, WorkerPool& workers) {
  std::vector<std::vector<uint64_t>> parts(workers.workers(), std::vector<uint64_t>(kScoreBins));
  workers.Run(score.size(), [&](size_t begin, size_t end, size_t worker) {
    for (size_t i = begin; i < end; ++i) ++parts[worker][ScoreBin(score[i])];
  });
  uint64_t above = 0, in_bin = 0;  // places in the bins above `bin`, and in it
  size_t bin = kScoreBins;
  do {
    above += in_bin;
    in_bin = 0;
    --bin;
    for (const auto& part : parts) in_bin += part[bin];
  } while (above + in_bin < count);
  std::vector<ScoredPlace> of_bin;
  of_bin.reserve(in_bin);
  for (uint32_t place = 0; place < score.size(); ++place)
    if (ScoreBin(score[place]) == bin) of_bin.push_back({score[place], place});
  const auto last = of_bin.begin() + static_cast<ptrdiff_t>(count - above - 1);
  std::nth_element(of_bin.begin(), last, of_bin.end());
  return *last;
}

}  // namespace

template <class Visit>
void Estimate::ForCells(const Visit& visit) const {
  const Cells& cells = measured_.cells;
  workers_.Run(cells.items(), [&](size_t begin, size_t end, size_t) {
    for (auto a = static_cast<uint32_t>(begin); a < end; ++a)
      for (uint64_t place = cells.row_begin(a); place < cells.row_end[a]; ++place)
        visit(static_cast<uint32_t>(place), a, cells.column[place]);
  });
}

Estimate::Estimate(const Prior& prior, Cells cells, const Options& options, WorkerPool& workers)
    : Estimate(prior, Nothing(std::move(cells)), options, workers) {}

Estimate::Estimate(const Prior& prior, Measured measured, const Options& options,
                   WorkerPool& workers)
    : prior_(&prior),
      options_(options),
      workers_(workers),
      posterior_(options.prior_log_deviation),
      measured_(std::move(measured)) {
  TACIT_CHECK(cells().items() == prior.items());
  TACIT_CHECK(measured_.mean.size() == cells().size() &&
              measured_.precision.size() == cells().size());
  Expect();
  UpdateAll();
}

float Estimate::Of(uint32_t a, uint32_t b) const {
  const uint32_t place = cells().Find(a, b);
  return place == Cells::kNone ? Unmeasured(a, b) : weights_[place];
}

void Estimate::Expect() {
  expected_.resize(cells().size());
  ForCells([&](uint32_t place, uint32_t a, uint32_t b) { expected_[place] = prior_->Of(a, b); });
}

void Estimate::Update(uint32_t place) {
  const double expected = kappa() * expected_[place];
  const float mean = measured_.mean[place], precision = measured_.precision[place];
  weights_[place] = static_cast<float>(
      measured_.noiseless ? std::max(mean, 0.0f)
      : precision == 0    ? expected
                          : posterior_.Mean(expected, mean, 1 / std::sqrt(double{precision})));
}

void Estimate::UpdateAll() {
  weights_.resize(cells().size());
  ForCells([&](uint32_t place, uint32_t, uint32_t) { Update(place); });
}

void Estimate::MeasureAll(std::span<const float> sums, double deviation) {
  TACIT_CHECK(sums.size() == cells().size());
  measured_.noiseless = deviation == 0;
  const bool noiseless = measured_.noiseless;
  const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
  const double expected = std::accumulate(expected_.begin(), expected_.end(), 0.0);
  // If noise has drowned the sum, takes the least that is plainly above 0: one deviation of it.
  const double least = deviation * std::sqrt(static_cast<double>(std::max<size_t>(1, sums.size())));
  // Without noise the cells are all that occurred, and the others are known to be empty.
  measured_.kappa = expected > 0 && !noiseless ? std::max(total, least) / expected : 0;
  std::ranges::copy(sums, measured_.mean.begin());
  std::ranges::fill(measured_.precision,
                    static_cast<float>(noiseless ? 1 : 1 / (deviation * deviation)));
  UpdateAll();
}

void Estimate::MeasureMore(std::span<const uint32_t> places, std::span<const float> sums,
                           double deviation) {
  TACIT_CHECK(places.size() == sums.size());
  TACIT_CHECK(measured_.noiseless == (deviation == 0), "sums with noise and without");
  if (measured_.noiseless) return Add(places, sums);
  double cross = 0, square = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const double weight = weights_[places[i]];
    cross += weight * sums[i];
    square += weight * weight;
  }
  // A measurement that does not even agree in sign is useless.
  if (!(cross > 0 && square > 0)) return;
  const double scale = cross / square;
  const double precision = scale * scale / (deviation * deviation);
  workers_.Run(places.size(), [&](size_t begin, size_t end, size_t) {
    for (size_t i = begin; i < end; ++i) {
      const uint32_t place = places[i];
      float& mean = measured_.mean[place];
      const double before = measured_.precision[place], both = before + precision;
      mean = static_cast<float>((before * mean + precision * (sums[i] / scale)) / both);
      measured_.precision[place] = static_cast<float>(both);
      Update(place);
    }
  });
}

void Estimate::Add(std::span<const uint32_t> places, std::span<const float> sums) {
  for (size_t i = 0; i < places.size(); ++i) {
    measured_.mean[places[i]] += sums[i];
    measured_.precision[places[i]] = 1;
    Update(places[i]);
  }
}

void Estimate::Renew(const Prior& prior, double share) {
  TACIT_CHECK(prior.items() == cells().items() && share >= 0 && share <= 1);
  prior_ = &prior;
  Expect();
  // Sums without noise count by their size, and means by their precision.
  for (float& value : measured_.noiseless ? measured_.mean : measured_.precision)
    value *= static_cast<float>(share);
  FitKappa();
}

void Estimate::FitKappa() {
  double weight = 0, expected = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (measured_.precision[i] == 0) continue;
    weight += weights_[i];
    expected += expected_[i];
  }
  if (!measured_.noiseless && weight > 0 && expected > 0) measured_.kappa = weight / expected;
  UpdateAll();
}

void Estimate::Widen(const Cells& more) {
  Measured wide = Nothing(Union(cells(), more));
  for (uint32_t a = 0; a < cells().items(); ++a) {
    uint64_t at = wide.cells.row_begin(a);
    for (uint64_t place = cells().row_begin(a); place < cells().row_end[a]; ++place, ++at) {
      while (wide.cells.column[at] != cells().column[place]) ++at;
      wide.mean[at] = measured_.mean[place];
      wide.precision[at] = measured_.precision[place];
    }
  }
  wide.kappa = measured_.kappa;
  wide.noiseless = measured_.noiseless;
  measured_ = std::move(wide);
  Expect();
  UpdateAll();
}

std::vector<uint32_t> Estimate::Narrow(std::span<const uint32_t> places) {
  std::vector<uint32_t> kept;
  for (uint32_t place = 0, next = 0; place < cells().size(); ++place) {
    const bool chosen = next < places.size() && places[next] == place;
    if (chosen) ++next;
    if (chosen || measured_.precision[place] > 0) kept.push_back(place);
  }
  if (kept.size() > options_.cells_most) {
    std::vector<uint32_t> best;
    std::ranges::set_intersection(kept, Top(options_.cells_most), std::back_inserter(best));
    kept = std::move(best);
  }
  std::vector<uint32_t> now;
  for (size_t i = 0, next = 0; i < kept.size(); ++i) {
    const uint32_t place = kept[i];
    measured_.mean[i] = measured_.mean[place];
    measured_.precision[i] = measured_.precision[place];
    expected_[i] = expected_[place];
    weights_[i] = weights_[place];
    while (next < places.size() && places[next] < place) ++next;
    if (next < places.size() && places[next] == place) now.push_back(static_cast<uint32_t>(i));
  }
  for (auto* values : {&measured_.mean, &measured_.precision, &expected_, &weights_})
    values->resize(kept.size());
  measured_.cells = Among(cells(), kept);
  return now;
}

std::vector<uint32_t> Estimate::Top(uint64_t count) const {
  std::vector<float> score(cells().size());
  const auto popularity = prior_->popularity();
  std::vector<float> from(popularity.size()), to(popularity.size());
  for (size_t i = 0; i < popularity.size(); ++i) {
    from[i] = static_cast<float>(std::pow(popularity[i], -options_.support_from));
    to[i] = static_cast<float>(std::pow(popularity[i], -options_.support_to));
  }
  ForCells([&](uint32_t place, uint32_t a, uint32_t b) {
    score[place] = weights_[place] * from[a] * to[b];
  });
  std::vector<uint32_t> top;
  if (count == 0) return top;
  if (score.size() <= count) {
    top.resize(score.size());
    std::iota(top.begin(), top.end(), 0u);
    return top;
  }
  const ScoredPlace last = PlaceInOrder(score, count, workers_);
  top.reserve(count);
  for (uint32_t place = 0; place < score.size(); ++place)
    if (!(last < ScoredPlace{score[place], place})) top.push_back(place);
  return top;
}

}  // namespace tacit::model::transitions
