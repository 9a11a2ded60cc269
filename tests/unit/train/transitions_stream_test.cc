// The shaped count model, period by period.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "mechanism/unit_histogram.h"
#include "model/transitions/pairs.h"
#include "model/transitions/scorer.h"
#include "scribe.h"
#include "train/counts/transitions_release.h"
#include "unit/model/transitions/world.h"

namespace tacit::train {
namespace {

using model::Histories;
using model::transitions::Options;
using model::transitions::PublicItems;
using model::transitions::ReleasedModel;
using model::transitions::Scorer;
using model::transitions::SomeHistories;
using model::transitions::SomeTexts;
using model::transitions::With;

constexpr uint32_t kItems = 40;
constexpr double kNoNoise = std::numeric_limits<double>::infinity();

// One of the periods that a stream is cut into.
struct Part {
  Histories histories;
  std::vector<uint32_t> known;

  TransitionsPeriod period() const { return {.histories = histories, .known = known}; }
};

// Every user's history cut into this many parts at random, each with what was before it.
std::vector<Part> Cut(const Histories& whole, size_t parts, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Part> cut(parts);
  for (Part& part : cut) part.histories.catalogue = whole.catalogue;
  for (size_t unit = 0; unit < whole.units(); ++unit) {
    const auto items = whole.Of(unit);
    std::vector<size_t> ends;
    for (size_t p = 1; p < parts; ++p) ends.push_back(random() % (items.size() + 1));
    ends.push_back(items.size());
    std::ranges::sort(ends);
    for (size_t p = 0; p < parts; ++p) {
      cut[p].known.push_back(static_cast<uint32_t>(p == 0 ? 0 : ends[p - 1]));
      const auto upto = items.first(ends[p]);
      cut[p].histories.items.insert(cut[p].histories.items.end(), upto.begin(), upto.end());
      cut[p].histories.end.push_back(cut[p].histories.items.size());
    }
  }
  return cut;
}

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() {
    options_.cells_at_signal = 700, options_.signal_unit = 500, options_.items_power = 0;
  }

  TransitionsCharge Release(const TransitionsPeriod& period, double mu, noise::NoiseSource& noise,
                            ReleasedModel* model) {
    auto charge = ReleaseTransitionsPeriod(period, mu, noise, workers_, model);
    EXPECT_TRUE(charge) << charge.error().message;
    return std::move(*charge);
  }
  // Counts how many of the first items are followed by `step` among the first three that are
  // recommended.
  size_t Right(const ReleasedModel& model, uint32_t step) {
    const Scorer scorer(model.estimate(), options_, workers_);
    const uint32_t items = model.catalogue().items();
    std::vector<float> scores(items);
    size_t right = 0;
    for (uint32_t item = 0; item + step < items; ++item) {
      scorer.Score(std::vector<uint32_t>{item}, scores);
      scores[item] = -1;
      const float own = scores[item + step];
      right += std::ranges::count_if(scores, [&](float s) { return s > own; }) < 3 ? 1 : 0;
    }
    return right;
  }

