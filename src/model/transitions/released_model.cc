#include "model/transitions/released_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "model/transitions/rules.h"

namespace tacit::model::transitions {
namespace {

// Adds the sums of one more period; the noises of periods are independent.
void AddPeriod(std::span<const float> sums, double deviation, double share, ReleasedTable* all) {
  all->sums.resize(sums.size());
  for (size_t i = 0; i < sums.size(); ++i)
    all->sums[i] = static_cast<float>(share * all->sums[i] + sums[i]);
  all->deviation = std::hypot(share * all->deviation, deviation);
}

}  // namespace

ReleasedModel::Fitted::Fitted(const PublicItems& catalogue, std::vector<double> popularity,
                              uint32_t rank_bins)
    : buckets(catalogue, popularity, rank_bins), prior(buckets, std::move(popularity)) {}

ReleasedModel::Fitted::Fitted(const PublicItems& catalogue, std::vector<double> popularity,
                              uint32_t rank_bins, std::vector<std::vector<float>> factors)
    : buckets(catalogue, popularity, rank_bins),
      prior(buckets, std::move(popularity), std::move(factors)) {}

ReleasedModel::ReleasedModel(const PublicItems& catalogue, const Options& options,
                             WorkerPool& workers)
    : catalogue_(&catalogue), options_(options), workers_(&workers) {
  TACIT_CHECK(options.forget >= 0 && options.forget <= 1);
}

namespace {

// The same measurements of more items, item i at places[i].
Measured Moved(const Measured& was, uint32_t items, std::span<const uint32_t> places) {
  Measured moved = was;
  std::vector<uint32_t> from(items, Cells::kNone);  // by place
  for (uint32_t item = 0; item < places.size(); ++item) from[places[item]] = item;
  moved.cells.row_end.assign(items, 0);
  size_t at = 0;
  std::vector<std::pair<uint32_t, uint64_t>> row;  // column, and the cell that it was
  for (uint32_t a = 0; a < items; ++a) {
    row.clear();
    if (from[a] != Cells::kNone)
      for (uint64_t cell = was.cells.row_begin(from[a]); cell < was.cells.row_end[from[a]]; ++cell)
        row.emplace_back(places[was.cells.column[cell]], cell);
    std::ranges::sort(row);
    for (const auto& [column, cell] : row) {
      moved.cells.column[at] = column;
      moved.mean[at] = was.mean[cell];
      moved.precision[at] = was.precision[cell];
      ++at;
    }
    moved.cells.row_end[a] = at;
  }
  return moved;
}

}  // namespace

Result<ReleasedModel> ReleasedModel::Grown(const PublicItems& larger,
                                           std::span<const uint32_t> places) const {
  TACIT_CHECK(next_ == nullptr, "a period is under way");
  TACIT_CHECK(larger.items() >= catalogue_->items(), "a catalogue that only grows");
  std::vector<uint32_t> in_order;
  if (places.empty()) {
    in_order.resize(catalogue_->items());
    std::iota(in_order.begin(), in_order.end(), 0u);
    places = in_order;
  }
  TACIT_CHECK(places.size() == catalogue_->items(), "a place for each item");
  if (larger.described() && catalogue_->described())
    for (uint32_t item = 0; item < places.size(); ++item)
      if (larger.features(places[item]).id != catalogue_->features(item).id)
        return Fail(
            ErrorCode::kRefused,
            "not all ids of the described items are numbers, so that which are akin follows "
            "from their order: leave those that there were in theirs, and add new ones "
            "after them");
  ReleasedModel grown(larger, options_, *workers_);
  grown.periods_ = periods_;
  if (periods_ == 0) return grown;
  grown.signal_ = signal_;
  grown.popularity_ = popularity_;
  grown.popularity_.sums.assign(larger.items(), 0);
  for (size_t item = 0; item < places.size(); ++item)
    grown.popularity_.sums[places[item]] = popularity_.sums[item];
  grown.tables_ = tables_;
  std::vector<double> popularity = grown.Popularity();
  const Buckets buckets(larger, popularity, options_.rank_bins);
  std::vector<std::vector<float>> factors;
  for (size_t table = 0; table < tables_.size(); ++table) {
    if (larger.described() != catalogue_->described() ||
        buckets.size(table) != tables_[table].sums.size())
      return Fail(
          ErrorCode::kRefused,
          "the new items bring a main genre that there was not, or descriptions at all, and "
          "the released tables have no room for it");
    const auto of_table = fitted_->prior.factors(table);
    factors.emplace_back(of_table.begin(), of_table.end());
  }
  Measured measured = Moved(estimate_->measured(), larger.items(), places);
  grown.fitted_ = std::make_unique<Fitted>(larger, std::move(popularity), options_.rank_bins,
                                           std::move(factors));
  grown.estimate_ =
      std::make_unique<Estimate>(grown.fitted_->prior, std::move(measured), options_, *workers_);
  return grown;
}

std::vector<double> ReleasedModel::Popularity() const {
  std::vector<double> popularity;
  popularity.reserve(popularity_.sums.size());
  for (const float sum : popularity_.sums)
    popularity.push_back(std::max({double{sum}, options_.popularity_least,
                                   options_.popularity_deviations * popularity_.deviation}));
  return popularity;
}

void ReleasedModel::AddPopularity(std::span<const float> sums, double deviation, double mu) {
  TACIT_CHECK(sums.size() == catalogue_->items());
  AddPeriod(sums, deviation, options_.forget, &popularity_);
  // The signal of a period's counts is proportional to their precision, so squares add up. Without
  // noise every pair that occurs is counted, and the period adds no signal.
  const double signal =
      std::isinf(mu) ? 0 : mu * std::max(0.0, std::accumulate(sums.begin(), sums.end(), 0.0));
  signal_ = std::hypot(std::sqrt(options_.forget) * signal_, signal);
  next_ = std::make_unique<Fitted>(*catalogue_, Popularity(), options_.rank_bins);
}

void ReleasedModel::AddTables(std::span<const ReleasedTable> tables) {
  TACIT_CHECK(next_ != nullptr && tables.size() == next_->buckets.tables());
  tables_.resize(tables.size());
  for (size_t table = 0; table < tables.size(); ++table) {
    TACIT_CHECK(tables[table].sums.size() == next_->buckets.size(table));
    AddPeriod(tables[table].sums, tables[table].deviation, options_.forget, &tables_[table]);
  }
  next_->prior.Fit(tables_, options_, *workers_);
}

double ReleasedModel::PopularityShare() const {
  if (periods_ == 0) return options_.popularity_share;
  return PopularityShareAt(options_, signal_,
                           PopularitySpread(popularity_.sums, popularity_.deviation),
                           catalogue_->items(), catalogue_->described());
}

double ReleasedModel::TableShare(Buckets::Table table) const {
  return TableShareAt(options_, table, signal_, catalogue_->items());
}

uint64_t ReleasedModel::StageCells(size_t stage) const {
  const double per_part = CellsAt(options_, signal_, catalogue_->items());
  const auto most = static_cast<double>(options_.CellsMost(catalogue_->items()));
  // A catalogue of one item has no pairs.
  return static_cast<uint64_t>(
      std::min(std::max(options_.stage_cells[stage] * per_part, 1.0), most));
}

void ReleasedModel::UseNext() {
  if (estimate_ != nullptr) estimate_->Renew(next_->prior, options_.forget);
  fitted_ = std::move(next_);
}

std::vector<uint32_t> ReleasedModel::Choose(size_t stage) {
  const uint64_t count = StageCells(stage);
  if (stage > 0) return estimate_->Top(count);
  UseNext();
  if (estimate_ == nullptr) {
    estimate_ = std::make_unique<Estimate>(
        fitted_->prior, TopCells(fitted_->prior, count, options_, *workers_), options_, *workers_);
    return estimate_->Top(count);
  }
  // The best of the cells that are not measured are among this many of the prior's.
  const uint64_t most = StageCells(stage) + estimate_->cells().size();
  estimate_->Widen(
      TopCells(fitted_->prior, std::min(most, options_.cells_most), options_, *workers_));
  return estimate_->Narrow(estimate_->Top(count));
}

std::vector<uint32_t> ReleasedModel::ChooseSeen(const Cells& seen) {
  UseNext();
  if (estimate_ == nullptr) {
    estimate_ = std::make_unique<Estimate>(fitted_->prior, seen, options_, *workers_);
    return estimate_->Top(seen.size());
  }
  estimate_->Widen(seen);
  std::vector<uint32_t> places;
  places.reserve(seen.size());
  for (uint32_t a = 0; a < seen.items(); ++a)
    for (const uint32_t b : seen.Row(a)) places.push_back(estimate_->cells().Find(a, b));
  return places;
}

void ReleasedModel::Measure(size_t stage, std::span<const uint32_t> places,
                            std::span<const float> sums, double deviation) {
  if (stage == 0 && periods_ == 0)
    estimate_->MeasureAll(sums, deviation);
  else
    estimate_->MeasureMore(places, sums, deviation);
  if (stage == 0 && periods_ > 0) estimate_->FitKappa();
  if (stage + 1 == kStages || estimate_->measured().noiseless) ++periods_;
}

}  // namespace tacit::model::transitions
