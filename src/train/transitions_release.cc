#include "train/transitions_release.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "mechanism/unit_histogram.h"
#include "model/transitions/pairs.h"

namespace tacit::train {
namespace {

using mechanism::UnitHistogram;
using mechanism::UnitVector;
using model::Histories;
using model::transitions::AddPopularity;
using model::transitions::Buckets;
using model::transitions::Cells;
using model::transitions::Estimate;
using model::transitions::ForPairs;
using model::transitions::kStages;
using model::transitions::Options;
using model::transitions::Prior;
using model::transitions::ReleasedTable;

// What rounding may add when mu^2 is summed up again.
constexpr double kMargin = 1 + 1e-12;

class Release {
 public:
  Release(const Histories& histories, const model::transitions::Catalogue& catalogue,
          const Options& options, double mu, noise::NoiseSource& noise, WorkerPool& workers)
      : histories_(histories),
        catalogue_(catalogue),
        options_(options),
        mu_(mu),
        noise_(noise),
        workers_(workers) {}

  Status Check() const;
  TransitionsRelease Run(const std::function<void(double)>& stage) &&;

 private:
  bool noiseless() const { return std::isinf(mu_); }
  size_t tables() const { return catalogue_.described() ? Buckets::kTablesMost : 1; }
  // The noise of a query that spends this share of mu.
  double Deviation(double share) const { return noiseless() ? 0 : kMargin / (share * mu_); }
  // Of each measurement: all mu^2 that popularity and tables leave, by the stages' shares.
  double StageShare(size_t stage) const;

  // One query over so many cells: unit(u, vector) gives each unit's vector.
  template <class Unit>
  std::vector<float> Query(size_t cells, double deviation, const Unit& unit);

  std::vector<double> Popularity();
  ReleasedTable Table(const Buckets& buckets, size_t table);
  uint64_t FirstCells() const;
  void MeasureAll(Estimate& estimate);
  void MeasureMore(Estimate& estimate, size_t stage);

  const Histories& histories_;
  const model::transitions::Catalogue& catalogue_;
  const Options& options_;
  const double mu_;
  noise::NoiseSource& noise_;
  WorkerPool& workers_;
  double signal_ = 0;          // mu times the noisy sum of popularity
  double cells_per_part_ = 0;  // what stage_cells is a multiple of
  TransitionsRelease out_;
};

double Release::StageShare(size_t stage) const {
  const double spent = options_.popularity_share * options_.popularity_share +
                       static_cast<double>(tables()) * options_.table_share * options_.table_share;
  const double all =
      std::accumulate(options_.stage_shares.begin(), options_.stage_shares.end(), 0.0);
  return std::sqrt((1 - spent) * options_.stage_shares[stage] / all);
}

Status Release::Check() const {
  if (histories_.catalogue != catalogue_.items())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the histories are of a catalogue of {} items, and {} are described",
                            histories_.catalogue, catalogue_.items()));
  TACIT_RETURN_IF_ERROR(model::CheckHistories(histories_));
  if (catalogue_.items() == 0) return Fail(ErrorCode::kInvalidArgument, "a catalogue needs items");
  // Where the grid ends, with room for every share of mu.
  constexpr double kMuLeast = 1e-6, kMuMost = 1e3;
  if (!noiseless() && !(mu_ >= kMuLeast && mu_ <= kMuMost))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("mu {:.4g}: the noise is on a grid that is made for {} to {}", mu_,
                            kMuLeast, kMuMost));
  return {};
}

template <class Unit>
std::vector<float> Release::Query(size_t cells, double deviation, const Unit& unit) {
  UnitHistogram histogram(cells, deviation);
  workers_.Run(histories_.units(), [&](size_t begin, size_t end, size_t) {
    UnitVector vector(cells);
    for (size_t u = begin; u < end; ++u) {
      vector.Clear();
      unit(histories_.Of(u), vector);
      histogram.Add(vector);
    }
  });
  out_.charges.push_back(histogram.charge());
  return std::move(histogram).Release(noise_);
}

std::vector<double> Release::Popularity() {
  const double deviation = Deviation(options_.popularity_share);
  const std::vector<float> released = Query(
      catalogue_.items(), deviation, [&](std::span<const uint32_t> items, UnitVector& vector) {
        AddPopularity(items, options_.popularity_items, &vector);
      });
  signal_ = mu_ * std::max(0.0, std::accumulate(released.begin(), released.end(), 0.0));
  std::vector<double> popularity;
  for (const float value : released)
    popularity.push_back(std::max(
        {double{value}, options_.popularity_least, options_.popularity_deviations * deviation}));
  return popularity;
}

