#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "privacy/charge.h"

// All queries that Tacit asks of user records, with their charges: one row for each kind of query,
// one cell for each participation and unit. Noise planning, charging and refusing use this table. A
// new query needs a row here, and its cells in tests/unit/wiring/query_table_test.cc, which builds
// every one of them.
namespace tacit::privacy {

enum class Query : uint8_t {
  kUnnoised,          // the sum of a learner that promises nothing
  kGradient,          // a click model's step: the clipped sum
  kRowThreshold,      // adafest: the rows that enough units touch
  kClipQuantile,      // count of units no longer than the clip
  kRowChoice,         // exponential: a choice of rows, by one-shot Gumbel
  kRowHistogram,      // a vocabulary: a period's noised counts
  kTopRows,           // a vocabulary: a period's largest counts, by one-shot Gumbel
  kSequenceGradient,  // a sequence model's step: the clipped sum of whole histories
  kPeriodCounts,      // transitions: all counts of a period, which share one Gaussian
  kPeriodSums,        // linear: all sums and counts of a period, which share one Gaussian
  kItemHistogram,     // a sequence model's start: the number of users with each item of a period
  kPairCounts,        // a sequence model's start: all counts of a period, which share one Gaussian
  kRepresentation,    // forward: each record's noised representation, its label beside it
  kRankerGradient,    // a ranker's steps on a period, with every unit in each: one Gaussian
  kUnreadableCount,   // the breaker: the records of a window that could not be learnt from
  kScoreCounts,       // private quality: a window's predictions by what came of them
  kInspectedCounts,   // an inspection: all counts of a sample, which share one Gaussian
};
inline constexpr Query kQueries[] = {
    Query::kUnnoised,       Query::kGradient,         Query::kRowThreshold,
    Query::kClipQuantile,   Query::kRowChoice,        Query::kRowHistogram,
    Query::kTopRows,        Query::kSequenceGradient, Query::kPeriodCounts,
    Query::kPeriodSums,     Query::kItemHistogram,    Query::kPairCounts,
    Query::kRepresentation, Query::kRankerGradient,   Query::kUnreadableCount,
    Query::kScoreCounts,    Query::kInspectedCounts};

enum class Price : uint8_t {
  kRefused,
  kUnbounded,  // nothing is promised
  // (1 / sigma)^2, in full, at each step that the unit is in.
  kGaussian,
  // One sampled event at each step that the unit is eligible for, which stands for all Gaussians of
  // the step together.
  kSampledGaussian,
  // (1 / sigma)^2, in full, at each step that the unit is drawn into. Its coins count as known.
  kKnownCoins,
  // One allocation for each block of steps that the unit is eligible for, which stands for all
  // Gaussians of the one step that the unit is in. All blocks of a period are charged when it
  // begins.
  kAllocatedGaussian,
  // rho, in full, at each step that the unit is in or eligible for, sampled or not.
  kZcdp,
  // In full, once for each period that the unit is in, before its steps.
  kGaussianOfPeriod,
  kZcdpOfPeriod,
};

constexpr bool IsOfPeriod(Price price) {
  return price == Price::kGaussianOfPeriod || price == Price::kZcdpOfPeriod;
}

namespace internal {
// Each for unit event and unit user: once, poisson, allocate.
struct Row {
  Price cell[6];
};
constexpr Row Anyone(Price once, Price poisson, Price allocate) {
  return {{once, once, poisson, poisson, allocate, allocate}};
}
constexpr Row Users(Price once, Price poisson, Price allocate) {
  constexpr Price kRefused = Price::kRefused;
  return {{kRefused, once, kRefused, poisson, kRefused, allocate}};
}
constexpr Row Events(Price once, Price poisson, Price allocate) {
  constexpr Price kRefused = Price::kRefused;
  return {{once, kRefused, poisson, kRefused, allocate, kRefused}};
}
constexpr Row RowOf(Query query) {
  switch (query) {
    case Query::kUnnoised:
      return Anyone(Price::kUnbounded, Price::kUnbounded, Price::kUnbounded);
    case Query::kGradient:
    case Query::kRowThreshold:
    case Query::kClipQuantile:
      return Anyone(Price::kGaussian, Price::kSampledGaussian, Price::kAllocatedGaussian);
    case Query::kRowChoice:  // its bound has no sampled form, and none of a block of steps
      return Anyone(Price::kZcdp, Price::kZcdp, Price::kRefused);
    case Query::kRowHistogram:  // `once` holds no period
      return Anyone(Price::kRefused, Price::kGaussianOfPeriod, Price::kGaussianOfPeriod);
    case Query::kTopRows:
      return Anyone(Price::kRefused, Price::kZcdpOfPeriod, Price::kZcdpOfPeriod);
    case Query::kSequenceGradient:  // reads a user's records again and again
      return Users(Price::kGaussian, Price::kSampledGaussian, Price::kAllocatedGaussian);
    case Query::kPeriodCounts:  // each step is a period
    case Query::kRankerGradient:
      return Users(Price::kGaussian, Price::kRefused, Price::kRefused);
    case Query::kRepresentation:  // a user's records would be as many representations
      return Events(Price::kGaussian, Price::kKnownCoins, Price::kRefused);
    // Each window is a step of its own, for any learners. An unreadable record names no
    // user, so nothing bounds what one adds to the count.
    case Query::kUnreadableCount:
      return Events(Price::kGaussian, Price::kRefused, Price::kRefused);
    // A window is a step of its own, of records that are in one step of it. A user's records would
    // be in several, and in several counts.
    case Query::kScoreCounts:
      return Events(Price::kGaussian, Price::kRefused, Price::kRefused);
    case Query::kPeriodSums:       // each step is a period
    case Query::kInspectedCounts:  // each step is an inspection
      return Anyone(Price::kGaussian, Price::kRefused, Price::kRefused);
    case Query::kItemHistogram:  // `once` holds no period
    case Query::kPairCounts:
      return Users(Price::kRefused, Price::kGaussianOfPeriod, Price::kGaussianOfPeriod);
  }
  return Anyone(Price::kRefused, Price::kRefused, Price::kRefused);
}
}  // namespace internal

constexpr Price PriceOf(Query query, ParticipationMode mode, Unit unit) {
  const size_t of_mode = static_cast<size_t>(mode) - static_cast<size_t>(ParticipationMode::kOnce);
  return internal::RowOf(query).cell[2 * of_mode + (unit == Unit::kUser ? 1 : 0)];
}

std::string_view Name(Query query);

// The queries of a charge, as far as it shows: the gradient of a sequence model appears as
// kGradient, and what its start releases as a vocabulary's histogram. At least one.
std::vector<Query> QueriesOf(const Charge& charge,
                             std::span<const MechanismRow> kinds = kMechanisms);

// True for the charge of a period's opening; false for that of a step.
bool IsOfPeriod(const Charge& charge);

// Checks that the charges of a step, and of a period's opening, cover these queries. A query
// without a charge, or a charge without a query, ends the program.
void CheckCharges(const std::vector<Query>& queries, const Charge& step,
                  const std::optional<Charge>& opening);

// The first of these queries that the table refuses.
std::optional<Query> RefusedOf(const std::vector<Query>& queries, ParticipationMode mode,
                               Unit unit);

}  // namespace tacit::privacy
