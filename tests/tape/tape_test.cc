// Every learner of the table of queries on tapes: no unit moves more than draws declare, the bill
// covers what they declare, and all that is released is the same in both worlds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>
#include <tuple>

#include "tape/run.h"
#include "tape/seeds.h"

namespace tacit::tape {
namespace {

using privacy::ParticipationMode;
using privacy::Query;
using privacy::Unit;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kSeeds = 16;  // of each case
constexpr double kLeastReach = 0.9;

std::vector<Query> QueriesOf(const Subject& subject) {
  return wiring::PlanQueries(subject.configured()).value();
}

// All that the runs of the cases went through.
struct Seen {
  std::map<Query, double> reach;  // the largest distance, in parts of the query's bound
  std::set<std::tuple<Query, ParticipationMode, Unit>> cells;
  std::set<privacy::MechanismKind> mechanisms;

  void See(const Subject& subject) {
    for (const Query query : QueriesOf(subject))
      cells.insert({query, subject.tried().mode, subject.tried().unit});
    mechanisms.insert(subject.plan().charge.mechanism);
    if (const auto& opening = subject.plan().opening_charge) mechanisms.insert(opening->mechanism);
  }
  void See(const Subject& subject, const Reading& reading) {
    for (const Query query : QueriesOf(subject))
      if (const auto found = reading.reach.find(DeclaredAs(query)); found != reading.reach.end())
        reach[query] = std::max(reach[query], found->second);
  }
};

// The queries, cells and mechanisms that no run has gone through.
std::vector<std::string> NotSeen(const Seen& seen) {
  std::vector<std::string> missing;
  for (const Query query : privacy::kQueries) {
    if (query == Query::kUnnoised || std::ranges::count(kAskedByNoLearner, query) > 0) continue;
    const auto reach = seen.reach.find(query);
    if (reach == seen.reach.end() || reach->second < kLeastReach)
      missing.push_back(fmt::format("{}: no unit comes near its bound", privacy::Name(query)));
    for (const auto mode :
         {ParticipationMode::kOnce, ParticipationMode::kPoisson, ParticipationMode::kAllocate})
      for (const Unit unit : {Unit::kEvent, Unit::kUser})
        if (PriceOf(query, mode, unit) != privacy::Price::kRefused &&
            !seen.cells.contains({query, mode, unit}))
          missing.push_back(fmt::format("{}: not run by {} of unit {}", privacy::Name(query),
                                        privacy::Name(mode), privacy::Name(unit)));
  }
  for (const privacy::MechanismRow& row : privacy::kMechanisms) {
    using enum privacy::ChargeOf;
    const bool has_learner = row.charge_of != kWindowCount && row.charge_of != kWindowScores &&
                             row.charge_of != kInspectedCounts &&
                             row.kind != privacy::MechanismKind::kNonPrivate;
    if (has_learner && !seen.mechanisms.contains(row.kind))
      missing.push_back(fmt::format("mechanism {}: not run", row.name));
  }
  return missing;
}

TEST(Tape, NoUnitMovesMoreThanIsDeclaredAndCharged) {
  Seen seen;
  const uint64_t first = FirstSeed();
  std::cout << fmt::format("tapes from seed {}\n", first);
  for (const Case& tried : AllCases()) {
    const Subject subject(tried);
    seen.See(subject);
    for (uint64_t seed = first; seed < first + kSeeds; ++seed) {
      const Reading reading = ReadTape(subject, seed);
      EXPECT_THAT(reading.wrong, IsEmpty()) << tried.name() << ", seed " << seed;
      seen.See(subject, reading);
    }
  }
  for (const auto& [query, reach] : seen.reach)
    std::cout << fmt::format("{}: {:.6f} of the bound\n", privacy::Name(query), reach);
  EXPECT_THAT(NotSeen(seen), IsEmpty());
  // The test misses what is left out.
  Seen less = seen;
  less.reach.erase(Query::kClipQuantile);
  less.cells.erase({Query::kPeriodSums, ParticipationMode::kOnce, Unit::kUser});
  less.mechanisms.erase(privacy::MechanismKind::kFest);
  EXPECT_THAT(NotSeen(less),
              testing::UnorderedElementsAre(HasSubstr("adaptive clip: no unit"),
                                            HasSubstr("sums of residuals and counts: not run"),
                                            HasSubstr("mechanism fest")));
}

}  // namespace
}  // namespace tacit::tape
