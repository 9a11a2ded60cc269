#include "tape/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <random>

#include "base/check.h"

namespace tacit::tape {
namespace {

using privacy::ParticipationMode;
using privacy::Query;
using privacy::Unit;

struct Asked {
  Query query;
  const char* model;
  const char* mechanism;
  const char* more = "";
};

constexpr char kPctr[] = "{kind: pctr, hidden: [4]}";
constexpr char kDeep[] = "{kind: pctr, hidden: [12, 12]}";
constexpr char kHistory[] = "history: {items: 8}, ";

// A learner for each query, then for each way of making the same query.
constexpr Asked kAsked[] = {
    {Query::kGradient, kPctr, "{kind: dp-sgd}"},
    {Query::kRowThreshold, kPctr, "{kind: adafest, threshold: 1, sigma_ratio: 2}"},
    {Query::kClipQuantile, kPctr,
     "{kind: dp-sgd, clipping: quantile, quantile: {noise_multiplier: 20}}"},
    {Query::kRowChoice, kPctr, "{kind: exponential, rows: 5, row_epsilon: 0.01}"},
    {Query::kRowHistogram, kPctr,
     "{kind: fest, vocabulary: {source: running, keep: 20, noise_multiplier: 5}}"},
    {Query::kTopRows, kPctr,
     "{kind: fest, vocabulary: {source: running, keep: 20, query: gumbel, noise_multiplier: 5}}"},
    {Query::kSequenceGradient, "{kind: sequence, length: 4, width: 4}", "{kind: dp-sgd}", kHistory},
    {Query::kPeriodCounts, "{kind: transitions, cells: 100}", "{kind: counts}", kHistory},
    {Query::kPeriodSums, "{kind: linear, crosses: [C*D]}", "{kind: sums}"},
    {Query::kItemHistogram, "{kind: sequence, length: 4, width: 4, start: popularity}",
     "{kind: dp-sgd}", kHistory},
    {Query::kPairCounts, "{kind: sequence, length: 4, width: 4, start: counts, cells: 100}",
     "{kind: dp-sgd}", kHistory},
    {Query::kRepresentation, kPctr, "{kind: forward, representation_clip: 2}"},
    {Query::kRankerGradient,
     "{kind: transitions, cells: 100, ranker: true, ranker_users: 10, ranker_steps: 5}",
     "{kind: counts}", kHistory},
    {Query::kGradient, kPctr, "{kind: dp-sgd, clipping: automatic}",
     "optimizer: {kind: adagrad}, "},
    {Query::kGradient, kDeep, "{kind: dp-sgd, clipping: per-layer}",
     "optimizer: {kind: sgd, momentum: 0.9, ema: 0.9}, "},
    {Query::kGradient, kDeep, "{kind: dp-sgd, carriers: {from: random, rank: 1}}"},
    {Query::kGradient, kDeep, "{kind: dp-sgd, carriers: {from: history, rank: 1}}"},
    {Query::kGradient, "{kind: pctr, hidden: [4], compute: bf16, row_precision: bf16}",
     "{kind: dp-sgd}", "optimizer: {kind: adam-bc}, "},
    {Query::kRowThreshold, kPctr,
     "{kind: adafest+, threshold: 1, sigma_ratio: 2, vocabulary: {source: first-period, keep: 30, "
     "noise_multiplier: 5}}"},
    {Query::kSequenceGradient, "{kind: sequence, encoder: gru, length: 4, width: 4, crops: 2}",
     "{kind: dp-sgd, clipping: automatic}", kHistory},
    {Query::kSequenceGradient, "{kind: sequence, encoder: lstm, length: 4, width: 4, tied: false}",
     "{kind: dp-sgd}", kHistory},
    {Query::kSequenceGradient,
     "{kind: sequence, length: 4, width: 8, re_attention: 1, compute: bf16}",
     "{kind: dp-sgd, carriers: {from: random, rank: 1}}", kHistory},
    {Query::kPeriodSums, "{kind: linear}", "{kind: sums, whole_columns: 10, deviations: 2}"},
};

constexpr ParticipationMode kModes[] = {ParticipationMode::kOnce, ParticipationMode::kPoisson,
                                        ParticipationMode::kAllocate};

std::string ParticipationOf(const Case& tried) {
  const bool whole = tried.query == Query::kPeriodCounts || tried.query == Query::kPeriodSums ||
                     tried.query == Query::kRankerGradient;
  const auto allowance = [&](int steps) {
    return tried.of_users() ? fmt::format(", max_participations: {}", steps) : "";
  };
  switch (tried.mode) {
    case ParticipationMode::kOnce:
      return fmt::format("{{mode: once, batch: {}{}}}", whole ? kPeriod : kPeriod / 3,
                         allowance(whole ? 2 : 5));
    case ParticipationMode::kPoisson:
      return fmt::format(
          "{{mode: poisson, batch: 12, sampling_rate: 0.4, steps_per_period: 3, period: {}{}}}",
          kPeriod, allowance(6));
    case ParticipationMode::kAllocate:
      break;
  }
  return fmt::format("{{mode: allocate, batch: 12, steps_per_period: 3, blocks: 2, period: {}{}}}",
                     kPeriod, allowance(12));
}

}  // namespace

std::string Case::name() const {
  return fmt::format("{} of {} by {}, {}, unit {}", privacy::Name(query), model, mechanism,
                     privacy::Name(mode), privacy::Name(unit));
}

bool Case::of_items() const { return more.starts_with(kHistory); }

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const Asked& asked : kAsked)
    for (const ParticipationMode mode : kModes)
      for (const Unit unit : {Unit::kEvent, Unit::kUser}) {
        const Case made{.query = asked.query,
                        .mode = mode,
                        .unit = unit,
                        .model = asked.model,
                        .mechanism = asked.mechanism,
                        .more = asked.more};
        const bool needs_period = made.mechanism.find("source: first") != std::string::npos;
        if (PriceOf(asked.query, mode, unit) == privacy::Price::kRefused) continue;
        if (needs_period && mode == ParticipationMode::kOnce) continue;
        cases.push_back(made);
      }
  return cases;
}

