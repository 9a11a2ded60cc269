#include "inspect/private_columns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <unordered_set>

#include "inspect/private_findings.h"

namespace tacit::inspect {
namespace {

// A count below this many deviations of its noise is taken to be none.
constexpr double kStandsOut = 4;
// Values beyond a rule are passed over up to this share, which noise would hide anyhow.
constexpr double kSlack = 0.02;
constexpr double kDistinctWeight = 2, kElementsWeight = 0.5;
constexpr size_t kForms = 9;  // six forms, and three that are forms of those

enum Form : uint8_t {
  kInteger,
  kFraction,
  kWord,
  kFlag,
  kList,
  kNested,
  kQuoted,
  kTime,
  kBarred,
};

std::optional<size_t> ScalePlace(double number) {
  const double place = number * 2;
  if (!(place >= 0 && place < kScaleNumbers) || place != std::floor(place)) return std::nullopt;
  return static_cast<size_t>(place);
}

std::vector<double> NumbersOf(const PrivateSample& raw, const Column& column) {
  std::vector<double> numbers(kScaleNumbers + std::size(kTimeUnits));
  for (size_t row = 0; row < raw.sample.rows; ++row) {
    const double number = column.number.empty() ? NAN : column.number[row];
    if (std::isnan(number)) continue;
    if (const auto place = ScalePlace(number)) ++numbers[*place];
    for (size_t unit = 0; unit < std::size(kTimeUnits); ++unit) {
      const double ms = number * kTimeUnits[unit].ms_per_unit;
      if (ms < kTimesFrom || ms > kTimesTo) continue;
      ++numbers[kScaleNumbers + unit];
      break;
    }
  }
  return numbers;
}

// Lines 0 and 1 are a pair, 2 and 3, and so on: a record is in one pair.
std::array<double, 2> OrderOf(const PrivateSample& raw, const Column& column) {
  std::array<double, 2> order{};
  for (size_t row = 1; row < raw.sample.rows && !column.number.empty(); ++row) {
    if (raw.line_of[row] % 2 == 0 || raw.line_of[row - 1] + 1 != raw.line_of[row]) continue;
    const double before = column.number[row - 1], number = column.number[row];
    if (std::isnan(before) || std::isnan(number)) continue;
    ++order[number >= before ? 0 : 1];
  }
  return order;
}

// Reads counts of one column.
class ColumnReader {
 public:
  ColumnReader(const NoisedCounts& counts, const ColumnPlaces& at) : counts_(counts), at_(at) {}

  double Of(size_t place) const { return std::max(0.0, counts_[place]); }
  // The count, or 0 where it does not stand out.
  double Clear(size_t place) const {
    return counts_[place] > kStandsOut * counts_.deviation(place) ? Of(place) : 0;
  }
  // The part of a whole that may be missing from it and still be all.
  double Slack(double whole) const {
    return std::max(kSlack * whole, 2 * kStandsOut * counts_.deviation(at_.numbers));
  }

  // True if no form of its values stands out.
  bool HidesForms() const {
    for (size_t i = 0; i <= kNested; ++i)
      if (Clear(at_.forms + i) > 0) return false;
    return true;
  }

  void Forms(double present, Column* column) const {
    constexpr size_t kOwn = kNested + 1;
    std::array<double, kForms> forms{};
    for (size_t i = 0; i < kForms; ++i) forms[i] = Clear(at_.forms + i);
    const auto largest =
        static_cast<size_t>(std::max_element(forms.begin(), forms.begin() + kOwn) - forms.begin());
    std::array<uint64_t, kOwn> own{};
    auto left = static_cast<uint64_t>(present);
    for (size_t i = 0; i < kOwn; ++i) {
      if (i == largest) continue;
      own[i] = std::min(left, static_cast<uint64_t>(std::round(forms[i])));
      left -= own[i];
    }
    own[largest] = left;
    column->integers = own[kInteger];
    column->fractions = own[kFraction];
    column->words = own[kWord];
    column->flags = own[kFlag];
    column->lists = own[kList];
    column->nested = own[kNested];
    const auto part = [&](Form form, uint64_t of) {
      const double count = forms[form];
      return count >= static_cast<double>(of) - Slack(static_cast<double>(of))
                 ? of
                 : static_cast<uint64_t>(std::round(count));
    };
    column->quoted = forms[kQuoted] > 0 ? part(kQuoted, column->numbers()) : 0;
    column->times = forms[kTime] > 0 ? part(kTime, column->words) : 0;
    column->barred = forms[kBarred] > 0 ? part(kBarred, column->words) : 0;
  }