ReleasedTable Release::Table(const Buckets& buckets, size_t table) {
  const double deviation = Deviation(options_.table_share);
  return {.sums = Query(buckets.size(table), deviation,
                        [&](std::span<const uint32_t> items, UnitVector& vector) {
                          ForPairs(items, options_.lags, options_.lag_decay,
                                   [&](uint32_t a, uint32_t b, double weight) {
                                     vector.Add(buckets.Of(table, a, b), weight);
                                   });
                        }),
          .deviation = deviation};
}

uint64_t Release::FirstCells() const {
  const double items = catalogue_.items();
  const double most = std::min(static_cast<double>(options_.cells_most), items * (items - 1));
  // A catalogue of one item has no pairs.
  return static_cast<uint64_t>(
      std::min(std::max(options_.stage_cells[0] * cells_per_part_, 1.0), most));
}

void Release::MeasureAll(Estimate& estimate) {
  const Cells& cells = estimate.cells();
  const double deviation = noiseless() ? 0 : Deviation(StageShare(0));
  estimate.MeasureAll(Query(cells.size(), deviation,
                            [&](std::span<const uint32_t> items, UnitVector& vector) {
                              ForPairs(items, options_.lags, options_.lag_decay,
                                       [&](uint32_t a, uint32_t b, double weight) {
                                         const uint32_t place = cells.Find(a, b);
                                         if (place != Cells::kNone) vector.Add(place, weight);
                                       });
                            }),
                      deviation);
}

void Release::MeasureMore(Estimate& estimate, size_t stage) {
  const Cells& cells = estimate.cells();
  const std::vector<uint32_t> places = estimate.Top(
      static_cast<uint64_t>(std::max(1.0, options_.stage_cells[stage] * cells_per_part_)));
  std::vector<uint32_t> among(cells.size(), Cells::kNone);
  for (uint32_t i = 0; i < places.size(); ++i) among[places[i]] = i;
  const double deviation = Deviation(StageShare(stage));
  const std::vector<float> sums =
      Query(places.size(), deviation, [&](std::span<const uint32_t> items, UnitVector& vector) {
        ForPairs(items, options_.lags, options_.lag_decay,
                 [&](uint32_t a, uint32_t b, double weight) {
                   const uint32_t place = cells.Find(a, b);
                   if (place != Cells::kNone && among[place] != Cells::kNone)
                     vector.Add(among[place], weight);
                 });
      });
  estimate.MeasureMore(places, sums, deviation);
}

TransitionsRelease Release::Run(const std::function<void(double)>& stage) && {
  const auto tell = [&](double share) {
    if (stage) stage(share);
  };
  std::vector<double> popularity = Popularity();
  tell(0.1);
  out_.buckets = std::make_unique<Buckets>(catalogue_, popularity, options_.rank_bins);
  out_.prior = std::make_unique<Prior>(*out_.buckets, std::move(popularity));
  std::vector<ReleasedTable> tables;
  for (size_t table = 0; table < out_.buckets->tables(); ++table)
    tables.push_back(Table(*out_.buckets, table));
  tell(0.2);
  out_.prior->Fit(tables, options_, workers_);
  tell(0.4);
  cells_per_part_ =
      options_.cells_at_signal * std::pow(signal_ / options_.signal_unit, options_.cells_power);
  Cells cells = noiseless()
                    ? model::transitions::SeenCells(histories_, options_.lags)
                    : model::transitions::TopCells(*out_.prior, FirstCells(), options_, workers_);
  out_.estimate = std::make_unique<Estimate>(*out_.prior, std::move(cells), options_, workers_);
  tell(0.6);
  MeasureAll(*out_.estimate);
  for (size_t s = 1; s < kStages && !noiseless(); ++s) {
    tell(0.6 + 0.4 * static_cast<double>(s) / kStages);
    MeasureMore(*out_.estimate, s);
  }
  return std::move(out_);
}

}  // namespace

double TransitionsRelease::MuSquared() const {
  double sum = 0;
  for (const privacy::Charge& charge : charges) sum += charge.MuSquared();
  return sum;
}

Result<TransitionsRelease> ReleaseTransitions(const Histories& histories,
                                              const model::transitions::Catalogue& catalogue,
                                              const Options& options, double mu,
                                              noise::NoiseSource& noise, WorkerPool& workers,
                                              const std::function<void(double)>& stage) {
  Release release(histories, catalogue, options, mu, noise, workers);
  TACIT_RETURN_IF_ERROR(release.Check());
  return std::move(release).Run(stage);
}

}  // namespace tacit::train
