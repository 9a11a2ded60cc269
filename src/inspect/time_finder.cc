#include "inspect/time_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/words.h"
#include "event/shape_rules.h"
#include "inspect/names.h"
#include "inspect/rules.h"
#include "inspect/shape.h"

namespace tacit::inspect {
namespace {

using event::TimeUnit;

constexpr double kTimeOrdered = 0.9;  // neighbours whose times do not fall
constexpr double kPassing = 0.9;      // of the second half, with values that the first has not
constexpr double kLackMost = 0.1;     // records that lack their time

// Ids of ten digits may look like seconds, and those of thirteen like milliseconds.
bool IsNamedId(const Column& column) {
  return IsIdName(column) || IsUserName(column) || IsItemName(column);
}

bool IsOfTexts(TimeUnit unit) { return unit == TimeUnit::kRfc3339 || unit == TimeUnit::kDatetime; }

// Ends "N values are times".
std::string FormOf(TimeUnit unit) {
  if (unit == TimeUnit::kRfc3339) return "by RFC 3339 (2026-11-25T03:22:06Z)";
  if (unit == TimeUnit::kDatetime) return "without a zone (2026-11-25 03:22:06)";
  const auto row = std::ranges::find(kTimeUnits, unit, &TimeUnitRow::unit);
  return fmt::format("in unit {}", row->name);
}

TimeRole RoleOf(size_t column, TimeUnit unit) {
  TimeRole time{.column = column, .unit = unit, .ms_per_unit = 1};
  for (const TimeUnitRow& row : kTimeUnits)
    if (row.unit == unit) time.ms_per_unit = row.ms_per_unit;
  return time;
}

// The values of a column that are no usual times of a form.
struct OddTimes {
  uint64_t unread = 0, other_age = 0;
  std::optional<uint64_t> first_unread = {}, first_of_other_age = {};  // rows
};

// Tells what the codec makes of the values of a raw column.
class TimeReader {
 public:
  TimeReader(const Column& column, TimeUnit unit) : column_(column), role_(RoleOf(0, unit)) {
    shape_.timestamp_unit = unit;
  }

  OddTimes Odd() const {
    OddTimes odd;
    for (uint64_t row = 0; row < column_.code.size(); ++row) {
      if (column_.code[row] == 0) continue;
      const double number = column_.number.empty() ? NAN : column_.number[row];
      const bool read = !std::isnan(number) && Reads(row, number);
      if (read && IsUsualTime(number * role_.ms_per_unit)) continue;
      ++(read ? odd.other_age : odd.unread);
      auto& first = read ? odd.first_of_other_age : odd.first_unread;
      if (!first) first = row;
    }
    return odd;
  }

 private:
  // A column has the numbers of texts that are times, and plain numbers, which have the code of
  // their digits.
  bool Reads(uint64_t row, double number) const {
    const bool whole = number == std::floor(number) && std::abs(number) < 0x1p63;
    const std::string digits = whole ? fmt::format("{:.0f}", number) : fmt::format("{}", number);
    if (IsOfTexts(role_.unit))
      return column_.code[row] != CodeOfValue(digits) &&
             column_.code[row] != CodeOfValue(digits + ".0");
    return event::ReadTime(digits, shape_).has_value();
  }