  Options options_;
  const PublicItems described_{SomeTexts(kItems, 3)}, plain_{kItems};
  WorkerPool workers_{{.workers = 2}};
};

// Checks how far a unit moves the queries of the last of these periods, all answers being the same;
// returns what is wrong.
std::string CheckMoves(const Asked& one, const Asked& other) {
  if (one.sums.size() != other.sums.size()) return "other queries";
  for (size_t q = 0; q < one.sums.size(); ++q)
    if (one.sums[q].size() != other.sums[q].size()) return "the cells follow from the data";
  for (const double move : Moves(one, other))
    if (move > 1) return "moved by " + std::to_string(move);
  return "";
}

TEST_F(StreamTest, NobodyMovesAQueryOfAPeriodByMoreThanOne) {
  size_t caught = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const PublicItems& catalogue = seed % 2 == 0 ? described_ : plain_;
    const auto parts = Cut(SomeHistories(kItems, 12, 14, seed), 3, seed);
    auto noise = noise::FixedNoise(1);
    // Three periods' answers, and then again without one of the units in the last.
    const auto run = [&](const Histories& last, std::span<const uint32_t> known,
                         const Asked* answers, noise::NoiseSource& source) {
      ReleasedModel model(catalogue, options_, workers_);
      Scribe scribe(source, answers);
      for (size_t p = 0; p < 2; ++p) Release(parts[p].period(), 2, scribe, &model);
      Release({.histories = last, .known = known}, 2, scribe, &model);
      return scribe.asked();
    };
    const Part& last = parts[2];
    const Asked all = run(last.histories, last.known, nullptr, noise);
    noise::SilentNoise silence;
    const Asked loud = run(last.histories, last.known, nullptr, silence);
    double most = 0;
    for (size_t unit = 0; unit < 12; ++unit) {
      std::vector<uint32_t> known = last.known;
      known[unit] = 0;
      const Histories without = With(last.histories, unit, {});
      const Asked other = run(without, known, &all, noise);
      EXPECT_EQ(CheckMoves(all, other), "") << "seed " << seed << " unit " << unit;
      for (const double move : Moves(all, other)) most = std::max(most, move);
      // Planted: cells that follow from numbers without noise.
      caught += CheckMoves(loud, run(without, known, nullptr, silence)) != "" ? 1 : 0;
      // Planted: a user who counts twice.
      Histories twice = last.histories;
      const auto own = last.histories.Of(unit);
      if (own.size() < last.known[unit] + 2) continue;
      twice.items.insert(twice.items.end(), own.begin(), own.end());
      twice.end.push_back(twice.items.size());
      std::vector<uint32_t> known_twice = last.known;
      known_twice.push_back(last.known[unit]);
      std::vector<uint32_t> known_none = known;
      known_none.push_back(0);
      Histories nobody = With(without, unit, {});
      nobody.end.push_back(nobody.items.size());
      const Asked both = run(twice, known_twice, nullptr, noise);
      EXPECT_NE(CheckMoves(both, run(nobody, known_none, &both, noise)), "");
    }
    EXPECT_GT(most, 0.999) << "the norm is used up";
  }
  EXPECT_GT(caught, 24u) << "of 48";
}

// One unit's vector, by loops: pairs of which the later item is not known, in the cells of a query.
template <class CellOf>
void AddUnit(std::span<const uint32_t> items, size_t known, const CellOf& cell_of,
             std::vector<double>* sums) {
  std::map<size_t, double> vector;
  for (size_t i = 0; i < items.size(); ++i)
    for (size_t j = std::max(i + 1, known); j < items.size() && j <= i + 10; ++j)
      if (items[i] != items[j]) vector[cell_of(items[i], items[j])] += std::pow(0.8, j - i - 1);
  double square = 0;
  for (const auto& [cell, weight] : vector) square += weight * weight;
  for (const auto& [cell, weight] : vector) (*sums)[cell] += weight / std::sqrt(square);
}

// Checks that a period's table of main genres is what the loops say.
std::string CheckGenres(const Asked& asked, const PublicItems& catalogue, const Part& part) {
  const model::transitions::Buckets buckets(catalogue, std::vector<double>(kItems, 1), 12);
  constexpr size_t kGenres = model::transitions::Buckets::kGenres;
  std::vector<double> expected(buckets.size(kGenres));
  for (size_t u = 0; u < part.histories.units(); ++u)
    AddUnit(
        part.histories.Of(u), part.known[u],
        [&](uint32_t a, uint32_t b) { return buckets.Of(kGenres, a, b); }, &expected);
  // Behind the looks at popularity there are four tables and three measurements.
  const auto& sums = asked.sums[asked.sums.size() - 7 + kGenres];
  for (size_t i = 0; i < expected.size(); ++i)
    if (std::abs(static_cast<double>(sums[i]) * kStep - expected[i]) > 1e-3)
      return "bucket " + std::to_string(i);
  return "";
}

TEST_F(StreamTest, OnlyPairsThatEndInThePeriodCount) {
  const Part part = Cut(SomeHistories(kItems, 100, 30, 4), 2, 5)[1];
  auto noise = noise::FixedNoise(2);
  const auto ask = [&](const TransitionsPeriod& period) {
    ReleasedModel model(described_, options_, workers_);
    Scribe scribe(noise);
    Release(period, 2, scribe, &model);
    return scribe.asked();
  };
  EXPECT_EQ(CheckGenres(ask(part.period()), described_, part), "");
  // Planted: what was paid for earlier is counted again.
  EXPECT_NE(CheckGenres(ask({.histories = part.histories}), described_, part), "");
}

