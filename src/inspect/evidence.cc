#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "inspect/names.h"
#include "inspect/roles.h"
#include "inspect/rules.h"
#include "inspect/shape.h"
#include "model/linear/columns.h"

namespace tacit::inspect {
namespace {

constexpr double kMetOnce = 0.9;     // of the records have a pair of their own
constexpr double kLabelsLeast = 10;  // of either kind, by which a column may be judged
constexpr double kByChance = 1e-6;
// A value that tells has a twentieth of the labels of 1, and one record in fifty has no such label.
constexpr double kOnesLeast = 0.05, kZerosMost = 0.02;
constexpr size_t kWordsJudged = 10;                // of a label whose values are open
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
    if (!label.values_open)
      return ForetoldBy(c, [&](uint64_t row) { return LabelOfRow(sample_, label, row); });
    const std::vector<uint32_t>& codes = sample_.columns[label.column].code;
    std::map<uint32_t, uint64_t> counts;
    for (const uint32_t code : codes) {
      const std::string text = code == 0 ? "" : sample_.columns[label.column].TextOf(code);
      if (std::ranges::find(label.values, text, [](const auto& v) { return v.first; }) !=
          label.values.end())
        ++counts[code];
    }
    std::vector<std::pair<uint64_t, uint32_t>> words;
    for (const auto& [code, count] : counts) words.emplace_back(count, code);
    std::ranges::sort(words, std::greater());
    words.resize(std::min(words.size(), kWordsJudged));
    std::optional<Foretold> best;
    for (const auto& [count, one] : words) {
      auto of_word = ForetoldBy(c, [&](uint64_t row) {
        return counts.contains(codes[row]) ? std::optional(codes[row] == one) : std::nullopt;
      });
      if (!of_word) continue;
      of_word->label = config::QuotedYaml(sample_.columns[label.column].TextOf(one));
      const auto worth = [](const Foretold& f) {
        return std::tuple(f.has_auc, f.is_always_one, f.telling ? f.telling->ones : 0,
                          std::max(f.by_presence, f.by_value));
      };
      if (!best || worth(*of_word) > worth(*best)) best = std::move(of_word);
    }
    return best;
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
  // `is_one` gives the label of a row, or nothing.
  std::optional<Foretold> ForetoldBy(size_t c, const auto& is_one) const {
    const model::linear::Bins bins;
    const Column& column = sample_.columns[c];
    const TextsForNone none = TextsForNoneOf(column);
    const uint32_t empty_list = column.lists > 0 ? CodeOfValue("") : 0;
    const uint32_t top = MostFrequent(column);
    std::array<HalvesCount, 2> by_presence;
    std::unordered_map<uint64_t, HalvesCount> by_value, by_bin;  // texts have bins of their own
    HalvesCount all, filled, unusual, zero, below;
    for (uint64_t row = 0; row < sample_.rows; ++row) {
      const std::optional<bool> one = is_one(row);
      if (!one) continue;
      const uint32_t code = column.code[row];
      const double number = column.number.empty() ? NAN : column.number[row];
      const bool later = row * 2 >= sample_.rows;
      if (!column.number.empty()) {
        const uint64_t bin = std::isnan(number) ? kNoNumber + code : bins.Of(Scaled(number));
        by_bin[bin].Add(later, *one);
      }
      const bool present = code != 0 && code != empty_list && !none.texts.contains(code);
      const bool counts = present && number != 0 && number != -1;
      if (counts) filled.Add(later, *one);
      if (counts && code != top) unusual.Add(later, *one);
      if (number == 0) zero.Add(later, *one);
      if (number < 0) below.Add(later, *one);
      for (HalvesCount* count : {&by_presence[present ? 1 : 0], &by_value[code], &all})
        count->Add(later, *one);
    }
    if (all.events == 0) return std::nullopt;
    Foretold foretold{.has_auc = std::min(all.later_positives,
                                          all.later_events - all.later_positives) >= kLabelsLeast};
    const char* has_it = Events(zero) > 0 ? "is not 0" : "is filled in";
    foretold.is_always_one = Events(filled) >= kLabelsLeast && HaveOneLabel(filled, all);
    if (foretold.is_always_one)
      foretold.telling = {.where = has_it,
                          .records = Events(filled),
                          .ones = Ones(filled),
                          .share = Ones(filled) / Ones(all)};
    Offer(
        filled, all, [&] { return has_it; }, &foretold);
    const auto usual = [&] { return "is not " + ValueText(column, top); };
    if (!foretold.is_always_one && top != 0 && Offer(unusual, all, usual, &foretold))
      foretold.is_always_one = HaveOneLabel(unusual, all);
    Offer(
        by_presence[0], all, [] { return "is missing"; }, &foretold);
    Offer(
        zero, all, [] { return "is 0"; }, &foretold);
    Offer(
        below, all, [] { return "is below 0"; }, &foretold);
    HalvesCount telling;  // of all values that tell: those that pass with time have a few each
    uint32_t example = 0;
    size_t values = 0;
    for (const auto& [code, count] : by_value) {
      if (code == 0 || column.lists > 0 || !AreOnes(count, all)) continue;
      if (Events(count) > Events(by_value[example]) || example == 0)
        example = static_cast<uint32_t>(code);
      telling.events += count.events;
      telling.positives += count.positives;
      telling.later_events += count.later_events;
      telling.later_positives += count.later_positives;
      ++values;
    }
    const auto text = [&] {
      return (values > 1 ? fmt::format("is one of {} values such as ", values) : "is ") +
             ValueText(column, example);
    };
    Offer(telling, all, text, &foretold);
    if (!column.element_of_row.empty()) ForetellByElements(column, is_one, &foretold);
    if (!foretold.has_auc) return foretold;  // a few records tell nothing
    const double rate = all.positives / all.events;
    const auto share = [](const HalvesCount& count) {
      return count.later_events > 0 ? count.later_positives / count.later_events : 0;
    };
    foretold.by_presence = ForetellingAuc(by_presence, rate);
    foretold.by_value =
        std::max(ForetellingAuc(Listed(by_value), rate), ForetellingAuc(Listed(by_bin), rate));
    foretold.filled_is_one = share(by_presence[1]) > share(by_presence[0]);
    return foretold;
  }

