#include "inspect/private_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numbers>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/text.h"
#include "inspect/noised_counts.h"
#include "inspect/private_columns.h"

namespace tacit::inspect {
namespace {

// Shares of the whole Gaussian: 1 / multiplier^2 of the releases adds up to that of all.
constexpr double kNamesShare = 0.2, kColumnsShare = 0.5, kColumnsShareOfGiven = 0.7;
constexpr double kTrialShare = 0.15, kUsersShare = 0.15;
// A day of 40,000 does not stand out by noise alone, except in one look of five hundred.
constexpr double kDayStandsOut = 5.5, kUsersStandOut = 3;
constexpr double kDayMs = 86'400'000;
constexpr auto kFirstDay = static_cast<int64_t>(kTimesFrom / kDayMs);
constexpr auto kDays = static_cast<size_t>((kTimesTo - kTimesFrom) / kDayMs) + 1;
constexpr uint64_t kPrivateCellsMost = uint64_t{1} << 25;

std::string DateOf(size_t day) {
  namespace chrono = std::chrono;
  const chrono::year_month_day date(
      chrono::sys_days(chrono::days(kFirstDay + static_cast<int64_t>(day))));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

// The evidence that noised counts give. Users are counted when they are asked about, once: where a
// second model is proposed beside one of labels, its longer periods get the counts of the shorter
// ones, which a user is in no less often.
class NoisedEvidence final : public Evidence {
 public:
  using Scales = std::vector<std::vector<std::pair<double, uint64_t>>>;  // by column

  NoisedEvidence(const PrivateSample& raw, const PrivateLook& look, Scales scales,
                 double noise_multiplier, noise::NoiseSource& noise)
      : raw_(raw),
        look_(look),
        scales_(std::move(scales)),
        noise_multiplier_(noise_multiplier),
        noise_(noise) {}

  bool KnowsNumbers(size_t column) const override { return !scales_[column].empty(); }
  std::vector<std::pair<double, uint64_t>> Numbers(size_t column) const override {
    return scales_[column];
  }
  bool TellsWords() const override { return false; }
  bool MetOnce(size_t, size_t) const override { return false; }
  std::optional<std::pair<double, double>> Losses(const LabelRole&, size_t) const override {
    return std::nullopt;
  }

  std::optional<Foretold> ForetoldAlone(const LabelRole&, size_t) const override {
    return std::nullopt;
  }

  UserVisits Visits(size_t user, const std::vector<uint64_t>& starts) const override {
    if (counted_) return {.periods = *counted_};
    const bool of_users = look_.unit == privacy::Unit::kUser;
    const std::vector<double> users =
        CountUsers(of_users ? raw_.user_of : raw_.sample.columns[user].code, starts);
    NoisedCounts counts(noise_multiplier_);
    // One record moves a user from one cell to the next; of unit user, a user is in one cell.
    const size_t at = counts.Add(users, of_users ? 1 : std::numbers::sqrt2);
    counts.Release(noise_);
    std::vector<uint32_t> periods;
    for (size_t i = 0; i < kPeriodsMost; ++i) {
      if (counts[at + i] < kUsersStandOut * counts.deviation(at + i)) continue;
      const auto times = static_cast<size_t>(
          std::clamp(std::round(counts[at + i]), 0.0, static_cast<double>(raw_.lines)));
      periods.insert(periods.end(), times, static_cast<uint32_t>(i + 1));
    }
    counted_ = periods;
    return {.periods = std::move(periods)};
  }

 private:
  // The offset of a line, counted over all files. It follows from public numbers.
  uint64_t OffsetOf(uint64_t line) const {
    const bool header = raw_.sample.shape.format == Format::kCsv;
    uint64_t before = 0;  // offsets of earlier files
    for (const double offsets : raw_.sample.offsets_of_file) {
      line += header ? 1 : 0;
      const auto end = before + static_cast<uint64_t>(offsets);
      if (line < end) break;
      before = end;
    }
    return line;
  }
  // Users by the number of periods that have a record of theirs.
  std::vector<double> CountUsers(const std::vector<uint32_t>& user_of,
                                 const std::vector<uint64_t>& starts) const {
    std::unordered_map<uint32_t, std::pair<uint64_t, uint32_t>> users;  // last period, how many
    for (size_t row = 0; row < raw_.sample.rows; ++row) {
      if (user_of[row] == 0) continue;
      const auto now = static_cast<uint64_t>(
          std::ranges::upper_bound(starts, OffsetOf(raw_.line_of[row])) - starts.begin());
      auto& [last, number] = users[user_of[row]];
      if (number > 0 && last == now) continue;
      last = now;
      ++number;
    }
    std::vector<double> by_periods(kPeriodsMost);
    for (const auto& [code, story] : users)
      ++by_periods[std::min<size_t>(story.second, kPeriodsMost) - 1];
    return by_periods;
  }

  const PrivateSample& raw_;
  const PrivateLook& look_;
  const Scales scales_;
  const double noise_multiplier_;
  noise::NoiseSource& noise_;
  mutable std::optional<std::vector<uint32_t>> counted_;  // periods of each user
};

// Days that stand out of the noise.
Days DaysThatStandOut(const NoisedCounts& counts, size_t days_at, size_t pairs_at) {
  Days days;
  for (size_t day = 0; day < kDays; ++day) {
    const double events = counts[days_at + day];
    if (events < std::max(0.5, kDayStandsOut * counts.deviation(days_at + day))) continue;
    if (days.days++ == 0) days.from = DateOf(day);
    days.to = DateOf(day);
    days.events += events;
  }
  if (days.days == 0) return days;
  const auto number = static_cast<double>(days.days);
  days.events /= number;
  days.users = std::max(0.0, counts[pairs_at]) / number;
  return days;
}

}  // namespace

std::vector<std::string> NamesAbove(std::span<const std::pair<std::string, double>> noised,
                                    double threshold, size_t most) {
  std::vector<std::pair<double, std::string>> shown;
  for (const auto& [name, count] : noised)
    if (count >= threshold) shown.emplace_back(-count, name);
  std::ranges::sort(shown);
  if (shown.size() > most) shown.resize(most);
  std::vector<std::string> names;
  for (auto& [count, name] : shown) names.push_back(std::move(name));
  std::ranges::sort(names);
  return names;
}

PrivateFindings::PrivateFindings(PrivateLook look, double noise_multiplier,
                                 noise::NoiseSource& noise)
    : look_(std::move(look)), noise_multiplier_(noise_multiplier), noise_(noise) {}
PrivateFindings::~PrivateFindings() = default;

double PrivateFindings::ShareOf(double share) const { return noise_multiplier_ / std::sqrt(share); }

Result<std::unique_ptr<PrivateFindings>> PrivateFindings::Make(PrivateLook look,
                                                               double noise_multiplier,
                                                               noise::NoiseSource& noise) {
  std::unique_ptr<PrivateFindings> findings(
      new PrivateFindings(std::move(look), noise_multiplier, noise));
  findings->places_ = findings->look_.fields;
  if (findings->look_.format == Format::kJson && findings->places_.empty())
    TACIT_RETURN_IF_ERROR(findings->FindFields());
  for (const std::string& place : findings->look_.named)
    if (std::ranges::find(findings->places_, place) == findings->places_.end())
      findings->places_.push_back(place);
  TACIT_RETURN_IF_ERROR(findings->Look());
  return findings;
}

// A record may name any field, so that no list of them is public: a stable histogram.
Status PrivateFindings::FindFields() {
  TACIT_ASSIGN(auto fields, CountFields(look_));
  TACIT_CHECK(look_.bound() * kFieldsOfRecordMost <= kNamesOfUnitMost, "a unit has fewer names");
  NoisedCounts counts(ShareOf(kNamesShare));
  std::vector<double> raw;
  for (const auto& [name, count] : fields) raw.push_back(count);
  const size_t at = counts.Add(raw, look_.bound() * std::sqrt(double{kFieldsOfRecordMost}));
  counts.Release(noise_);
  for (size_t i = 0; i < fields.size(); ++i) fields[i].second = counts[at + i];
  const double deviation = fields.empty() ? 0 : counts.deviation(at);
  name_threshold_ = NameThreshold(look_.bound(), deviation);
  places_ = NamesAbove(fields, name_threshold_, kPrivateFieldsMost - look_.named.size());
  return {};
}

Status PrivateFindings::Look() {
  TACIT_ASSIGN(const Shape shape, ShapeAsSaid(look_));
  const size_t fields = shape.format == Format::kCsv    ? shape.columns.size()
                        : shape.format == Format::kJson ? places_.size()
                                                        : 1 + shape.dense + shape.categorical;
  PrivateLook look = look_;
  look.rows_most = std::min(look.rows_most, kPrivateCellsMost / std::max<size_t>(1, fields));
  TACIT_ASSIGN(raw_, ReadPrivately(look, shape, places_));

  const bool found = name_threshold_ > 0;
  NoisedCounts counts(ShareOf(found ? kColumnsShare : kColumnsShareOfGiven));
  const SamplePlaces at = AddSample(raw_, look_.bound(), &counts);
  counts.Release(noise_);

  const auto count = [&](size_t place) { return std::max(0.0, std::round(counts[place])); };
  const double first = count(at.readable), second = count(at.readable + 1);
  const double bad =
      counts[at.readable + 2] > 4 * counts.deviation(at.readable + 2) ? count(at.readable + 2) : 0;
  deviation_ = counts.deviation(at.readable);
  sample_.records = look_.records;
  sample_.files = look_.records->origins();
  sample_.shape = shape;
  sample_.offsets_of_file = raw_.sample.offsets_of_file;
  sample_.rows = static_cast<uint64_t>(first + second);
  sample_.lines = static_cast<uint64_t>(first + second + bad);
  const double lines = std::max(1.0, first + second + bad);
  const double repeats = first + second + bad - counts[at.distinct];
  sample_.repeats = repeats > 4 * 2 * deviation_ ? static_cast<uint64_t>(repeats) : 0;
  // The number of lines is known to all.
  const auto all = static_cast<double>(raw_.all_lines);
  const bool of_users = look_.unit == privacy::Unit::kUser;
  sample_.whole = !of_users && raw_.lines == raw_.all_lines;
  sample_.lines_in_all =
      sample_.whole ? lines : std::max(lines, std::round(all * (first + second) / lines));
  NoisedEvidence::Scales scales;
  for (size_t c = 0; c < at.columns.size(); ++c) {
    NoisedColumn noised = ReadColumn(counts, at.columns[c], raw_.sample.columns[c], first, second);
    // No user counts with more records than the bound.
    if (of_users && noised.column.place == look_.user)
      noised.profile.top_least =
          std::min(noised.profile.top_least,
                   look_.bound() / std::max(1.0, static_cast<double>(noised.profile.present)));
    sample_.columns.push_back(std::move(noised.column));
    profiles_.push_back(noised.profile);
    scales.push_back(std::move(noised.scale));
  }
  evidence_ = std::make_unique<NoisedEvidence>(raw_, look_, std::move(scales), ShareOf(kUsersShare),
                                               noise_);
  return {};
}

Result<Trial> PrivateFindings::Try(const config::Config& config, const Roles& roles) {
  Sample looked_at;
  looked_at.records = look_.records;
  looked_at.shape = sample_.shape;
  looked_at.lines = raw_.lines;
  std::vector<Outcome> outcomes;
  TACIT_ASSIGN([[maybe_unused]] const Trial raw, TryOut(looked_at, config, &outcomes));
  outcomes.resize(raw_.lines, Outcome::kUnread);
  std::array<double, 5> by_outcome{};  // zeros and ones of either half, and bad ones
  for (uint64_t line = 0; line < raw_.lines; ++line) {
    if (raw_.is_kept[line] == 0) continue;
    const size_t half = line * 2 < raw_.lines ? 0 : 2;
    if (outcomes[line] == Outcome::kZero) ++by_outcome[half];
    if (outcomes[line] == Outcome::kOne) ++by_outcome[half + 1];
    if (outcomes[line] == Outcome::kBad) ++by_outcome[4];
  }
  std::vector<double> days(kDays);
  std::unordered_set<uint64_t> pairs;
  if (roles.time)
    for (size_t row = 0; row < raw_.sample.rows; ++row) {
      const std::vector<double>& numbers = raw_.sample.columns[roles.time->column].number;
      const double ms = numbers.empty() ? NAN : numbers[row] * roles.time->ms_per_unit;
      if (!(ms >= kTimesFrom && ms < kTimesTo)) continue;
      const auto day = static_cast<size_t>((ms - kTimesFrom) / kDayMs);
      ++days[day];
      const uint32_t user = roles.user ? raw_.sample.columns[*roles.user].code[row] : 0;
      if (user != 0) pairs.insert((uint64_t{user} << 32) | day);
    }
  const double bound = look_.bound();
  const std::array<double, 1> pair_count = {static_cast<double>(pairs.size())};
  NoisedCounts counts(ShareOf(kTrialShare));
  const size_t at = counts.Add(by_outcome, bound);
  const size_t days_at = counts.Add(days, bound), pairs_at = counts.Add(pair_count, bound);
  counts.Release(noise_);
  const auto count = [&](size_t i) {
    return static_cast<uint64_t>(std::max(0.0, std::round(counts[at + i])));
  };
  Trial trial;
  trial.first = count(0) + count(1);
  trial.second = count(2) + count(3);
  trial.first_positives = count(1);
  trial.second_positives = count(3);
  trial.good = trial.first + trial.second;
  trial.noised_bad = counts[at + 4] > 4 * counts.deviation(at + 4) ? count(4) : 0;
  if (roles.time) {
    trial.noised_days = DaysThatStandOut(counts, days_at, pairs_at);
    trial.noised_days->ordered = profiles_[roles.time->column].ordered;
  }
  return trial;
}

}  // namespace tacit::inspect
