#include "tape/cases.h"

#include <fmt/format.h>

#include <fstream>

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

bool Case::of_items() const { return more == kHistory; }

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
  std::ofstream(folder + "/log.jsonl").close();
  return config::Parse(
      fmt::format("source: {{kind: log, format: json, files: {0}/log.jsonl}}\n"
                  "catalogue: {{file: {0}/items.dat}}\n"
                  "schema:\n  features:\n    - {{name: n, kind: dense}}\n"
                  "    - {{name: C, kind: categorical, buckets: 40, dim: 3}}\n"
                  "    - {{name: D, kind: categorical, buckets: 5, dim: 2}}\n"
                  "learners:\n  - {{id: it, model: {1}, mechanism: {2}, {3}participation: {4}, "
                  "privacy: {{unit: {5}, epsilon: 8, delta: 1.0e-6}}}}\n"
                  "store: {{path: {0}/store}}\n",
                  folder, tried.model, tried.mechanism, tried.more, ParticipationOf(tried),
                  privacy::Name(tried.unit)),
      "tape.yaml", {});
}

}  // namespace tacit::tape