TEST_F(StreamTest, AHistoryThatIsCutHasEachOfItsPairsOnce) {
  using Pairs = std::map<std::pair<uint32_t, uint32_t>, double>;
  const Histories whole = SomeHistories(kItems, 30, 40, 7);
  const auto parts = Cut(whole, 4, 8);
  for (size_t unit = 0; unit < whole.units(); ++unit) {
    Pairs once, cut;
    const auto into = [](Pairs* pairs) {
      return [pairs](uint32_t a, uint32_t b, double weight) { (*pairs)[{a, b}] += weight; };
    };
    model::transitions::ForPairs(whole.Of(unit), 10, 0.8, into(&once));
    for (const Part& part : parts)
      model::transitions::ForNewPairs(part.histories.Of(unit), part.known[unit], 10, 0.8,
                                      into(&cut));
    ASSERT_EQ(once.size(), cut.size());
    for (const auto& [pair, weight] : once) ASSERT_NEAR(cut[pair], weight, 1e-12);
  }
}

TEST_F(StreamTest, APeriodIsOneGaussianWhoeverIsInIt) {
  const Histories nobody{.items = {}, .end = {}, .catalogue = kItems};
  const Histories some = SomeHistories(kItems, 50, 20, 1);
  for (const PublicItems* catalogue : {&described_, &plain_}) {
    ReleasedModel model(*catalogue, options_, workers_);
    auto noise = noise::FixedNoise(3);
    for (const double mu : {0.3, 1.0, 2.0, 0.3}) {
      for (const Histories* histories : {&some, &nobody}) {
        Scribe scribe(noise);
        // So few make the first period look at popularity twice.
        const size_t looks = model.periods() == 0 ? 2 : 1;
        const auto charge = Release({.histories = *histories}, mu, scribe, &model);
        EXPECT_EQ(charge.queries.size(), looks + (catalogue->described() ? 7 : 4));
        EXPECT_EQ(charge.whole.noise_multiplier, 1 / mu);
        EXPECT_TRUE(charge.whole.Bounded());
        EXPECT_LE(charge.MuSquared(), charge.whole.MuSquared());
        double asked = 0;
        for (const double stddev : scribe.asked().stddev) asked += 1 / (stddev * stddev);
        EXPECT_LE(asked, mu * mu);
        EXPECT_NEAR(asked, mu * mu, 1e-9 * mu * mu);
        EXPECT_EQ(CheckEveryCell(scribe.asked()), "");
      }
    }
    EXPECT_EQ(model.periods(), 8u);
  }
}

TEST_F(StreamTest, WherePairsHardlyStandOutPopularityHasMore) {
  auto noise = noise::FixedNoise(13);
  const Histories few = SomeHistories(kItems, 3, 10, 1), many = SomeHistories(kItems, 800, 30, 1);
  for (const Histories* histories : {&few, &many}) {
    options_.share_signal = 500.0 / kItems;
    options_.share_spread = 1e-9;
    ReleasedModel model(plain_, options_, workers_);
    EXPECT_EQ(model.PopularityShare(), options_.popularity_share);
    Release({.histories = *histories}, 1, noise, &model);
    const double share = model.PopularityShare();
    if (histories == &many) {
      EXPECT_EQ(share, options_.popularity_share);
    } else {
      EXPECT_GT(share, 1.2 * options_.popularity_share);
      EXPECT_LE(share, options_.popularity_share_most);
    }
    // It is what is asked for, and the rest is what is left.
    Scribe scribe(noise);
    const auto charge = Release({.histories = *histories}, 1, scribe, &model);
    EXPECT_NEAR(scribe.asked().stddev[0], 1 / share, 1e-9);
    EXPECT_NEAR(charge.MuSquared(), 1, 1e-9);
  }
}

// Without any user, what was added up is noise alone: of what deviation, the model says.
std::string CheckSums(const model::transitions::ReleasedTable& table, double deviation) {
  std::vector<double> z;
  for (const float sum : table.sums) z.push_back(sum / deviation);
  return testing::CheckMoments(z);
}

TEST_F(StreamTest, TheNoiseOfSumsIsWhatTheModelSays) {
  constexpr uint32_t kMany = 3000;
  const PublicItems many(kMany);
  Histories nobody;
  nobody.catalogue = kMany;
  for (const double forget : {1.0, 0.5}) {
    options_.forget = forget;
    ReleasedModel model(many, options_, workers_);
    auto noise = noise::FixedNoise(4);
    double variance = 0, last = 0;
    for (const double mu : {0.25, 1.0, 0.5}) {
      const auto queries = Release({.histories = nobody}, mu, noise, &model).queries;
      // A table and three measurements come after popularity, which the first period looks at
      // twice: nothing stands out.
      ASSERT_EQ(queries.size(), last == 0 ? 6u : 5u);
      double precision = 0;
      for (size_t q = 0; q + 4 < queries.size(); ++q)
        precision += std::pow(queries[q].noise_multiplier, -2);
      last = 1 / std::sqrt(precision);
      variance = forget * forget * variance + last * last;
    }
    EXPECT_NEAR(model.popularity_sums().deviation, std::sqrt(variance), 1e-9 * variance);
    EXPECT_EQ(CheckSums(model.popularity_sums(), model.popularity_sums().deviation), "");
    // Planted: the noise of the last period for that of all.
    EXPECT_NE(CheckSums(model.popularity_sums(), last), "");
  }
}