  // Judges by each element of lists alone: a model sees elements. A text without a separator is an
  // element too.
  void ForetellByElements(const Column& column, const auto& is_one, Foretold* foretold) const {
    struct Story {
      HalvesCount count;
      uint32_t first = 0, last = UINT32_MAX;
    };
    std::unordered_map<uint32_t, Story> stories;
    // A long sample has no elements of its last rows.
    const auto rows = static_cast<uint32_t>(column.element_of_row.size() < kPairsMost
                                                ? sample_.rows
                                                : column.element_of_row.back().first);
    std::vector<uint8_t> has_elements(rows);
    HalvesCount all;
    const auto see = [&](uint32_t row, uint32_t element, bool one) {
      const auto [at, fresh] = stories.try_emplace(element);
      if (fresh) at->second.first = row;
      if (std::exchange(at->second.last, row) != row) at->second.count.Add(row * 2 >= rows, one);
    };
    for (const auto& [row, element] : column.element_of_row) {
      if (row >= rows) continue;
      has_elements[row] = 1;
      if (const std::optional<bool> one = is_one(row)) see(row, element, *one);
    }
    for (uint32_t row = 0; row < rows; ++row) {
      const std::optional<bool> one = is_one(row);
      if (!one) continue;
      all.Add(row * 2 >= rows, *one);
      const bool alone = column.lists == 0 && has_elements[row] == 0 && column.code[row] != 0;
      if (alone) see(row, column.code[row], *one);
    }
    for (const auto& [of, story] : stories) {
      const uint32_t element = of, first = story.first;
      if (Events(story.count) < kLabelsLeast) continue;
      Offer(
          story.count, all,
          [&] {
            const std::string text = column.TextOf(element);
            return "has " + (text.empty() ? "one value of its lists, first at " +
                                                sample_.PlaceOf(first) + ','
                                          : config::QuotedYaml(text));
          },
          foretold);
    }
  }

  // A value as people may read it, or the place of its first record.
  std::string ValueText(const Column& column, uint32_t code) const {
    const std::string text = column.TextOf(code);
    if (!text.empty()) return config::QuotedYaml(text);
    const auto first = std::ranges::find(column.code, code) - column.code.begin();
    return "as at " + sample_.PlaceOf(static_cast<uint64_t>(first)) + ',';
  }
  // The code that most records have, which is 0 where most have no value.
  static uint32_t MostFrequent(const Column& column) {
    std::unordered_map<uint32_t, uint64_t> counts;
    std::pair<uint64_t, uint32_t> most;
    for (const uint32_t code : column.code) most = std::max(most, {++counts[code], code});
    return most.second;
  }
  static double Events(const HalvesCount& count) { return count.events + count.later_events; }
  static double Ones(const HalvesCount& count) { return count.positives + count.later_positives; }
  // True if all these records have a label of 1, which they have by chance once in a million logs.
  static bool HaveOneLabel(const HalvesCount& some, const HalvesCount& all) {
    return Ones(some) == Events(some) &&
           std::pow(Ones(all) / Events(all), Events(some)) < kByChance;
  }
  // True if next to no others than labels of 1 are among these records, and these are at most half
  // of all, so that it is no chance (Chernoff's bound).
  static bool AreOnes(const HalvesCount& some, const HalvesCount& all) {
    const double events = Events(some), zeros = events - Ones(some), rate = Ones(all) / Events(all);
    if (events < kLabelsLeast || zeros > std::max(1.0, kZerosMost * events) || rate > 0.5)
      return false;
    const double share = Ones(some) / events;
    const double nats = share * std::log(share / rate) +
                        (zeros > 0 ? (1 - share) * std::log((1 - share) / (1 - rate)) : 0);
    return std::exp(-events * nats) < kByChance;
  }
  // Takes these records for the telling ones if they are ones and a part of all, and more than
  // those before. `where` names them.
  static bool Offer(const HalvesCount& some, const HalvesCount& all, const auto& where,
                    Foretold* foretold) {
    const double ones = Ones(some);
    if (!AreOnes(some, all) || ones < kOnesLeast * Ones(all) ||
        (foretold->telling && ones <= foretold->telling->ones))
      return false;
    foretold->telling = {
        .where = where(), .records = Events(some), .ones = ones, .share = ones / Ones(all)};
    return true;
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
