#include "train/counts/transitions_release.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "mechanism/unit_histogram.h"
#include "model/transitions/pairs.h"
#include "model/transitions/rules.h"
#include "privacy/mu.h"

namespace tacit::train {
namespace {

using mechanism::UnitHistogram;
using mechanism::UnitVector;
using model::Histories;
using model::transitions::AddPopularity;
using model::transitions::Among;
using model::transitions::Buckets;
using model::transitions::Cells;
using model::transitions::ForNewPairs;
using model::transitions::kStages;
using model::transitions::Options;
using model::transitions::PopularityShareAt;
using model::transitions::PopularitySpread;
using model::transitions::ReleasedModel;
using model::transitions::ReleasedTable;
using model::transitions::SeenCells;

class Release {
 public:
  Release(const TransitionsPeriod& period, double mu, noise::NoiseSource& noise,
          WorkerPool& workers, ReleasedModel* model)
      : period_(period),
        histories_(period.histories),
        mu_(mu),
        noise_(noise),
        workers_(workers),
        model_(model),
        options_(model->options()),
        popularity_share_(model->PopularityShare()) {}

  Status Check() const;
  TransitionsCharge Run(const TransitionsProgress& progress) &&;

 private:
  bool noiseless() const { return std::isinf(mu_); }
  // The noise deviation of a query that spends this share of mu.
  double Deviation(double share) const {
    return noiseless() ? 0 : privacy::kMuMargin / (share * mu_);
  }
  // A measurement's share of mu: popularity and tables leave mu^2, which the stages divide by their
  // shares.
  double StageShare(size_t stage) const;

  // Runs one query over `cells` cells: unit(u, vector) fills in each unit's vector.
  template <class Unit>
  std::vector<float> Query(size_t cells, double deviation, const Unit& unit);
  // Runs a query that counts each unit's pairs: cell_of(a, b) is the pair's cell, or Cells::kNone.
  template <class CellOf>
  std::vector<float> QueryPairs(size_t cells, double deviation, const CellOf& cell_of);

  std::vector<float> PopularitySums(double share);
  // Looks at popularity once more, if the first look says that it is worth it, and adds what is
  // seen to `sums`.
  void LookAgain(std::span<float> sums);
  void Popularity();
  void Tables();
  void Measure(size_t stage, std::span<const uint32_t> places);
  TransitionsCharge Charged() &&;

