#include "mechanism/row_sums.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "mechanism/grid_tail.h"

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

}  // namespace

void ReleasedSums::Clear() {
  rows.clear();
  sums.clear();
  counts.clear();
  numbers.clear();
}

RowSums::RowSums(const RowSumsOptions& options, std::span<const SumTable> tables,
                 std::span<const uint64_t> touched)
    : options_(options),
      tables_(tables),
      touched_(touched),
      grid_(GridOf(options)),
      sums_(2 * touched.size() + options.numbers) {
  TACIT_CHECK(std::abs(options.threshold_deviations) < 1e3, "no threshold");
  TACIT_CHECK(touched.size() < size_t{1} << 30, "too many rows for one release");
  TACIT_CHECK(
      std::adjacent_find(touched.begin(), touched.end(), std::greater_equal<>()) == touched.end(),
      "touched rows ascend");
  size_t inside = 0;
  uint64_t next = 0;
  for (const SumTable& table : tables) {
    TACIT_CHECK(table.first >= next, "tables ascend");
    next = table.first + table.rows;
    const Range range = TouchedIn(table);
    inside += range.end - range.begin;
  }
  TACIT_CHECK(inside == touched.size(), "a touched row lies outside all tables");
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

RowSums::Range RowSums::TouchedIn(const SumTable& table) const {
  const auto place = [&](uint64_t row) {
    return static_cast<size_t>(std::lower_bound(touched_.begin(), touched_.end(), row) -
                               touched_.begin());
  };
  return {place(table.first), place(table.first + table.rows)};
}

void RowSums::ReleaseEvery(const SumTable& table, noise::NoiseSource& noise,
                           ReleasedSums* out) const {
  constexpr size_t kBlock = 1024;  // rows whose steps stay in a core's cache
  const Range range = TouchedIn(table);
  const size_t before = out->rows.size();
  out->rows.resize(before + table.rows);
  out->sums.resize(before + table.rows);
  out->counts.resize(before + table.rows);
  noise.ForParts(table.rows, [&](size_t part, size_t end, noise::NoiseSource& source) {
    std::array<int64_t, 2 * kBlock> steps;
    const auto touched = touched_.subspan(range.begin, range.end - range.begin);
    size_t place =
        range.begin + static_cast<size_t>(std::ranges::lower_bound(touched, table.first + part) -
                                          touched.begin());
    for (size_t begin = part; begin < end; begin += kBlock) {
      const auto block = std::span(steps).first(2 * std::min(kBlock, end - begin));
      std::ranges::fill(block, 0);
      const uint64_t first = table.first + begin, last = first + block.size() / 2;
      for (; place < range.end && touched_[place] < last; ++place) {
        const size_t at = 2 * (touched_[place] - first);
        block[at] = sums_[2 * place];
        block[at + 1] = sums_[2 * place + 1];
      }
      source.AddGridGaussian(grid_.stddev, block);
      for (size_t i = 0; i < block.size() / 2; ++i) {
        out->rows[before + begin + i] = first + i;
        out->sums[before + begin + i] = ValueOf(block[2 * i]);
        out->counts[before + begin + i] = ValueOf(block[2 * i + 1]);
      }
    }
  });
}

void RowSums::ReleaseAbove(const SumTable& table, noise::NoiseSource& noise,
                           ReleasedSums* out) const {
  const auto threshold =
      static_cast<int64_t>(std::ceil(options_.threshold_deviations * grid_.stddev));
  const double extra_probability = noise::GridGaussianTail(grid_.stddev, threshold);
  const Range range = TouchedIn(table);
  std::vector<int64_t> counts;
  for (size_t place = range.begin; place < range.end; ++place)
    counts.push_back(sums_[2 * place + 1]);
  noise.AddGridGaussian(grid_.stddev, counts);

  // Kept rows: of the touched by their counts, of the others by skips over the whole table. Skips
  // that land on touched rows are dropped, because those rows had their own draw.
  struct Kept {
    uint64_t row;
    int64_t sum, count;
  };
  std::vector<Kept> kept;
  for (size_t place = range.begin; place < range.end; ++place)
    if (const int64_t count = counts[place - range.begin]; count >= threshold)
      kept.push_back({touched_[place], sums_[2 * place], count});
  const auto touched = touched_.subspan(range.begin, range.end - range.begin);
  for (uint64_t i = 0; extra_probability > 0; ++i) {
    const uint64_t skip = noise.GeometricSkip(extra_probability);
    if (i >= table.rows || skip >= table.rows - i) break;
    i += skip;
    if (std::ranges::binary_search(touched, table.first + i)) continue;
    kept.push_back({table.first + i, 0, GridGaussianAbove(grid_.stddev, threshold, noise)});
  }
  std::ranges::sort(kept, {}, &Kept::row);

  std::vector<int64_t> sums;
  for (const Kept& row : kept) sums.push_back(row.sum);
  noise.AddGridGaussian(grid_.stddev, sums);
  for (size_t i = 0; i < kept.size(); ++i) {
    out->rows.push_back(kept[i].row);
    out->sums.push_back(ValueOf(sums[i]));
    out->counts.push_back(ValueOf(kept[i].count));
  }
}

void RowSums::ReleaseExact(const SumTable& table, ReleasedSums* out) const {
  const Range range = TouchedIn(table);
  for (size_t place = range.begin; place < range.end; ++place) {
    out->rows.push_back(touched_[place]);
    out->sums.push_back(ValueOf(sums_[2 * place]));
    out->counts.push_back(ValueOf(sums_[2 * place + 1]));
  }
}

ReleasedSums RowSums::Release(noise::NoiseSource& noise, ReleasedSums last) && {
  ReleasedSums released = std::move(last);
  released.Clear();
  const bool noisy = options_.noise_multiplier > 0;
  if (noisy) noise.Rekey();
  for (const SumTable& table : tables_) {
    if (!noisy) {
      ReleaseExact(table, &released);
    } else if (table.every_row) {
      ReleaseEvery(table, noise, &released);
    } else {
      ReleaseAbove(table, noise, &released);
    }
  }
  const std::span<int64_t> numbers = std::span(sums_).subspan(2 * touched_.size());
  if (noisy) noise.AddGridGaussian(grid_.stddev, numbers);
  for (const int64_t number : numbers) released.numbers.push_back(ValueOf(number));
  sums_ = {};
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
