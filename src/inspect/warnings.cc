#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/text.h"
#include "base/words.h"
#include "inspect/report.h"
#include "inspect/rules.h"
#include "inspect/shape.h"
#include "inspect/topic_report.h"

namespace tacit::inspect {
namespace {

constexpr double kMsPerDay = 86'400'000;
// A period's rate of labels is known to a tenth where it has this many deviations of noise.
constexpr double kDeviationsKnown = 10;
// A field that is in more records of one half, by this share, than of the other has come or gone.
constexpr double kComeOrGone = 0.5;

// "field 'a' ends at FILE:LINE", or begins there, where it has come or gone.
std::vector<std::string> ComeAndGone(const Sample& sample, const Roles& roles) {
  std::vector<std::string> gone, come;
  for (size_t c = 0; c < sample.columns.size(); ++c) {
    const Profile& profile = roles.profiles[c];
    const std::string& name = sample.columns[c].place;
    if (!sample.noised.empty()) {
      const double more = profile.missing_second - profile.missing_first;
      if (more > kComeOrGone) gone.push_back(fmt::format("'{}'", name));
      if (-more > kComeOrGone) come.push_back(fmt::format("'{}'", name));
      continue;
    }
    const std::vector<uint32_t>& code = sample.columns[c].code;
    uint64_t first = 0, last = 0;
    for (uint64_t row = 0; row < sample.rows; ++row) {
      if (code[row] == 0) continue;
      if (code[first] == 0) first = row;
      last = row;
    }
    if (profile.missing_second > profile.missing_first + kComeOrGone)
      gone.push_back(fmt::format("'{}' is there last at {}", name, sample.PlaceOf(last)));
    if (profile.missing_first > profile.missing_second + kComeOrGone)
      come.push_back(fmt::format("'{}' is there first at {}", name, sample.PlaceOf(first)));
  }
  std::vector<std::string> warnings;
  for (const std::string& field : gone) warnings.push_back("a field goes half way: " + field);
  for (const std::string& field : come) warnings.push_back("a field comes half way: " + field);
  if (gone.size() == 1 && come.size() == 1)
    warnings.emplace_back("one field goes and another one comes: was it renamed?");
  return warnings;
}

// "3 hours".
std::string SpanText(double milliseconds) {
  constexpr std::pair<double, std::string_view> kUnits[] = {
      {kMsPerDay, "day"}, {3'600'000, "hour"}, {60'000, "minute"}, {1000, "second"}};
  for (const auto& [unit, name] : kUnits)
    if (milliseconds >= unit) return Counted(static_cast<uint64_t>(milliseconds / unit), name);
  return "less than a second";
}

// Says how many records are older than the one before, and how much the furthest is.
std::string OlderRecords(const Sample& sample, const Roles& roles) {
  const size_t c = roles.time->column;
  double before = NAN, furthest = 0;
  for (const double number : sample.columns[c].number) {
    const double time = number * roles.time->ms_per_unit;
    if (!IsUsualTime(time)) continue;
    furthest = std::max(furthest, std::isnan(before) ? 0 : before - time);
    before = time;
  }
  return fmt::format(
      "{} of the records are older than the one before{}: they are learnt in the {} "
      "order",
      PercentText(1 - roles.profiles[c].ordered),
      furthest > 0 ? ", by up to " + SpanText(furthest) : "",
      sample.topic() != nullptr ? "topic's" : "files'");
}

// Tables of floats write an id of 12 as 12.0, and the codec takes these texts for two.
std::string IdsOfTwoForms(const Sample& sample, std::string_view part, size_t c) {
  struct Form {
    uint64_t records = 0, first = 0;
    std::unordered_set<double> ids = {};
  };
  const Column& column = sample.columns[c];
  Form whole, zeros;
  for (uint64_t row = 0; row < column.number.size(); ++row) {
    const double number = column.number[row];
    if (!(number == std::floor(number) && std::abs(number) < 0x1p53)) continue;
    const std::string digits = fmt::format("{:.0f}", number);
    const bool plain = column.code[row] == CodeOfValue(digits);
    if (!plain && column.code[row] != CodeOfValue(digits + ".0")) continue;
    Form& form = plain ? whole : zeros;
    if (form.records++ == 0) form.first = row;
    form.ids.insert(number);
  }
  if (whole.records == 0 || zeros.records == 0) return "";
  const auto both = static_cast<uint64_t>(
      std::ranges::count_if(whole.ids, [&](double id) { return zeros.ids.contains(id); }));
  return fmt::format(
      "ids of the {}, {}, have two forms: {} as \"12\", the first at {}, and {} as \"12.0\", the "
      "first at {}. An id is its text, so that {} {} here for two: write all of them in one form",
      part, config::QuotedYaml(column.place), Counted(whole.records, "record"),
      sample.PlaceOf(whole.first), WithThousands(zeros.records), sample.PlaceOf(zeros.first),
      Counted(both, "id"), WordFor(both, "counts", "count"));
}

double RateOfRarer(const Trial& trial) {
  return std::min(trial.label_rate(), 1 - trial.label_rate());
}
int RarerLabel(const Trial& trial) { return trial.label_rate() < 0.5 ? 1 : 0; }

// Says that one half of the records has nearly all labels of one kind, and more than chance gives.
std::string HalvesApart(const Trial& trial) {
  constexpr double kFewer = 0.2, kLabelsLeast = 100;
  const auto first = static_cast<double>(trial.first), second = static_cast<double>(trial.second);
  const auto apart = [&](double in_first, double in_second) {
    return first > 0 && second > 0 && std::max(in_first, in_second) >= kLabelsLeast &&
           std::min(in_first / first, in_second / second) <
               kFewer * std::max(in_first / first, in_second / second);
  };
  const auto ones = static_cast<double>(trial.first_positives),
             later_ones = static_cast<double>(trial.second_positives);
  if (!apart(ones, later_ones) && !apart(first - ones, second - later_ones)) return "";
  return fmt::format(
      "the label is 1 in {} of the first half and in {} of the second: are the records sorted by "
      "it, or does it begin half way? They are learnt as they lie, so that no figure of later "
      "records can be trusted, and fields that give the label away are not found",
      PercentText(ones / first), PercentText(later_ones / second));
}

// Says how little a fifth of the records, held out, would tell of a model's AUC. Without a model it
// is .5 with a deviation of 1 over the root of 12 n, where n labels are of one kind and far more of
// the other (Mann and Whitney).
std::string FewLabels(const Sample& sample, const Trial& trial) {
  constexpr double kHeldOut = 0.2, kAucKnown = 0.05;
  const double rarer = sample.lines_in_all * RateOfRarer(trial);
  const double known = std::min(0.5, 1.96 / std::sqrt(12 * kHeldOut * std::max(1.0, rarer)));
  if (known <= kAucKnown) return "";
  const auto labels = static_cast<uint64_t>(std::round(rarer));
  return fmt::format(
      "there {} {}{} of {} in all: a fifth of the records, held out, tells an AUC "
      "to {:.2f} or worse, and hardly any model from chance. Have more records, or a label that is "
      "{} more often (a click in place of a purchase)",
      WordFor(labels, "is", "are"), sample.whole && sample.noised.empty() ? "" : "some ",
      Counted(labels, "label"), RarerLabel(trial), known, RarerLabel(trial));
}

}  // namespace

std::string UtcText(double milliseconds) {
  namespace chrono = std::chrono;
  const chrono::sys_seconds time(
      chrono::seconds(static_cast<int64_t>(std::floor(milliseconds / 1000))));
  const auto day = chrono::floor<chrono::days>(time);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::optional<Days> DaysOf(const Sample& sample, const Roles& roles,
                           const std::optional<Trial>& trial) {
  if (!roles.time) return std::nullopt;
  if (!sample.noised.empty()) return trial ? trial->noised_days : std::nullopt;
  const Column& column = sample.columns[roles.time->column];
  struct OneDay {
    uint64_t events = 0;
    std::unordered_set<uint32_t> users;
  };
  std::map<int64_t, OneDay> by_day;
  double first = kTimesTo, last = kTimesFrom;
  uint64_t others = 0;
  for (uint64_t row = 0; row < sample.rows; ++row) {
    const double time = column.number[row] * roles.time->ms_per_unit;
    if (!IsUsualTime(time)) {
      others += std::isnan(time) ? 0 : 1;
      continue;
    }
    first = std::min(first, time);
    last = std::max(last, time);
    OneDay& day = by_day[static_cast<int64_t>(std::floor(time / kMsPerDay))];
    ++day.events;
    if (roles.user) day.users.insert(sample.columns[*roles.user].code[row]);
  }
  const Profile& profile = roles.profiles[roles.time->column];
  Days days{.days = by_day.size(),
            .from = UtcText(first),
            .to = UtcText(last),
            .ordered = profile.ordered,
            .others = others};
  for (const auto& [day, one] : by_day) {
    days.events += static_cast<double>(one.events) / static_cast<double>(by_day.size());
    days.users += static_cast<double>(one.users.size()) / static_cast<double>(by_day.size());
  }
  return days;
}

std::vector<std::string> WarningsAbout(const Sample& sample, const Roles& roles,
                                       const std::optional<Trial>& trial) {
  std::vector<std::string> warnings = sample.notes;
  if (sample.topic() != nullptr)
    for (std::string& warning : TopicWarnings(sample, roles))
      warnings.push_back(std::move(warning));
  for (std::string& warning : ComeAndGone(sample, roles)) warnings.push_back(std::move(warning));
  for (const NamedPart& part : NamedParts(roles))
    if (part.name == "user" || part.name == "item")
      if (std::string forms = IdsOfTwoForms(sample, part.name, part.column); !forms.empty())
        warnings.push_back(std::move(forms));
  warnings.insert(warnings.end(), roles.warnings.begin(), roles.warnings.end());
  const uint64_t enough = PeriodRecords({}, 0);
  if (sample.lines_in_all < static_cast<double>(enough))
    warnings.push_back(
        fmt::format("there {} {}: with fewer than some {} in a period, noise hides nearly all "
                    "there is to learn",
                    WordFor(sample.lines, "is", "are"), Counted(sample.lines, "record"),
                    WithThousands(enough)));
  if (sample.repeats > 0)
    warnings.push_back(fmt::format("{} {} there before, byte for byte, and learnt from again",
                                   Counted(sample.repeats, "record"),
                                   WordFor(sample.repeats, "is", "are")));
  if (roles.time && roles.profiles[roles.time->column].ordered < 1)
    warnings.push_back(OlderRecords(sample, roles));
  if (trial && sample.noised.empty() && roles.label && !roles.label->values_open)
    if (std::string halves = HalvesApart(*trial); !halves.empty())
      warnings.push_back(std::move(halves));
  if (trial && roles.label && !roles.label->values_open)
    if (std::string few = FewLabels(sample, *trial); !few.empty())
      warnings.push_back(std::move(few));
  if (trial && trial->bad() * 10 > trial->good + trial->bad())
    warnings.push_back(fmt::format("{} of {} could not be learnt from", WithThousands(trial->bad()),
                                   Counted(trial->good + trial->bad(), "record")));
  return warnings;
}

std::string FewLabelsInNoise(const Proposal& proposal, const Sample& sample, const Trial& trial,
                             bool label_is_open) {
  const config::Learner& learner = proposal.config.learners.front();
  if (proposal.noise.empty() || learner.model.traits().only_once.empty() ||
      learner.model.recommends())
    return "";
  const uint64_t opening = config::FirstPeriod(learner);
  const auto period = static_cast<double>(opening > 0 ? opening : learner.participation.batch);
  const double rarer = std::min(sample.lines_in_all, period) * RateOfRarer(trial);
  if (rarer >= kDeviationsKnown * proposal.noise_in_units) return "";
  const auto labels = static_cast<uint64_t>(std::round(rarer));
  return fmt::format(
      "{} of {} in the first period {} few, where noise is {:.2g} times what one adds: longer "
      "periods or a larger epsilon",
      Counted(labels, "label"),
      label_is_open            ? "the rarest value"
      : RarerLabel(trial) == 1 ? "1"
                               : "0",
      WordFor(labels, "is", "are"), proposal.noise_in_units);
}

}  // namespace tacit::inspect