  const TransitionsPeriod period_;
  const Histories& histories_;
  const double mu_;
  noise::NoiseSource& noise_;
  WorkerPool& workers_;
  ReleasedModel* const model_;
  const Options& options_;
  double popularity_share_;  // of all looks at it so far
  double tables_spent_ = 0;  // the squares of all tables' shares, once they are looked at
  std::vector<privacy::Charge> queries_;
};

double Release::StageShare(size_t stage) const {
  const double spent = popularity_share_ * popularity_share_ + tables_spent_;
  const double all =
      std::accumulate(options_.stage_shares.begin(), options_.stage_shares.end(), 0.0);
  return std::sqrt((1 - spent) * options_.stage_shares[stage] / all);
}

Status Release::Check() const {
  const auto refuse = [](std::string why) {
    return Fail(ErrorCode::kInvalidArgument, std::move(why));
  };
  const uint32_t items = model_->catalogue().items();
  if (histories_.catalogue != items)
    return refuse(fmt::format("the histories are of a catalogue of {} items, and {} are described",
                              histories_.catalogue, items));
  TACIT_RETURN_IF_ERROR(model::CheckHistories(histories_));
  if (items == 0) return refuse("a catalogue needs items");
  const std::span<const uint32_t> known = period_.known;
  if (!known.empty() && known.size() != histories_.units())
    return refuse(
        fmt::format("`known` has {} entries for {} units", known.size(), histories_.units()));
  for (size_t unit = 0; unit < known.size(); ++unit)
    if (known[unit] > histories_.Of(unit).size())
      return refuse(fmt::format("unit {}: `known` says {} of {} items", unit, known[unit],
                                histories_.Of(unit).size()));
  if (Status mu = privacy::CheckMu(mu_); !mu) return refuse(std::move(mu.error().message));
  if (model_->periods() > 0 && model_->noiseless() != noiseless())
    return refuse("cannot mix noisy and noiseless periods in one model");
  return {};
}

template <class Unit>
std::vector<float> Release::Query(size_t cells, double deviation, const Unit& unit) {
  UnitHistogram histogram(cells, deviation);
  workers_.Run(histories_.units(), [&](size_t begin, size_t end, size_t) {
    UnitVector vector(cells);
    for (size_t u = begin; u < end; ++u) {
      vector.Clear();
      unit(u, vector);
      histogram.Add(vector);
    }
  });
  queries_.push_back(histogram.charge());
  return std::move(histogram).Release(noise_);
}

template <class CellOf>
std::vector<float> Release::QueryPairs(size_t cells, double deviation, const CellOf& cell_of) {
  return Query(cells, deviation, [&](size_t u, UnitVector& vector) {
    ForNewPairs(histories_.Of(u), period_.Known(u), options_.lags, options_.lag_decay,
                [&](uint32_t a, uint32_t b, double weight) {
                  const uint32_t cell = cell_of(a, b);
                  if (cell != Cells::kNone) vector.Add(cell, weight);
                });
  });
}

std::vector<float> Release::PopularitySums(double share) {
  return Query(histories_.catalogue, Deviation(share), [&](size_t u, UnitVector& vector) {
    AddPopularity(histories_.Of(u).subspan(period_.Known(u)), options_.popularity_items, &vector);
  });
}

// Two looks at the same sums, each with the weight of its precision, have the noise of one that
// spends what both do: nothing is lost by looking first how much more is worth while.
void Release::LookAgain(std::span<float> sums) {
  const double first = popularity_share_;
  const double signal = mu_ * std::max(0.0, std::accumulate(sums.begin(), sums.end(), 0.0));
  const double spread = PopularitySpread(sums, Deviation(first));
  const double share = PopularityShareAt(options_, signal, spread, histories_.catalogue,
                                         model_->catalogue().described());
  if (share <= first) return;
  const double second = std::sqrt(share * share - first * first);
  // Not for next to nothing: such noise might leave the grid.
  if (second < options_.table_share) return;
  const std::vector<float> more = PopularitySums(second);
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] =
        static_cast<float>((first * first * sums[i] + second * second * more[i]) / (share * share));
  popularity_share_ = share;
}

void Release::Popularity() {
  std::vector<float> sums = PopularitySums(popularity_share_);
  if (model_->periods() == 0 && !noiseless()) LookAgain(sums);
  model_->AddPopularity(sums, Deviation(popularity_share_), mu_);
}

void Release::Tables() {
  const Buckets& buckets = model_->buckets();
  std::vector<ReleasedTable> tables;
  for (size_t table = 0; table < buckets.tables(); ++table) {
    const double share = model_->TableShare(static_cast<Buckets::Table>(table));
    const double deviation = Deviation(share);
    tables_spent_ += share * share;
    tables.push_back(
        {.sums = QueryPairs(buckets.size(table), deviation,
                            [&](uint32_t a, uint32_t b) { return buckets.Of(table, a, b); }),
         .deviation = deviation});
  }
  model_->AddTables(tables);
}

void Release::Measure(size_t stage, std::span<const uint32_t> places) {
  const Cells cells = Among(model_->estimate().cells(), places);
  const auto sums = QueryPairs(cells.size(), Deviation(StageShare(stage)),
                               [&](uint32_t a, uint32_t b) { return cells.Find(a, b); });
  model_->Measure(stage, places, sums, Deviation(StageShare(stage)));
}

TransitionsCharge Release::Charged() && {
  TransitionsCharge charge{.whole = {}, .queries = std::move(queries_)};
  if (noiseless()) return charge;
  charge.whole = {.mechanism = privacy::MechanismKind::kCounts,
                  .noise_multiplier = 1 / mu_,
                  .sigma_selection = 1 / mu_,
                  .clip_selection = 1};
  TACIT_CHECK(charge.MuSquared() <= charge.whole.MuSquared(), "more was spent than is charged");
  return charge;
}

TransitionsCharge Release::Run(const TransitionsProgress& progress) && {
  const auto tell = [&](double share) {
    if (progress) progress(share);
  };
  Popularity();
  tell(0.1);
  Tables();
  tell(0.4);
  if (noiseless()) {
    Measure(0, model_->ChooseSeen(SeenCells(histories_, options_.lags, period_.known)));
    return std::move(*this).Charged();
  }
  for (size_t stage = 0; stage < kStages; ++stage) {
    Measure(stage, model_->Choose(stage));
    tell(0.6 + 0.4 * static_cast<double>(stage + 1) / kStages);
  }
  return std::move(*this).Charged();
}

}  // namespace

double TransitionsCharge::MuSquared() const {
  double sum = 0;
  for (const privacy::Charge& charge : queries) sum += charge.MuSquared();
  return sum;
}

Result<TransitionsCharge> ReleaseTransitionsPeriod(const TransitionsPeriod& period, double mu,
                                                   noise::NoiseSource& noise, WorkerPool& workers,
                                                   ReleasedModel* model,
                                                   const TransitionsProgress& progress) {
  Release release(period, mu, noise, workers, model);
  TACIT_RETURN_IF_ERROR(release.Check());
  return std::move(release).Run(progress);
}

}  // namespace tacit::train
