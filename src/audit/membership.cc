#include "audit/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "audit/mu_bound.h"
#include "base/check.h"

namespace tacit::audit {
namespace {

// The values of members, or of others, ascending.
std::vector<double> ValuesOf(std::span<const Score> scores, bool members) {
  std::vector<double> values;
  for (const Score& score : scores)
    if (score.member == members) values.push_back(score.value);
  std::ranges::sort(values);
  TACIT_CHECK(!values.empty(), "scores of both kinds are needed");
  return values;
}

uint64_t AtLeast(const std::vector<double>& ascending, double threshold) {
  return static_cast<uint64_t>(ascending.end() - std::ranges::lower_bound(ascending, threshold));
}

double Share(uint64_t part, size_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// A mix of all of an id's bits (the finaliser of splitmix64).
uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Result<std::vector<Score>> Less(std::span<const Score> scores, std::span<const Score> reference) {
  const auto fail = [](uint64_t id, const char* what) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("record {}: {}", id, what));
  };
  std::unordered_map<uint64_t, const Score*> partner;
  for (const Score& score : reference)
    if (!partner.emplace(score.id, &score).second)
      return fail(score.id, "the reference model has two scores of it");
  std::vector<Score> less;
  for (const Score& score : scores) {
    const auto found = partner.find(score.id);
    if (found == partner.end()) return fail(score.id, "the reference model has no score of it");
    if (found->second == nullptr) return fail(score.id, "the model has two scores of it");
    if (found->second->member != score.member)
      return fail(score.id, "one side says it was learnt from, the other that it was not");
    less.push_back({score.id, score.value - found->second->value, score.member});
    found->second = nullptr;
  }
  if (less.size() != partner.size())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the reference model has scores of {} records, the model of {}",
                            partner.size(), less.size()));
  return less;
}

double AreaUnderCurve(std::span<const Score> scores) {
  const std::vector<double> members = ValuesOf(scores, true), others = ValuesOf(scores, false);
  double sum = 0;
  for (const double value : members) {
    const auto [below, end] = std::ranges::equal_range(others, value);
    sum += static_cast<double>(below - others.begin()) + 0.5 * static_cast<double>(end - below);
  }
  return sum / static_cast<double>(members.size()) / static_cast<double>(others.size());
}

double FoundAt(std::span<const Score> scores, double false_alarms) {
  const std::vector<double> members = ValuesOf(scores, true), others = ValuesOf(scores, false);
  const auto allowed =
      static_cast<size_t>(std::floor(false_alarms * static_cast<double>(others.size()) + 1e-9));
  if (allowed >= others.size()) return 1;
  // The threshold lies just above the largest score that may raise no alarm.
  const double at = others[others.size() - 1 - allowed];
  return Share(static_cast<uint64_t>(members.end() - std::ranges::upper_bound(members, at)),
               members.size());
}

double BestAccuracy(std::span<const Score> scores) {
  const std::vector<double> members = ValuesOf(scores, true), others = ValuesOf(scores, false);
  double best = 0.5;
  for (const double at : members)
    best = std::max(best, (1 + Share(AtLeast(members, at), members.size()) -
                           Share(AtLeast(others, at), others.size())) /
                              2);
  return best;
}

Counts CountAbove(std::span<const Score> scores, double threshold) {
  Counts counts;
  for (const Score& score : scores) {
    (score.member ? counts.members : counts.others) += 1;
    if (score.value >= threshold) (score.member ? counts.found : counts.false_alarms) += 1;
  }
  return counts;
}

double ProvedEpsilon(const Counts& counts, double delta, double alpha) {
  const double found = RateLower(counts.found, counts.members, alpha / 2);
  const double alarms = RateUpper(counts.false_alarms, counts.others, alpha / 2);
  return found > delta ? std::max(0.0, std::log((found - delta) / alarms)) : 0;
}

double ProvedMu(const Counts& counts, double alpha) {
  const double found = RateLower(counts.found, counts.members, alpha / 2);
  const double alarms = RateUpper(counts.false_alarms, counts.others, alpha / 2);
  return std::max(0.0, NormalQuantile(found) - NormalQuantile(alarms));
}

Halves Split(std::span<const Score> scores, uint64_t salt) {
  Halves halves;
  for (const Score& score : scores)
    (Mixed(Mixed(score.id) ^ salt) % 2 == 0 ? halves.of_choice : halves.judged).push_back(score);
  return halves;
}

SplitBound BoundBySplit(std::span<const Score> scores, uint64_t salt, double alpha) {
  const Halves halves = Split(scores, salt);
  const auto both = [](const std::vector<Score>& half) {
    const auto members = std::ranges::count_if(half, &Score::member);
    return members > 0 && members < static_cast<ptrdiff_t>(half.size());
  };
  SplitBound bound;
  if (!both(halves.of_choice) || !both(halves.judged)) return bound;
  const Threshold chosen =
      ChooseThreshold(ValuesOf(halves.of_choice, false), ValuesOf(halves.of_choice, true));
  if (chosen.below) return bound;  // members score lower than others: nothing to prove this way
  bound.threshold = std::nextafter(chosen.at, HUGE_VAL);
  bound.counts = CountAbove(halves.judged, bound.threshold);
  bound.mu = ProvedMu(bound.counts, alpha);
  return bound;
}

Interval AreaInterval(std::span<const Score> scores, double alpha) {
  const auto members = static_cast<size_t>(std::ranges::count_if(scores, &Score::member));
  const auto fewer = static_cast<double>(std::min(members, scores.size() - members));
  const double seen = AreaUnderCurve(scores), off = std::sqrt(std::log(2 / alpha) / (2 * fewer));
  return {std::max(0.0, seen - off), std::min(1.0, seen + off)};
}

FoundBySplit FoundAtBySplit(std::span<const Score> scores, double false_alarms, uint64_t salt,
                            double alpha) {
  const Halves halves = Split(scores, salt);
  std::vector<double> others;
  for (const Score& score : halves.of_choice)
    if (!score.member) others.push_back(score.value);
  if (others.empty()) return {};
  std::ranges::sort(others);
  const auto may =
      static_cast<size_t>(std::floor(false_alarms * static_cast<double>(others.size()) + 1e-9));
  const double at =
      std::nextafter(others[others.size() - 1 - std::min(may, others.size() - 1)], HUGE_VAL);
  const Counts counts = CountAbove(halves.judged, at);
  if (counts.members == 0 || counts.others == 0) return {};
  return {.found = Share(counts.found, counts.members),
          .truth = {RateLower(counts.found, counts.members, alpha / 3),
                    RateUpper(counts.found, counts.members, alpha / 3)},
          .false_alarms_upper = RateUpper(counts.false_alarms, counts.others, alpha / 3)};
}

}  // namespace tacit::audit
