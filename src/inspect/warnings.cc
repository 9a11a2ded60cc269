#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "event/shape_rules.h"
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

// Times after today are of another unit, or of a clock that is wrong.
std::string LaterThanToday(const Sample& sample, const Roles& roles) {
  uint64_t later = 0;
  double last = 0;
  for (const double number : sample.columns[roles.time->column].number) {
    const double time = number * roles.time->ms_per_unit;
    if (!IsUsualTime(time) || time <= sample.now_ms + kMsPerDay) continue;
    ++later;
    last = std::max(last, time);
  }
  if (later == 0 || sample.now_ms == 0) return "";
  return fmt::format("{} {} {}, a time after today, up to {}: is it in another form or unit?",
                     Counted(later, "record"), WordFor(later, "has", "have"),
                     config::QuotedYaml(sample.columns[roles.time->column].place), UtcText(last));
}

// An id in one form: tables of floats write 12 as 12.0, spreadsheets lose zeros in front, and
// people write letters small and large.
std::string Folded(std::string_view id) {
  while (id.starts_with(' ')) id.remove_prefix(1);
  while (id.ends_with(' ')) id.remove_suffix(1);
  std::string digits(id);
  std::erase(digits, ',');
  const double number = event::ReadNumber(digits).value_or(NAN);
  if (number == std::floor(number) && std::abs(number) < 0x1p53)
    return fmt::format("{:.0f}", number);
  std::string folded(id);
  for (char& c : folded) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return folded;
}

// The codec takes an id's text, so that one id in two forms is two. The sample holds no texts, and
// is read once more.
std::string IdsOfTwoForms(const Sample& sample, std::string_view part, const std::string& place) {
  if (sample.records == nullptr || !sample.noised.empty()) return "";
  struct Id {
    std::string form;
    bool has_two = false;
  };
  std::unordered_map<std::string, Id> ids;
  uint64_t left = sample.lines, several = 0;
  std::string example;
  const auto see = [&](const Record& record) {
    if (left == 0) return false;
    if (sample.shape.format == Format::kCsv && sample.shape.header && record.number == 1)
      return true;
    --left;
    const auto text = TextAt(sample.shape, record.text, place);
    if (!text || text->empty()) return true;
    Id& id = ids.try_emplace(Folded(*text), Id{*text}).first->second;
    if (id.form == *text || std::exchange(id.has_two, true)) return true;
    if (several++ == 0)
      example = fmt::format("{} and {} at {}:{}", config::QuotedYaml(id.form),
                            config::QuotedYaml(*text), record.origin, record.number);
    return true;
  };
  for (size_t i = 0; i < sample.records->parts().size(); ++i)
    if (!sample.records->ForEach(i, see)) return "";
  if (several == 0) return "";
  return fmt::format(
      "{} of the {}, {}, {} more forms than one, such as {}. An id is its text, so that each form "
      "counts here for another id: write all of them in one form",
      Counted(several, "id"), part, config::QuotedYaml(place), WordFor(several, "has", "have"),
      example);
}

// Groups of three digits behind a point are thousands to some, and a fraction to the codec.
std::string Thousands(const Sample& sample, const Roles& roles) {
  std::string fields;
  for (const FeatureRole& feature : roles.features) {
    const Column& column = sample.columns[feature.column];
    if (column.thousands > 0 && column.thousands == column.fractions)
      fields += (fields.empty() ? "" : ", ") + config::QuotedYaml(column.place);
  }
  return fields.empty() ? ""
                        : fmt::format(
                              "each fraction of {} has three digits: 1.234 is read as a "
                              "fraction. If it is 1234, write it without the point",
                              fields);
}

// The label of 1: where its values are open, the word that a trial takes for it.
std::string OneText(const Roles& roles) {
  if (!roles.label->values_open) return "1";
  const auto one =
      std::ranges::find(roles.label->values, "1", [](const auto& v) { return v.second; });
  return one == roles.label->values.end() ? "1" : config::QuotedYaml(one->first);
}

double RateOfRarer(const Trial& trial) {
  return std::min(trial.label_rate(), 1 - trial.label_rate());
}
int RarerLabel(const Trial& trial) { return trial.label_rate() < 0.5 ? 1 : 0; }

// Says that one half of the records has nearly all labels of one kind, and more than chance gives.
std::string HalvesApart(const Trial& trial, std::string_view one) {
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
      "the label is {} in {} of the first half and in {} of the second: are the records sorted by "
      "it, or does it begin half way? They are learnt as they lie, so that no figure of later "
      "records can be trusted, and fields that give the label away are not found",
      one, PercentText(ones / first), PercentText(later_ones / second));
}

// Says how little a fifth of the records, held out, would tell of a model's AUC. Without a model it
// is .5 with a deviation of 1 over the root of 12 n, where n labels are of one kind and far more of
// the other (Mann and Whitney).
std::string FewLabels(const Sample& sample, const Trial& trial, std::string_view one) {
  constexpr double kHeldOut = 0.2, kAucKnown = 0.05;
  const double rarer = sample.lines_in_all * RateOfRarer(trial);
  const double known = std::min(0.5, 1.96 / std::sqrt(12 * kHeldOut * std::max(1.0, rarer)));
  if (known <= kAucKnown) return "";
  const auto labels = static_cast<uint64_t>(std::round(rarer));
  const std::string_view label = RarerLabel(trial) == 1 ? one : "0";
  return fmt::format(
      "there {} {}{} of {} in all: a fifth of the records, held out, tells an AUC "
      "to {:.2f} or worse, and hardly any model from chance. Have more records, or a label that is "
      "{} more often (a click in place of a purchase)",
      WordFor(labels, "is", "are"), sample.whole && sample.noised.empty() ? "" : "some ",
      Counted(labels, "label"), label, known, label);
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
      if (std::string forms = IdsOfTwoForms(sample, part.name, sample.columns[part.column].place);
          !forms.empty())
        warnings.push_back(std::move(forms));
  if (std::string thousands = Thousands(sample, roles); !thousands.empty())
    warnings.push_back(std::move(thousands));
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
  if (roles.time)
    if (std::string later = LaterThanToday(sample, roles); !later.empty())
      warnings.push_back(std::move(later));
  if (roles.time && roles.profiles[roles.time->column].ordered < 1)
    warnings.push_back(OlderRecords(sample, roles));
  if (trial && sample.noised.empty() && roles.label)
    if (std::string halves = HalvesApart(*trial, OneText(roles)); !halves.empty())
      warnings.push_back(std::move(halves));
  if (trial && roles.label)
    if (std::string few = FewLabels(sample, *trial, OneText(roles)); !few.empty())
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