TEST_F(StreamTest, WithoutNoisePeriodsOfDifferentPeopleAreTheUnion) {
  const Histories first = SomeHistories(kItems, 80, 30, 1),
                  second = SomeHistories(kItems, 90, 30, 2);
  Histories both = first;
  for (size_t u = 0; u < second.units(); ++u) {
    const auto items = second.Of(u);
    both.items.insert(both.items.end(), items.begin(), items.end());
    both.end.push_back(both.items.size());
  }
  noise::SilentNoise silence;
  for (const double forget : {1.0, 0.25}) {
    options_.forget = forget;
    ReleasedModel periods(described_, options_, workers_), once(described_, options_, workers_),
        one(described_, options_, workers_), other(described_, options_, workers_);
    Release({.histories = first}, kNoNoise, silence, &periods);
    const auto charge = Release({.histories = second}, kNoNoise, silence, &periods);
    EXPECT_FALSE(charge.whole.Bounded());
    Release({.histories = both}, kNoNoise, silence, &once);
    Release({.histories = first}, kNoNoise, silence, &one);
    Release({.histories = second}, kNoNoise, silence, &other);
    for (uint32_t a = 0; a < kItems; ++a) {
      const double p = forget * one.popularity_sums().sums[a] + other.popularity_sums().sums[a];
      ASSERT_NEAR(periods.popularity_sums().sums[a], p, 1e-5 * p);
      for (uint32_t b = 0; b < kItems; ++b) {
        const double weight = forget * one.estimate().Of(a, b) + other.estimate().Of(a, b);
        ASSERT_NEAR(periods.estimate().Of(a, b), weight, 1e-5 * weight + 1e-6);
        if (forget == 1) {
          ASSERT_NEAR(periods.estimate().Of(a, b), once.estimate().Of(a, b), 1e-5 * weight + 1e-6);
        }
      }
    }
  }
}

TEST_F(StreamTest, ASecondPeriodOfTheSameTellsMore) {
  const PublicItems many(200);
  size_t few = 0, more = 0, all = 0;
  for (uint8_t seed = 0; seed < 3; ++seed) {
    auto noise = noise::FixedNoise(seed);
    ReleasedModel model(many, options_, workers_);
    for (uint64_t period = 0; period < 12; ++period) {
      Release({.histories = SomeHistories(200, 400, 40, 100 * seed + period)}, 2, noise, &model);
      if (period == 0) few += Right(model, 1);
      if (period == 3) more += Right(model, 1);
    }
    all += Right(model, 1);
  }
  EXPECT_LT(few + 30, more);
  EXPECT_LT(more + 30, all);
}

// Units are those of the first measurement: where that is noise, what follows sets them right.
TEST_F(StreamTest, ABeginningWithoutAnybodyIsMadeUpFor) {
  const Histories nobody{.items = {}, .end = {}, .catalogue = kItems};
  size_t right[2] = {};
  for (const bool empty : {false, true})
    for (uint8_t seed = 0; seed < 3; ++seed) {
      auto noise = noise::FixedNoise(seed);
      ReleasedModel model(plain_, options_, workers_);
      for (int period = 0; empty && period < 2; ++period)
        Release({.histories = nobody}, 3, noise, &model);
      for (uint64_t period = 0; period < 4; ++period)
        Release({.histories = SomeHistories(kItems, 800, 40, period)}, 3, noise, &model);
      right[empty ? 1 : 0] += Right(model, 1);
    }
  EXPECT_GT(right[0], 3 * kItems * 3 / 4);
  EXPECT_GT(right[1], right[0] * 9 / 10);
}