  // The different values: by the count of them, or, where they are few and frequent, by the cells
  // that are full, of which some have two.
  double Distinct(double present, Profile* profile) const {
    std::vector<double> cells(kValueCells);
    double full = 0, mass = 0;
    for (size_t i = 0; i < kValueCells; ++i) {
      cells[i] = Of(at_.cells + i);
      if (Clear(at_.cells + i) == 0) continue;
      full += 1;
      mass += cells[i];
    }
    std::ranges::sort(cells, std::greater());
    const double background = cells[kValueCells / 2];
    const double noise_of_cell = kStandsOut * counts_.deviation(at_.cells);
    for (size_t i = 0; i < 10 && present > 0; ++i) {
      const double more = cells[i] - background;
      const double share = more > noise_of_cell ? std::min(1.0, more / present) : 0;
      if (i == 0) profile->top = share;
      if (i == 0) profile->top_least = std::clamp((more - noise_of_cell) / present, 0.0, 1.0);
      profile->top_10 = std::min(1.0, profile->top_10 + share);
    }
    const double counted = Of(at_.distinct), noise = counts_.deviation(at_.distinct);
    const double missed =
        std::max(kSlack * present, kStandsOut * counts_.deviation(at_.cells) * std::sqrt(full));
    const double few = -static_cast<double>(kValueCells) *
                       std::log1p(-std::min(full, kValueCells - 1.0) / kValueCells);
    const bool frequent = full > 0 && full <= kValueCells / 4.0 && mass >= present - missed;
    // Without noise to speak of, the count is better than what cells tell.
    if (frequent && noise > 0.25 && counted <= few + kStandsOut * noise) return std::round(few);
    return std::round(std::clamp(counted, std::min(1.0, full), std::max(present, 1.0)));
  }

  std::vector<std::pair<double, uint64_t>> Scale(double present) const {
    std::vector<std::pair<double, uint64_t>> scale;
    double on_it = 0;
    for (size_t i = 0; i < kScaleNumbers; ++i) {
      const double count = Clear(at_.numbers + i);
      if (count == 0) continue;
      on_it += count;
      scale.emplace_back(static_cast<double>(i) / 2, static_cast<uint64_t>(std::round(count)));
    }
    if (scale.size() < 2 || on_it < present - Slack(present)) scale.clear();
    return scale;
  }

  std::optional<event::TimeUnit> TimeUnit(double present) const {
    for (size_t unit = 0; unit < std::size(kTimeUnits); ++unit) {
      const double count = Clear(at_.numbers + kScaleNumbers + unit);
      if (count > 0 && count >= present - Slack(present)) return kTimeUnits[unit].unit;
    }
    return std::nullopt;
  }

