#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_map>

#include "inspect/names.h"
#include "inspect/roles.h"
#include "inspect/rules.h"
#include "inspect/shape.h"
#include "model/linear/columns.h"

namespace tacit::inspect {
namespace {

constexpr double kMetOnce = 0.9;     // of the records have a pair of their own
constexpr double kLabelsLeast = 10;  // of either kind, by which a column may be judged
constexpr uint64_t kNoNumber = uint64_t{1} << 32;  // keys of texts beside bins begin here

class RawRecords final : public Evidence {
 public:
  explicit RawRecords(const Sample& sample) : sample_(sample) {}

  bool KnowsNumbers(size_t) const override { return true; }

  std::vector<std::pair<double, uint64_t>> Numbers(size_t column) const override {
    std::map<double, uint64_t> counts;
    for (const double number : sample_.columns[column].number) {
      if (!std::isnan(number)) ++counts[number];
    }
    return {counts.begin(), counts.end()};
  }

  bool TellsWords() const override { return true; }

  bool MetOnce(size_t user, size_t column) const override {
    std::unordered_set<uint64_t> pairs;
    const std::vector<uint32_t>& users = sample_.columns[user].code;
    for (uint64_t row = 0; row < sample_.rows; ++row)
      pairs.insert((uint64_t{users[row]} << 32) | sample_.columns[column].code[row]);
    return static_cast<double>(pairs.size()) > kMetOnce * static_cast<double>(sample_.rows);
  }

  std::optional<std::pair<double, double>> Losses(const LabelRole& label, size_t c) const override {
    const model::linear::Bins bins;
    const Column& column = sample_.columns[c];
    std::unordered_map<uint32_t, HalvesCount> by_value, by_bin;
    double events = 0, positives = 0;
    for (uint64_t row = 0; row < sample_.rows; ++row) {
      const auto is_one = LabelOfRow(sample_, label, row);
      if (!is_one || column.code[row] == 0) continue;
      const bool later = row * 2 >= sample_.rows;
      for (HalvesCount* count :
           {&by_value[column.code[row]], &by_bin[bins.Of(Scaled(column.number[row]))]})
        count->Add(later, *is_one);
      events += later ? 0 : 1;
      positives += !later && *is_one ? 1 : 0;
    }
    if (events == 0) return std::nullopt;
    const auto loss = [&](const auto& counts) {
      return ForetellingLoss(Listed(counts), positives / events);
    };
    return std::pair(loss(by_value), loss(by_bin));
  }

  std::optional<Foretold> ForetoldAlone(const LabelRole& label, size_t c) const override {
    const model::linear::Bins bins;
    const Column& column = sample_.columns[c];
    const TextsForNone none = TextsForNoneOf(column);
    const uint32_t empty_list = column.lists > 0 ? CodeOfValue("") : 0;
    std::array<HalvesCount, 2> by_presence;
    std::unordered_map<uint64_t, HalvesCount> by_value, by_bin;  // texts have bins of their own
    HalvesCount all, filled;
    for (uint64_t row = 0; row < sample_.rows; ++row) {
      const auto is_one = LabelOfRow(sample_, label, row);
      if (!is_one) continue;
      const uint32_t code = column.code[row];
      const double number = column.number.empty() ? NAN : column.number[row];
      const bool later = row * 2 >= sample_.rows;
      if (!column.number.empty()) {
        const uint64_t bin = std::isnan(number) ? kNoNumber + code : bins.Of(Scaled(number));
        by_bin[bin].Add(later, *is_one);
      }
      const bool present = code != 0 && code != empty_list && !none.texts.contains(code);
      if (present && number != 0 && number != -1) filled.Add(later, *is_one);
      for (HalvesCount* count : {&by_presence[present ? 1 : 0], &by_value[code], &all})
        count->Add(later, *is_one);
    }
    const double later_zeros = all.later_events - all.later_positives;
    if (all.events == 0 || std::min(all.later_positives, later_zeros) < kLabelsLeast)
      return std::nullopt;
    const double rate = all.positives / all.events;
    const auto share = [](const HalvesCount& count) {
      return count.later_events > 0 ? count.later_positives / count.later_events : 0;
    };
    return Foretold{.by_presence = ForetellingAuc(by_presence, rate),
                    .by_value = std::max(ForetellingAuc(Listed(by_value), rate),
                                         ForetellingAuc(Listed(by_bin), rate)),
                    .filled_is_one = share(by_presence[1]) > share(by_presence[0]),
                    .filled_is_always_one = HaveOneLabel(filled, all, true),
                    .filled_is_always_zero = HaveOneLabel(filled, all, false)};
  }

  UserVisits Visits(size_t user, const std::vector<uint64_t>& starts) const override {
    UserVisits visits;
    std::vector<double> before = {0};  // offsets of earlier files
    for (const double offsets : sample_.offsets_of_file)
      before.push_back(before.back() + std::round(offsets));
    const auto offset_of = [&](uint64_t row) {
      if (sample_.offsets_of_file.empty()) return row;
      return static_cast<uint64_t>(before[sample_.file_of_row[row]]) + sample_.line_of_row[row] - 1;
    };
    std::unordered_map<uint32_t, std::pair<uint64_t, uint32_t>> users;  // last period, how many
    const std::vector<uint32_t>& codes = sample_.columns[user].code;
    for (uint64_t row = 0; row < sample_.rows; ++row) {
      if (codes[row] == 0) continue;
      const auto period =
          static_cast<uint64_t>(std::ranges::upper_bound(starts, offset_of(row)) - starts.begin());
      auto& [last, number] = users[codes[row]];
      if (number == 0 || last != period) ++number;
      last = period;
      if (visits.records.size() < number) visits.records.resize(number);
      ++visits.records[number - 1];
    }
    for (const auto& [code, story] : users) visits.periods.push_back(story.second);
    return visits;
  }

 private:
  // True if all these records have this label, which they have by chance once in a million logs.
  static bool HaveOneLabel(const HalvesCount& some, const HalvesCount& all, bool one) {
    const auto events = [](const HalvesCount& count) { return count.events + count.later_events; };
    const auto of_label = [&](const HalvesCount& count) {
      const double ones = count.positives + count.later_positives;
      return one ? ones : events(count) - ones;
    };
    return of_label(some) == events(some) &&
           std::pow(of_label(all) / events(all), events(some)) < 1e-6;
  }
  // A number as a bin's edges have it.
  static float Scaled(double number) {
    return static_cast<float>(std::copysign(std::log1p(std::abs(number)), number));
  }
  static std::vector<HalvesCount> Listed(const auto& counts) {
    std::vector<HalvesCount> list;
    for (const auto& [key, count] : counts) list.push_back(count);
    return list;
  }

  const Sample& sample_;
};

}  // namespace

std::unique_ptr<Evidence> RawEvidence(const Sample& sample) {
  return std::make_unique<RawRecords>(sample);
}

}  // namespace tacit::inspect
