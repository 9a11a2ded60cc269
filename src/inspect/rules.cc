#include "inspect/rules.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/tuned.h"
#include "config/config.h"
#include "model/linear/columns.h"

namespace tacit::inspect {
namespace {

// 1, 2. A table has two rows for each value, and 256 at least: values that meet in a row are learnt
// as one, and that costs more than rows that nobody uses. This is the rule of config/demo.yaml,
// criteo.yaml and kafka.yaml; tests/bench/history/2026-11.md compares it with one row a value, in
// "the linear model with tables that values do not meet in".
constexpr double kRowsPerValue = 2, kRowsLeast = 256;

// 3. A value's odds are drawn towards the mean as if this many events of the mean were beside its
// own. It only orders two ways to read a column, and both are shrunk by it.
constexpr double kPriorEvents = 10;

// 4, 5. A short log is cut into this many periods, so that most of it is predicted by something,
// and a period has some 10,000 records, below which its counts do not stand out of the noise. Of
// 60,000 real rows, learnt in two, three and six periods, three gave the best AUC at epsilon 3 and
// 8 and .0004 less than two at epsilon 1; six were .003 to .009 worse, the more the smaller epsilon
// was. config/criteo.yaml cuts 80,000 rows into four, the last of which is predicted alone.
constexpr double kPeriodsOfLog = 4, kPeriodRecordsLeast = 10'000;

// 6 to 10. The network of config/demo.yaml, whose values were chosen on generated logs of 26
// categories. A row is updated when some 46 events of a step have it: an event adds one over the
// root of its categories to each of its rows, so the threshold goes with that root. At a clip of 12
// few events are clipped; below it probabilities drift up.
constexpr double kEventsOfRow = 46, kNetworkClip = 12;
constexpr uint32_t kNetworkLayers[] = {64, 32};
constexpr double kNetworkRate = 0.004, kNetworkRowRate = 0.02;

// The most rows that the configuration lets a table have.
constexpr double kRowsMost = 0x1p36;

// The rate that the first half says of a value.
double ForetoldRate(const HalvesCount& value, double rate) {
  return (value.positives + kPriorEvents * rate) / (value.events + kPriorEvents);
}

}  // namespace

double ValuesExpected(double distinct, double growth, double counted, double records) {
  if (counted <= 0 || records <= counted) return distinct;
  return distinct * std::pow(records / counted, std::clamp(growth, 0.0, 1.0));
}

uint64_t TableRows(double values) {
  return static_cast<uint64_t>(
      std::clamp(std::ceil(kRowsPerValue * values), kRowsLeast, kRowsMost));
}

bool AreNames(uint64_t distinct) { return distinct <= model::linear::Bins().values(); }

double ForetellingLoss(std::span<const HalvesCount> values, double rate) {
  double loss = 0, events = 0;
  for (const HalvesCount& value : values) {
    const double p = std::clamp(ForetoldRate(value, rate), 1e-9, 1 - 1e-9);
    loss -= value.later_positives * std::log(p) +
            (value.later_events - value.later_positives) * std::log1p(-p);
    events += value.later_events;
  }
  return events > 0 ? loss / events : 0;
}

double ForetellingAuc(std::span<const HalvesCount> values, double rate) {
  struct Ranked {
    double rate = 0, positives = 0, negatives = 0;
  };
  std::vector<Ranked> ranked;
  for (const HalvesCount& value : values)
    ranked.push_back({.rate = ForetoldRate(value, rate),
                      .positives = value.later_positives,
                      .negatives = value.later_events - value.later_positives});
  std::ranges::sort(ranked, {}, &Ranked::rate);
  double above = 0, positives = 0, negatives = 0;
  for (size_t i = 0; i < ranked.size();) {
    double equal_positives = 0, equal_negatives = 0;
    for (const double here = ranked[i].rate; i < ranked.size() && ranked[i].rate == here; ++i) {
      equal_positives += ranked[i].positives;
      equal_negatives += ranked[i].negatives;
    }
    above += equal_positives * (negatives + equal_negatives / 2);
    positives += equal_positives;
    negatives += equal_negatives;
  }
  return positives > 0 && negatives > 0 ? above / (positives * negatives) : 0.5;
}

double RatingThreshold(std::span<const std::pair<double, uint64_t>> counts) {
  TACIT_CHECK(counts.size() >= 2, "one rating cannot be divided");
  double all = 0, below = 0;
  for (const auto& [rating, count] : counts) all += static_cast<double>(count);
  double best = INFINITY, threshold = counts.back().first;
  for (size_t i = 1; i < counts.size(); ++i) {
    below += static_cast<double>(counts[i - 1].second);
    const double unevenness = std::abs(below - all / 2);
    if (unevenness >= best) continue;
    best = unevenness;
    threshold = counts[i].first;
  }
  return threshold;
}

uint64_t PeriodRecords(std::optional<double> epsilon, double records) {
  const double most = static_cast<double>(config::DefaultPeriod(epsilon.value_or(1)));
  const double part = std::max(kPeriodRecordsLeast, records / kPeriodsOfLog);
  const double least = std::min(most, part);
  return least < most ? static_cast<uint64_t>(std::ceil(least / 100) * 100)
                      : static_cast<uint64_t>(most);
}

// On MovieLens-100k, whose users are in one period each, one period of all records gave an NDCG@10
// of .072 at epsilon 8 and .048 at 1 (means of eight runs), two periods .064 and .038, five .058
// and .028.
uint64_t CountsPeriodRecords(double records) {
  return static_cast<uint64_t>(
      std::clamp(std::ceil(records / 100) * 100, kPeriodRecordsLeast, tuned::kPeriodMost));
}

std::vector<uint64_t> StepStarts(std::span<const double> file_offsets, uint64_t batch,
                                 uint64_t files) {
  std::vector<uint64_t> starts = {0};
  uint64_t end = 0, files_ended = 0;
  for (const double offsets : file_offsets) {
    end += static_cast<uint64_t>(std::round(offsets));
    while (end - starts.back() > batch) {
      starts.push_back(starts.back() + batch);
      files_ended = 0;
    }
    if (end == starts.back() || ++files_ended < files) continue;
    starts.push_back(end);
    files_ended = 0;
  }
  return starts;
}

uint64_t WithoutShortRest(uint64_t period, uint64_t offsets) {
  const uint64_t periods = offsets / period, rest = offsets % period;
  if (periods == 0 || rest == 0 || 2 * rest >= period) return period;
  return ((offsets + periods - 1) / periods + 99) / 100 * 100;
}

// A release's noise goes with the root of the allowance K, and what is left to be learnt is what
// users do in their first K periods. The best K is where the mean of min(K, periods) over the root
// of K is largest. MovieLens-100k, whose users come once: K = 1 is best at every epsilon
// (tests/bench/history/2026-11.md, "next items of a stream, as it comes").
uint32_t UserAllowance(std::span<const uint32_t> periods) {
  const uint32_t most = periods.empty() ? 1 : std::max(1u, *std::ranges::max_element(periods));
  std::vector<double> users(most + 1);  // by number of periods
  for (const uint32_t number : periods) users[number] += 1;
  double more = 0;  // users of more periods than K
  for (uint32_t k = 1; k <= most; ++k) more += users[k];
  double kept = 0, best = 0;
  uint32_t allowance = 1;
  for (uint32_t k = 1; k <= most; ++k) {
    kept += more;
    more -= users[k];
    const double told = kept / std::sqrt(static_cast<double>(k));
    if (told <= best) continue;
    best = told;
    allowance = k;
  }
  return allowance;
}

double LeftOutShare(const UserVisits& visits, uint32_t allowance) {
  double all = 0, out = 0;
  for (size_t k = 0; k < visits.records.size(); ++k) {
    all += visits.records[k];
    out += k < allowance ? 0 : visits.records[k];
  }
  if (visits.records.empty())
    for (const uint32_t periods : visits.periods) {
      all += periods;
      out += periods - std::min(periods, allowance);
    }
  return all > 0 ? out / all : 0;
}

NetworkRule NetworkFor(uint64_t categories) {
  const double columns = std::max(1.0, static_cast<double>(categories));
  return {.hidden = {std::begin(kNetworkLayers), std::end(kNetworkLayers)},
          .threshold = std::max(1.0, std::round(10 * kEventsOfRow / std::sqrt(columns)) / 10),
          .gradient_clip = kNetworkClip,
          .learning_rate = kNetworkRate,
          .row_learning_rate = kNetworkRowRate};
}

}  // namespace tacit::inspect