Case RandomCase(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](auto... texts) {
    const std::array<std::string, sizeof...(texts)> all = {std::string(texts)...};
    return all[random() % all.size()];
  };
  const auto number = [&](double least, double most) {
    const double share = static_cast<double>(random() % 1001) / 1000;
    return fmt::format("{:.6g}", least * std::pow(most / least, share));
  };
  const std::vector<Case> cases = AllCases();
  Case made = cases[random() % cases.size()];
  // Before the closing brace; a key that is there already stays.
  const auto add = [](std::string* map, const std::string& key, const std::string& value) {
    if (map->find(key + ":") == std::string::npos)
      map->insert(map->size() - 1, fmt::format(", {}: {}", key, value));
  };
  const bool steps = made.model.starts_with("{kind: pctr") || made.model.starts_with("{kind: seq");
  if (made.model == kPctr)
    made.model = fmt::format("{{kind: pctr, hidden: {}}}", one_of("[1]", "[3, 2]", "[8, 8, 4]"));
  if (made.model.starts_with("{kind: pctr")) add(&made.model, "compute", one_of("f32", "bf16"));
  if (made.model.starts_with("{kind: seq")) {
    add(&made.model, "encoder", one_of("transformer", "gru", "lstm"));
    add(&made.model, "tied", one_of("true", "false"));
  }
  if (steps && made.query != Query::kRepresentation) {
    add(&made.mechanism, "gradient_clip", number(1e-3, 1e3));
    if (made.query == Query::kGradient)
      add(&made.mechanism, "clipping", one_of("flat", "automatic", "per-layer", "quantile"));
  }
  if (steps && made.more.find("optimizer") == std::string::npos)
    made.more += fmt::format("optimizer: {{kind: {}, learning_rate: {}, ema: {}}}, ",
                             one_of("sgd, momentum: 0.9", "sgd", "adam", "adagrad", "adam-bc"),
                             number(1e-4, 10), one_of("0", "0.5", "0.99"));
  return made;
}

Case CaseOf(Query query, ParticipationMode mode, Unit unit) {
  const std::vector<Case> cases = AllCases();
  const auto found = std::ranges::find_if(cases, [&](const Case& tried) {
    return tried.query == query && tried.mode == mode && tried.unit == unit;
  });
  TACIT_CHECK(found != cases.end(), "no case asks this");
  return *found;
}

std::string_view DeclaredAs(Query query) {
  switch (query) {
    case Query::kUnnoised:
      return "";
    case Query::kGradient:
    case Query::kSequenceGradient:
      return "gradient";
    case Query::kRowThreshold:
      return "threshold";
    case Query::kClipQuantile:
      return "clip";
    case Query::kRowChoice:
      return "row choice";
    case Query::kRowHistogram:
      return "vocabulary";
    case Query::kTopRows:
      return "top rows";
    case Query::kPeriodCounts:
    case Query::kItemHistogram:
    case Query::kPairCounts:
      return "histogram";
    case Query::kPeriodSums:
      return "sums";
    case Query::kRepresentation:
      return "representations";
    case Query::kRankerGradient:
      return "ranker";
    case Query::kUnreadableCount:
    case Query::kScoreCounts:
      return "window";
    case Query::kInspectedCounts:
      return "inspection";
  }
  return "";
}

Result<config::Config> Configure(const Case& tried, const std::string& folder) {
  std::ofstream items(folder + "/items.dat");
  for (uint32_t i = 0; i < kItems; ++i) items << "item-" << i << "\n";
  items.close();
  std::ofstream(folder + "/log-0.jsonl", std::ios::app).close();
  return config::Parse(
      fmt::format("source: {{kind: log, format: json, files: {0}/log-*.jsonl}}\n"
                  "catalogue: {{file: {0}/items.dat}}\n"
                  "schema:\n  features:\n    - {{name: n, kind: dense}}\n"
                  "    - {{name: C, kind: categorical, buckets: {7}, dim: 3}}\n"
                  "    - {{name: D, kind: categorical, buckets: 5, dim: 2}}\n"
                  "learners:\n  - {{id: {6}, model: {1}, mechanism: {2}, {3}participation: {4}, "
                  "privacy: {{unit: {5}, epsilon: 8, delta: 1.0e-6}}}}\n"
                  "store: {{path: {0}/store}}\n"
                  "training: {{workers: 1, idle_priority: false}}\n",
                  folder, tried.model, tried.mechanism, tried.more, ParticipationOf(tried),
                  privacy::Name(tried.unit), tried.id, tried.buckets),
      "tape.yaml", {});
}

}  // namespace tacit::tape
