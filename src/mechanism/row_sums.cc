#include "mechanism/row_sums.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "mechanism/grid_tail.h"
#include "noise/declared.h"

namespace tacit::mechanism {
namespace {

// Whole steps towards zero.
int64_t StepsTowardsZero(double weight, double scale) {
  return static_cast<int64_t>(weight * scale);
}

// The norm of weights as the product of two numbers: by itself it may be larger than any number.
struct Length {
  double unit = 1, units = 0;
  bool Exceeds(double other) const { return units > other / unit; }
};

// REQUIRES finite weights.
Length LengthOf(std::span<const double> weights) {
  double squares[4] = {};  // so that an addition need not wait for the one before it
  size_t i = 0;
  for (; i + 4 <= weights.size(); i += 4)
    for (size_t k = 0; k < 4; ++k) squares[k] += weights[i + k] * weights[i + k];
  for (; i < weights.size(); ++i) squares[0] += weights[i] * weights[i];
  const double sum = (squares[0] + squares[1]) + (squares[2] + squares[3]);
  if (sum > 1e-200 && sum < 1e200) return {.unit = 1, .units = std::sqrt(sum)};
  double largest = 0, shares = 0;
  for (const double weight : weights) {
    TACIT_CHECK(std::isfinite(weight), "no weight");
    largest = std::max(largest, std::abs(weight));
  }
  if (largest == 0) return {};
  for (const double weight : weights) shares += (weight / largest) * (weight / largest);
  return {.unit = largest, .units = std::sqrt(shares)};
}

// Returns the factor that turns weights of this length into steps: 1 / step, or less, so that the
// norm of the steps is at most `most`. Decided in integers.
double StepsPerUnit(double step, uint64_t most, const Length& length,
                    std::span<const double> weights) {
  if (length.units == 0) return 0;
  const double fitting = static_cast<double>(most) / length.unit / length.units;
  for (double scale = std::min(1 / step, fitting);; scale *= 1 - 0x1p-21) {
    uint64_t steps_squared = 0;
    for (const double weight : weights) {
      const int64_t steps = StepsTowardsZero(weight, scale);
      steps_squared += static_cast<uint64_t>(steps * steps);
    }
    if (steps_squared <= most * most) return scale;
  }
}

Grid GridOf(const RowSumsOptions& options) {
  TACIT_CHECK(options.clip > 0 && std::isfinite(options.clip), "sums need a clip");
  TACIT_CHECK(options.noise_multiplier >= 0 && std::isfinite(options.noise_multiplier));
  // Without noise any grid will do; this is that of a multiplier of 1.
  return MakeHistogramGrid(options.clip,
                           options.noise_multiplier == 0 ? 1 : options.noise_multiplier);
}

// The square of a vector's length, in steps, below which its steps need not be looked at: they are
// cut towards zero, so that only the roundings of the weights can lengthen it.
double ShortSquares(double clip_steps) {
  const double most = std::floor(clip_steps);
  return most * most * (1 - 1e-9);
}

}  // namespace

ReleasedSums::Table ReleasedSums::table(size_t i) const {
  const Part& part = parts_[i];
  const size_t rows = part.end - part.begin;
  Table table;
  table.step_ = step_;
  table.first_ = part.first;
  if (part.whole) {
    table.cells_ = std::span(steps_).subspan(head_ + 2 * part.begin, 2 * rows);
  } else {
    table.rows_ = std::span(rows_).subspan(part.begin, rows);
    table.cells_ = std::span(kept_).subspan(2 * part.begin, 2 * rows);
  }
  return table;
}

ColumnWeights::ColumnWeights(const RowSumsOptions& options, std::span<const double> sums,
                             std::span<const double> counts)
    : step_(GridOf(options).step) {
  TACIT_CHECK(sums.size() == counts.size(), "a sum and a count for each column");
  for (size_t j = 0; j < sums.size(); ++j) {
    sums_.push_back(sums[j] / step_);
    counts_.push_back(counts[j] / step_);
    whole_counts_.push_back(static_cast<int64_t>(counts_[j]));
    sum_squares_ += sums_[j] * sums_[j];
    count_squares_ += counts_[j] * counts_[j];
  }
  TACIT_CHECK(std::isfinite(sum_squares_ + count_squares_), "no weight");
}

RowSums::RowSums(const RowSumsOptions& options, std::span<const SumTable> tables, ReleasedSums last)
    : RowSums(options, tables, std::move(last), std::vector<int64_t>()) {
  sums_ = std::move(last_.steps_);
  sums_.assign(head_ + 2 * whole_places_, 0);
}

RowSums::RowSums(const RowSumsOptions& options, std::span<const SumTable> tables, ReleasedSums last,
                 std::vector<int64_t> sums)
    : options_(options),
      tables_(tables),
      grid_(GridOf(options)),
      short_squares_(ShortSquares(options.clip / grid_.step)),
      head_(static_cast<uint32_t>((options.numbers + 1) / 2 * 2)),
      sums_(std::move(sums)),
      last_(std::move(last)) {
  TACIT_CHECK(std::abs(options.threshold_deviations) < 1e3, "no threshold");
  uint64_t next = 0;
  for (const SumTable& table : tables) {
    TACIT_CHECK(table.first >= next, "tables ascend");
    next = table.first + table.rows;
    first_place_.push_back(static_cast<uint32_t>(whole_places_));
    if (table.every_row) whole_places_ += table.rows;
    TACIT_CHECK(whole_places_ < kReleaseRowsMost, "too many rows for one release");
  }
}

uint32_t RowSums::Touch(uint64_t row) {
  const auto after = std::ranges::upper_bound(tables_, row, {}, &SumTable::first);
  TACIT_CHECK(after != tables_.begin(), "a touched row lies outside all tables");
  const SumTable& table = *std::prev(after);
  TACIT_CHECK(row - table.first < table.rows, "a touched row lies outside all tables");
  TACIT_CHECK(!table.every_row, "the row has a place from the start");
  TACIT_CHECK(places() < kReleaseRowsMost, "too many rows for one release");
  touched_.push_back(row);
  sums_.resize(sums_.size() + 2);
  return static_cast<uint32_t>(places() - 1);
}

bool RowSums::Add(const UnitVector& unit) {
  TACIT_CHECK(unit.size() == sums_.size(), "a unit of another query");
  return Add(unit.cells(), unit.weights());
}

bool RowSums::Add(std::span<const uint32_t> cells, std::span<const double> weights) {
  TACIT_CHECK(cells.size() == weights.size(), "a weight for each cell");
  for (const uint32_t cell : cells) {
    TACIT_CHECK(cell < sums_.size(), "a cell that the query does not have");
    __builtin_prefetch(&sums_[cell], /*rw=*/1);
  }
  const Length length = LengthOf(weights);
  const auto most = static_cast<uint64_t>(options_.clip / grid_.step);
  const double scale = StepsPerUnit(grid_.step, most, length, weights);
  for (size_t i = 0; i < cells.size(); ++i)
    std::atomic_ref(sums_[cells[i]])
        .fetch_add(StepsTowardsZero(weights[i], scale), std::memory_order_relaxed);
  // Roundings in the last digits of a unit of full length are no clipping.
  return length.Exceeds(options_.clip * (1 + 1e-6));
}

bool RowSums::Add(const ColumnWeights& columns, std::span<const uint32_t> places, double factor,
                  std::span<const double> numbers) {
  const size_t n = places.size();
  TACIT_CHECK(columns.size() == n && columns.step_ == grid_.step, "a place for each column");
  TACIT_CHECK(numbers.size() == options_.numbers, "a weight for each number");
  const double per_step = 1 / grid_.step;
  double squares = factor * factor * columns.sum_squares_ + columns.count_squares_;
  for (const double number : numbers) squares += (number * per_step) * (number * per_step);
  if (!(squares < short_squares_)) return AddCells(columns, places, factor, numbers);
  const size_t all = this->places();
  int64_t* const cells = sums_.data() + head_;
  for (size_t j = 0; j < n; ++j) {
    TACIT_CHECK(places[j] < all, "a place that the query does not have");
    int64_t* const cell = cells + size_t{2} * places[j];
    cell[0] += static_cast<int64_t>(columns.sums_[j] * factor);
    cell[1] += columns.whole_counts_[j];
  }
  for (size_t i = 0; i < numbers.size(); ++i) sums_[i] += StepsTowardsZero(numbers[i], per_step);
  return false;
}

bool RowSums::AddCells(const ColumnWeights& columns, std::span<const uint32_t> places,
                       double factor, std::span<const double> numbers) {
  std::vector<uint32_t> cells;
  std::vector<double> weights;
  for (size_t j = 0; j < places.size(); ++j) {
    cells.insert(cells.end(), {SumOf(places[j]), CountOf(places[j])});
    weights.insert(weights.end(), {columns.sum(j) * factor, columns.count(j)});
  }
  for (size_t i = 0; i < numbers.size(); ++i) cells.push_back(Number(i));
  weights.insert(weights.end(), numbers.begin(), numbers.end());
  return Add(cells, weights);
}

size_t RowSums::CountTouched() const {
  size_t touched = 0;
  for (size_t i = head_ + 1; i < sums_.size(); i += 2) touched += sums_[i] != 0;
  return touched;
}

void RowSums::ReleaseAbove(const SumTable& table, std::span<const Touched> touched,
                           noise::NoiseSource& noise, ReleasedSums* out) const {
  const auto threshold =
      static_cast<int64_t>(std::ceil(options_.threshold_deviations * grid_.stddev));
  const double extra_probability = noise::GridGaussianTail(grid_.stddev, threshold);
  std::vector<int64_t> counts;
  for (const Touched& row : touched) counts.push_back(sums_[row.cell + 1]);
  noise.AddGridGaussian(grid_.stddev, counts);

  // Kept rows: of the touched by their counts, of the others by skips over the whole table. Skips
  // that land on touched rows are dropped, because those rows had their own draw.
  struct Kept {
    uint64_t row;
    int64_t sum, count;
  };
  std::vector<Kept> kept;
  for (size_t i = 0; i < touched.size(); ++i)
    if (counts[i] >= threshold) kept.push_back({touched[i].row, sums_[touched[i].cell], counts[i]});
  for (uint64_t i = 0; extra_probability > 0; ++i) {
    const uint64_t skip = noise.GeometricSkip(extra_probability);
    if (i >= table.rows || skip >= table.rows - i) break;
    i += skip;
    if (std::ranges::binary_search(touched, table.first + i, {}, &Touched::row)) continue;
    kept.push_back({table.first + i, 0, GridGaussianAbove(grid_.stddev, threshold, noise)});
  }
  std::ranges::sort(kept, {}, &Kept::row);

  std::vector<int64_t> sums;
  for (const Kept& row : kept) sums.push_back(row.sum);
  noise.AddGridGaussian(grid_.stddev, sums);
  for (size_t i = 0; i < kept.size(); ++i) {
    out->rows_.push_back(kept[i].row);
    out->kept_.insert(out->kept_.end(), {sums[i], kept[i].count});
  }
}

void RowSums::ReleaseExact(std::span<const Touched> touched, ReleasedSums* out) const {
  for (const Touched& row : touched) {
    out->rows_.push_back(row.row);
    out->kept_.insert(out->kept_.end(), {sums_[row.cell], sums_[row.cell + 1]});
  }
}

ReleasedSums RowSums::Release(noise::NoiseSource& noise) && {
  ReleasedSums released = std::move(last_);
  released.parts_.clear();
  released.rows_.clear();
  released.kept_.clear();
  released.numbers_.clear();
  released.head_ = head_;
  released.step_ = grid_.step;
  const bool noisy = options_.noise_multiplier > 0;
  if (noisy) noise.Rekey();

  std::vector<Touched> touched;
  for (size_t i = 0; i < touched_.size(); ++i)
    touched.push_back({touched_[i], SumOf(static_cast<uint32_t>(whole_places_ + i))});
  if (!std::ranges::is_sorted(touched, {}, &Touched::row))
    std::ranges::sort(touched, {}, &Touched::row);
  TACIT_CHECK(std::ranges::adjacent_find(touched, {}, &Touched::row) == touched.end(),
              "a row is touched once");
  std::vector<uint64_t> rows;
  for (const Touched& row : touched) rows.push_back(row.row);
  const noise::Declaration declared(noise, {"sums", options_.clip / grid_.step, {}, rows});
  const auto whole = std::span(sums_).subspan(head_, 2 * whole_places_);
  if (noisy && !whole.empty()) noise.AddGridGaussian(grid_.stddev, whole);
  auto next = touched.begin();
  for (size_t t = 0; t < tables_.size(); ++t) {
    const SumTable& table = tables_[t];
    if (table.every_row) {
      released.parts_.push_back({true, table.first, first_place_[t], first_place_[t] + table.rows});
      continue;
    }
    const auto end =
        std::ranges::lower_bound(next, touched.end(), table.first + table.rows, {}, &Touched::row);
    const size_t before = released.rows_.size();
    noisy ? ReleaseAbove(table, {next, end}, noise, &released)
          : ReleaseExact({next, end}, &released);
    released.parts_.push_back({false, table.first, before, released.rows_.size()});
    next = end;
  }
  const std::span<int64_t> numbers = std::span(sums_).first(options_.numbers);
  if (noisy && !numbers.empty()) noise.AddGridGaussian(grid_.stddev, numbers);
  for (const int64_t number : numbers) released.numbers_.push_back(ValueOf(number));
  // Sums without noise stay here.
  sums_.resize(head_ + 2 * whole_places_);
  released.steps_ = std::exchange(sums_, {});
  return released;
}

privacy::Charge RowSums::charge() const {
  if (options_.noise_multiplier == 0) return {};
  return {.mechanism = privacy::MechanismKind::kSums,
          .noise_multiplier = options_.noise_multiplier,
          .sigma_selection = options_.noise_multiplier,
          .clip_selection = options_.clip};
}

}  // namespace tacit::mechanism
