// Twins of the whole service: two worlds that differ in their records, on one tape. All that leaves
// by public ways is the same to the last byte; what is raw by design is not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tape/public_ways.h"
#include "tape/seeds.h"

namespace tacit::tape {
namespace {

using privacy::ParticipationMode;
using privacy::Query;
using privacy::Unit;
using testing::StartsWith;

// A linear model, counts of transitions with a ranker and without, a click model that selects rows,
// and a sequence model; by record and by user, where there is such a price.
std::vector<Case> TwinCases() {
  std::vector<Case> cases;
  for (const Query query : {Query::kPeriodSums, Query::kPeriodCounts, Query::kRankerGradient,
                            Query::kRowThreshold, Query::kSequenceGradient})
    for (const Unit unit : {Unit::kEvent, Unit::kUser})
      if (PriceOf(query, ParticipationMode::kOnce, unit) != privacy::Price::kRefused)
        cases.push_back(CaseOf(query, ParticipationMode::kOnce, unit));
  return cases;
}

// A life on disk, and all that it showed by public ways.
struct Twin {
  explicit Twin(PublicWays::Plant plant = {}) : ways(std::move(plant)) {}
  Life life;
  PublicWays ways;
};

void LiveIn(Twin* world, const Case& tried, const Records& records,
            const Circumstances& circumstances) {
  StartChance(1);
  world->life = LiveOnDisk(tried, records, circumstances, {}, {},
                           [&](const Running& running) { world->ways.Ask(running); });
}

std::string Compare(const Twin& one, const Twin& other) {
  if (std::string asked = Difference(one.life, other.life); !asked.empty()) return asked;
  return FirstDifference(one.ways.shown(), other.ways.shown());
}

TEST(Twins, AllThatLeavesByPublicWaysIsTheSame) {
  const uint64_t seed = FirstSeed();
  std::set<std::string> answered;
  for (const Case& tried : TwinCases()) {
    SCOPED_TRACE(fmt::format("{}, seed {}", tried.name(), seed));
    const Subject subject(tried);
    const Records records(subject, seed);
    Twin leads, lacks_unit, has_others;
    LiveIn(&leads, tried, records, {.seed = seed});
    const Circumstances follows{.seed = seed, .leads = &leads.life};
    LiveIn(&lacks_unit, tried, records.WithoutUnit(), follows);
    LiveIn(&has_others, tried, records.Beside(seed + 1'000'000), follows);
    EXPECT_EQ(Compare(leads, lacks_unit), "");
    EXPECT_EQ(Compare(leads, has_others), "");
    if (tried.of_users()) {
      EXPECT_NE(leads.ways.raw(), has_others.ways.raw());
    }
    answered.insert(leads.ways.answered().begin(), leads.ways.answered().end());
  }
  EXPECT_EQ(answered, PublicRoutes()) << "each public route answers one of the models";
}

// The way on which a fault of the daemon shows, beside a world without a record.
std::string WayOf(Query query, const PublicWays::Plant& plant) {
  const uint64_t seed = FirstSeed();
  const Case tried = CaseOf(query);
  const Subject subject(tried);
  const Records records(subject, seed);
  Twin leads(plant), follows(plant);
  LiveIn(&leads, tried, records.Nothing(), {.seed = seed});
  LiveIn(&follows, tried, records, {.seed = seed, .leads = &leads.life});
  EXPECT_EQ(Difference(leads.life, follows.life), "") << "seed " << seed;
  return FirstDifference(leads.ways.shown(), follows.ways.shown());
}

TEST(PlantedTwins, APublicMetricThatCountsRecordsIsFound) {
  const auto plant = [](const Running& running, serve::Services*) {
    running.registry.AddCounter("tacit_recommendations_total", {{"learner", "it"}})
        .RaiseTo(static_cast<double>(running.learning.intake().records_good()));
  };
  EXPECT_THAT(WayOf(Query::kRowThreshold, plant), StartsWith("GET /metrics"));
}

TEST(PlantedTwins, TheTimeOfTheLastRecordInAPublicMetricIsFound) {
  const auto plant = [](const Running& running, serve::Services*) {
    const std::vector<int64_t>& times = running.records.batch().timestamp_ms;
    running.registry.AddGauge("tacit_last_commit_timestamp_seconds")
        .Set(times.empty() ? 0 : static_cast<double>(times.back()));
  };
  EXPECT_THAT(WayOf(Query::kRowThreshold, plant), StartsWith("GET /metrics"));
}

TEST(PlantedTwins, TheNumberOfRawUsersInARouteIsFound) {
  const auto plant = [](const Running& running, serve::Services* services) {
    const event::Batch& batch = running.records.batch();
    std::set<std::string> users;
    for (size_t i = 0; i < batch.size(); ++i) users.emplace(batch.user[i]);
    services->readiness = [n = users.size()] {
      return serve::Readiness{.ready = true, .reason = "", .degraded = fmt::format("{} users", n)};
    };
  };
  EXPECT_THAT(WayOf(Query::kPeriodCounts, plant), StartsWith("GET /readyz"));
}

TEST(PlantedTwins, AnAucInARouteIsFound) {
  const auto plant = [](const Running& running, serve::Services* services) {
    services->code_version = fmt::format("{}", running.progress.view(0).auc);
  };
  EXPECT_THAT(WayOf(Query::kRowThreshold, plant), StartsWith("GET /v2"));
}

// A second tape: the ways do see the model.
TEST(PlantedTwins, AModelOfOtherNoiseShowsOnEachWayThatHasTheModel) {
  const uint64_t seed = FirstSeed();
  const Case tried = CaseOf(Query::kRowThreshold);
  const Subject subject(tried);
  const Records records(subject, seed);
  Twin one, other;
  LiveIn(&one, tried, records, {.seed = seed});
  LiveIn(&other, tried, records, {.seed = seed + 1});
  const auto shown = [](const Twin& world, std::string_view way) {
    std::string bytes;
    for (const Shown& shown : world.ways.shown())
      if (shown.way.starts_with(way)) bytes += shown.bytes;
    return bytes;
  };
  for (const char* way : {"POST /v1/score", "POST /v1/lookup", "POST /v2/models/{name}/infer",
                          "feed", "release checkpoint: ", "full checkpoint: "})
    EXPECT_NE(shown(one, way), shown(other, way)) << way << ", seed " << seed;
}

}  // namespace
}  // namespace tacit::tape