  const Column& column_;
  const TimeRole role_;
  event::RecordShape shape_;
};

// ", the first at FILE:LINE".
std::string FirstAt(const Sample& sample, const std::optional<uint64_t>& row) {
  return row ? ", the first at " + sample.PlaceOf(*row) : "";
}

// A few times that cannot be read, or are of another age, do not make the column another thing.
void TellOfOddTimes(const Sample& sample, Roles* roles) {
  const Column& column = sample.columns[roles->time->column];
  const TimeUnit unit = roles->time->unit;
  OddTimes odd = TimeReader(column, unit).Odd();
  // Texts of the other form have numbers too, and the codec reads one form.
  const uint64_t other_form = unit == TimeUnit::kRfc3339    ? column.datetimes
                              : unit == TimeUnit::kDatetime ? column.times
                                                            : column.times + column.datetimes;
  odd.unread += other_form;
  const auto tell = [&](uint64_t count, std::string_view what) {
    if (count > 0)
      roles->warnings.push_back(fmt::format("{} of the {} values of {}, the record's time, {} {}",
                                            WithThousands(count), WithThousands(column.present()),
                                            config::QuotedYaml(column.place),
                                            WordFor(count, "is", "are"), what));
  };
  tell(odd.unread,
       fmt::format("no {} {}{}: such records cannot be learnt from. Correct them, or leave "
                   "source.{}.timestamp empty, so that all are learnt from without a time",
                   WordFor(odd.unread, "time", "times"), FormOf(unit),
                   FirstAt(sample, odd.first_unread), sample.format_name()));
  tell(odd.other_age, fmt::format("before 1990 or after 2100{}: such times are taken as they are",
                                  FirstAt(sample, odd.first_of_other_age)));
}

// The form that most values of a column have, and how many.
std::pair<TimeUnit, uint64_t> LikeliestForm(const Column& column, const Profile& profile) {
  std::pair<TimeUnit, uint64_t> best{TimeUnit::kRfc3339, column.times};
  if (column.datetimes > best.second) best = {TimeUnit::kDatetime, column.datetimes};
  for (size_t i = 0; column.numbers() > 0 && i < std::size(kTimeUnits); ++i)
    if (profile.times_in[i] > best.second) best = {kTimeUnits[i].unit, profile.times_in[i]};
  return best;
}

std::string NoTimes(const Profile& profile) {
  return fmt::format(
      "not one of its {} values is a time by RFC 3339 or without a zone, or a number of 1990 to "
      "2100 in unit s, ms, us or ns: write times so",
      WithThousands(profile.present));
}

}  // namespace

void FindTime(const Sample& sample, const Evidence& evidence, const Named& named,
              std::vector<uint8_t>* taken, Roles* roles) {
  const auto take = [&](size_t c, TimeUnit unit, Grounds grounds) {
    roles->time = RoleOf(c, unit);
    roles->time->grounds = std::move(grounds);
    (*taken)[c] = 1;
    if (evidence.TellsWords()) TellOfOddTimes(sample, roles);
  };
  if (!named.time.empty()) {
    const auto c = sample.ColumnAt(named.time);
    if (!c) return;
    const auto [unit, count] = LikeliestForm(sample.columns[*c], roles->profiles[*c]);
    if (count > 0) return take(*c, unit, {.reason = "it is given"});
    if (!evidence.TellsWords()) {
      roles->left_out.emplace_back(*c, LeaveTimeOut(sample, evidence, *c, roles));
      return;
    }
    roles->refused = fmt::format("{} cannot be the time: {}", config::QuotedYaml(named.time),
                                 NoTimes(roles->profiles[*c]));
    return;
  }
  // By name and order, by name, by order.
  const auto ordered = [&](size_t c) { return roles->profiles[c].ordered >= kTimeOrdered; };
  const auto rank = [&](size_t c) {
    const bool called_so = IsTimeName(sample.columns[c]);
    return std::tuple(called_so && ordered(c), called_so, roles->profiles[c].distinct);
  };
  std::optional<size_t> best;
  std::vector<size_t> times;
  for (size_t c = 0; c < sample.columns.size(); ++c) {
    const Column& column = sample.columns[c];
    const Profile& profile = roles->profiles[c];
    const bool id = IsNamedId(column) && column.times + column.datetimes == 0;
    if ((*taken)[c] != 0 || !profile.time_unit || id || profile.distinct < 2) continue;
    times.push_back(c);
    if (profile.missing <= kLackMost && (ordered(c) || IsTimeName(column)) &&
        (!best || rank(c) > rank(*best)))
      best = c;
  }
  if (!best) return;
  const Column& column = sample.columns[*best];
  Grounds grounds{.guessed = true};
  grounds.reason = IsTimeName(column)     ? "by its name"
                   : column.numbers() > 0 ? "its numbers grow, and might be times"
                                          : "its values are times";
  for (const size_t c : times)
    if (c != *best) grounds.rivals.push_back(sample.columns[c].place);
  take(*best, *roles->profiles[*best].time_unit, std::move(grounds));
}

bool SeemsTime(const Column& column, const Profile& profile) {
  const uint64_t present = profile.present - TextsForNoneOf(column).records;
  const auto most = [&](uint64_t values) { return 2 * values > present; };
  const bool called_so = IsTimeName(column) || IsClockName(column);
  if (most(column.times + column.datetimes)) return true;
  if ((most(column.words) || called_so) && HasDays(column)) return true;
  if (IsNamedId(column)) return false;
  // Hours and days of a log do not return, while shelves, and the hours of each day, do. Noised
  // counts do not know it: many texts are taken for times.
  const bool many = column.words > 0 && profile.distinct > kTextsMost;
  const bool passing =
      std::isnan(profile.fresh)
          ? many
          : profile.fresh > kPassing && (column.words > 0 || profile.ordered >= kTimeOrdered);
  const bool named = IsTimeName(column) || (IsClockName(column) && passing);
  const uint64_t usual = std::reduce(profile.times_in.begin(), profile.times_in.end());
  if (column.numbers() > 0 && most(usual))
    return named || profile.times_ordered >= kTimeOrdered ||
           (profile.time_unit && most(profile.distinct));
  if (!named || column.numbers() + column.words == 0) return false;
  // Clocks and hours are called times too, and are few.
  return usual > 0 || passing || many || (column.words == 0 && !AreNames(profile.distinct));
}

std::string LeaveTimeOut(const Sample& sample, const Evidence& evidence, size_t c, Roles* roles) {
  const Column& column = sample.columns[c];
  const Profile& profile = roles->profiles[c];
  if (profile.time_unit && roles->time) return "it is a time beside the record's own";
  const auto [unit, count] = LikeliestForm(column, profile);
  const uint64_t others = profile.present - std::min(profile.present, count);
  std::string why = NoTimes(profile);
  if (count == 0 && column.words > 0 && !evidence.TellsWords()) {
    why = fmt::format(
        "a private look takes times without a zone for texts; if its values are such times, name "
        "it in source.{}.timestamp, with timestamp_unit: datetime",
        sample.format_name());
  } else if (count > 0 && others > 0) {
    std::optional<uint64_t> first;
    if (evidence.TellsWords() && column.times + column.datetimes == 0) {
      const OddTimes odd = TimeReader(column, unit).Odd();
      first = std::min(odd.first_unread.value_or(UINT64_MAX),
                       odd.first_of_other_age.value_or(UINT64_MAX));
    }
    why = fmt::format("{} of its {} values are times{} {}, and {} {} not{}; nearly all have to be",
                      WithThousands(count), WithThousands(profile.present),
                      IsOfTexts(unit) ? "" : " of 1990 to 2100", FormOf(unit),
                      WithThousands(others), WordFor(others, "is", "are"), FirstAt(sample, first));
  } else if (count > 0) {
    why = profile.missing > kLackMost
              ? PercentText(profile.missing) + " of the records lack it"
              : fmt::format("its values are times {}, and not in their order", FormOf(unit));
  }
  roles->warnings.push_back(
      fmt::format("{} seems to be a time, and is left out: {}; {}if it is none, name it in "
                  "schema.features",
                  config::QuotedYaml(column.place), why,
                  count > 0 ? "if it is the record's time, --time names it; " : ""));
  return others > 0 ? "its values are not known to be times of one form" : why;
}

}  // namespace tacit::inspect