 private:
  const NoisedCounts& counts_;
  const ColumnPlaces& at_;
};

ColumnPlaces AddColumn(const PrivateSample& raw, const Column& column, double bound,
                       NoisedCounts* counts) {
  std::unordered_set<uint32_t> values, early;
  std::vector<double> cells(kValueCells);
  std::array<double, 2> halves{};
  for (size_t row = 0; row < raw.sample.rows; ++row) {
    const uint32_t code = column.code[row];
    if (code == 0) continue;
    const size_t half = raw.HalfOf(row);
    ++halves[half];
    values.insert(code);
    if (half == 0) early.insert(code);
    ++cells[code % kValueCells];
  }
  const auto number = [](uint64_t count) { return static_cast<double>(count); };
  const std::array<double, kForms> forms = {
      number(column.integers), number(column.fractions), number(column.words),
      number(column.flags),    number(column.lists),     number(column.nested),
      number(column.quoted),   number(column.times),     number(column.barred)};
  const std::array<double, 1> distinct = {number(values.size())},
                              distinct_first = {number(early.size())},
                              elements = {number(column.elements.size())};
  ColumnPlaces at;
  at.forms = counts->Add(forms, bound * std::numbers::sqrt2);
  at.halves = counts->Add(halves, bound);
  at.distinct = counts->Add(distinct, bound, kDistinctWeight);
  at.distinct_first = counts->Add(distinct_first, bound);
  at.cells = counts->Add(cells, bound);
  at.numbers = counts->Add(NumbersOf(raw, column), bound);
  at.order = counts->Add(OrderOf(raw, column), bound);
  at.elements = counts->Add(elements, bound * kElementsOfRecordMost, kElementsWeight);
  return at;
}

}  // namespace

SamplePlaces AddSample(const PrivateSample& raw, double bound, NoisedCounts* counts) {
  std::array<double, 3> readable{};
  for (size_t row = 0; row < raw.sample.rows; ++row) ++readable[raw.HalfOf(row)];
  readable[2] = static_cast<double>(raw.kept - raw.sample.rows);
  const std::array<double, 1> distinct = {static_cast<double>(raw.distinct_lines)};
  SamplePlaces at;
  at.readable = counts->Add(readable, bound);
  at.distinct = counts->Add(distinct, bound);
  for (const Column& column : raw.sample.columns)
    at.columns.push_back(AddColumn(raw, column, bound, counts));
  return at;
}

NoisedColumn ReadColumn(const NoisedCounts& counts, const ColumnPlaces& at, const Column& raw_name,
                        double rows_first, double rows_second) {
  const ColumnReader reader(counts, at);
  NoisedColumn noised;
  Column& column = noised.column;
  Profile& profile = noised.profile;
  column.name = raw_name.name;
  column.place = raw_name.place;
  const double rows = rows_first + rows_second;
  const double noise = kStandsOut * counts.deviation(at.halves);
  const auto missing = [&](double has, double all) {
    const double lack = all - has;
    return lack <= noise || all <= 0 ? 0 : std::min(1.0, lack / all);
  };
  const double first = reader.Clear(at.halves), second = reader.Clear(at.halves + 1);
  profile.missing_first = missing(first, rows_first);
  profile.missing_second = missing(second, rows_second);
  profile.missing = missing(first + second, rows);
  const double present = std::round(rows * (1 - profile.missing));
  profile.present = static_cast<uint64_t>(present);
  // A form that all have may not stand out among so few records.
  profile.hidden = reader.HidesForms() && (rows <= 2 * noise || present > 0);
  reader.Forms(present, &column);
  noised.scale = reader.Scale(present);
  double distinct = reader.Distinct(present, &profile);
  const auto& scale = noised.scale;
  if (!scale.empty()) distinct = static_cast<double>(scale.size());
  profile.distinct = static_cast<uint64_t>(distinct);
  profile.zero_or_one = scale.size() == 2 && scale[0].first == 0 && scale[1].first == 1 &&
                        column.numbers() + column.flags == profile.present;
  const double early = reader.Clear(at.distinct_first);
  if (early > 0) profile.growth = std::clamp(std::log2(distinct / early), 0.0, 1.0);
  profile.fresh = NAN;
  // Values with bars between them are made of fewer ones; the noise does not change that.
  profile.elements = static_cast<uint64_t>(
      std::clamp(std::round(reader.Of(at.elements)), 0.0, std::max(0.0, distinct - 1)));
  const double ordered = reader.Of(at.order), pairs = ordered + reader.Clear(at.order + 1);
  profile.ordered = pairs > kStandsOut * counts.deviation(at.order) ? ordered / pairs : 0;
  for (size_t unit = 0; unit < std::size(kTimeUnits); ++unit)
    profile.times_in[unit] =
        static_cast<uint64_t>(std::round(reader.Clear(at.numbers + kScaleNumbers + unit)));
  profile.times_ordered = profile.ordered;
  profile.time_unit = column.times > 0 && column.times == profile.present
                          ? event::TimeUnit::kRfc3339
                          : reader.TimeUnit(present);
  return noised;
}

}  // namespace tacit::inspect