// People change their ways: what fades makes room.
TEST_F(StreamTest, WhatIsForgottenMakesRoomForWhatIsNew) {
  size_t right[2] = {};
  for (const bool forgets : {false, true}) {
    options_.forget = forgets ? 0.3 : 1;
    auto noise = noise::FixedNoise(9);
    ReleasedModel model(plain_, options_, workers_);
    for (uint64_t period = 0; period < 9; ++period) {
      Histories histories = SomeHistories(kItems, 500, 40, period);
      // From the seventh on they go the other way.
      if (period >= 6)
        for (uint32_t& item : histories.items) item = kItems - 1 - item;
      Release({.histories = histories}, 3, noise, &model);
    }
    // Backwards: from an item to the one before it.
    const Scorer scorer(model.estimate(), options_, workers_);
    std::vector<float> scores(kItems);
    for (uint32_t item = 1; item < kItems; ++item) {
      scorer.Score(std::vector<uint32_t>{item}, scores);
      const bool back = item + 1 == kItems || scores[item - 1] > scores[item + 1];
      right[forgets ? 1 : 0] += back ? 1 : 0;
    }
  }
  EXPECT_GT(right[1], right[0] + 5);
  EXPECT_GT(right[1], kItems * 3 / 4);
}

// An item that comes late is recommended like any other.
TEST_F(StreamTest, AnItemThatComesLateFindsItsPlace) {
  auto noise = noise::FixedNoise(10);
  ReleasedModel model(plain_, options_, workers_);
  for (uint64_t period = 0; period < 4; ++period) {
    Histories histories = SomeHistories(kItems, 1500, 30, period);
    // Before the third period the last items are not there.
    if (period < 2)
      for (uint32_t& item : histories.items) item %= kItems - 8;
    Release({.histories = histories}, 3, noise, &model);
  }
  const Scorer scorer(model.estimate(), options_, workers_);
  std::vector<float> scores(kItems);
  size_t right = 0;
  for (uint32_t item = kItems - 8; item + 1 < kItems; ++item) {
    scorer.Score(std::vector<uint32_t>{item}, scores);
    right += std::ranges::count_if(scores, [&](float s) { return s > scores[item + 1]; }) < 4;
  }
  EXPECT_GE(right, 6u) << "of 7";
}

TEST_F(StreamTest, AMillionItemsStaySparse) {
  constexpr uint32_t kMillion = 1'000'000;
  const PublicItems many(kMillion);
  options_.cells_at_signal = 100, options_.fitting_rounds = 1;
  options_.share_signal = 0;  // popularity has its least share
  ReleasedModel model(many, options_, workers_);
  auto noise = noise::FixedNoise(11);
  Histories histories = SomeHistories(300, 400, 30, 1);
  histories.catalogue = kMillion;
  for (int period = 0; period < 2; ++period) Release({.histories = histories}, 5, noise, &model);
  EXPECT_LT(model.estimate().cells().size(), 100'000u);
  EXPECT_GT(model.estimate().cells().size(), 1'000u);
  const std::string bytes = model.Encode();
  EXPECT_LT(bytes.size(), size_t{6} * kMillion + 11 * model.estimate().cells().size());
  const auto again = ReleasedModel::Decode(bytes, many, options_, workers_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->Encode(), bytes);
}

TEST_F(StreamTest, WhatCannotBeIsRefusedAndTheModelIsAsItWas) {
  auto noise = noise::FixedNoise(12);
  ReleasedModel model(plain_, options_, workers_);
  const Histories histories = SomeHistories(kItems, 20, 20, 1);
  Release({.histories = histories}, 2, noise, &model);
  const std::string before = model.Encode();
  const auto refusal = [&](const TransitionsPeriod& period, double mu) {
    const auto charge = ReleaseTransitionsPeriod(period, mu, noise, workers_, &model);
    EXPECT_FALSE(charge);
    EXPECT_EQ(model.Encode(), before);
    return charge ? "" : charge.error().message;
  };
  EXPECT_EQ(refusal({.histories = histories}, kNoNoise),
            "cannot mix noisy and noiseless periods in one model");
  const std::vector<uint32_t> few(3);
  EXPECT_EQ(refusal({.histories = histories, .known = few}, 2),
            "`known` has 3 entries for 20 units");
  std::vector<uint32_t> known(20);
  known[7] = 100;
  EXPECT_EQ(refusal({.histories = histories, .known = known}, 2),
            "unit 7: `known` says 100 of " + std::to_string(histories.Of(7).size()) + " items");
  EXPECT_EQ(refusal({.histories = SomeHistories(kItems + 1, 20, 20, 1)}, 2),
            "the histories are of a catalogue of 41 items, and 40 are described");
}

}  // namespace
}  // namespace tacit::train
