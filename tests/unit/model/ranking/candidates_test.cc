// Tests the numbers that speak for an item, against loops in double that follow the words of
// candidates.h.
#include "model/ranking/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>

#include "model/ranking/ranker.h"
#include "model/transitions/released_model.h"
#include "unit/model/transitions/world.h"

namespace tacit::model::ranking {
namespace {

using transitions::Buckets;
using transitions::ItemFeatures;
using transitions::PublicItems;

constexpr uint32_t kItems = 60;

// A released state made up by hand: some popularity, and some cells measured.
class CandidatesTest : public testing::Test {
 protected:
  explicit CandidatesTest() {
    std::mt19937_64 random(5);
    for (uint32_t i = 0; i < kItems; ++i) popularity_.push_back(1 + random() % 100);
    buckets_.emplace(described_, popularity_, options_.rank_bins);
    prior_.emplace(*buckets_, popularity_);
    transitions::Measured measured;
    measured.kappa = 0.001;
    for (uint32_t a = 0; a < kItems; ++a) {
      for (uint32_t b = 0; b < kItems; ++b) {
        if (a == b || random() % 3 > 0) continue;
        measured.cells.column.push_back(b);
        measured.mean.push_back(static_cast<float>(random() % 50));
        measured.precision.push_back(1.0f);
      }
      measured.cells.row_end.push_back(measured.cells.column.size());
    }
    estimate_.emplace(*prior_, measured, options_, workers_);
    source_.emplace(*estimate_, described_, options_, workers_);
  }

  // W_ab + r W_ba, shaped.
  double Pair(uint32_t a, uint32_t b, double reverse) const {
    const double both = double{estimate_->Of(a, b)} + reverse * estimate_->Of(b, a);
    return std::pow(both / (std::pow(popularity_[a], options_.score_from) *
                            std::pow(popularity_[b], options_.score_to)),
                    options_.score_power);
  }
  double Decayed(const std::vector<uint32_t>& history, double decay, auto of) const {
    double sum = 0;
    for (size_t age = 0; age < history.size() && std::pow(decay, age) > 1e-3; ++age)
      sum += std::pow(decay, age) * of(history[history.size() - 1 - age]);
    return sum;
  }
  std::vector<double> Naive(const std::vector<uint32_t>& history, uint32_t b) const;

  const transitions::Options options_;
  const PublicItems described_{transitions::SomeTexts(kItems, 3)};
  WorkerPool workers_{{.workers = 2}};
  std::vector<double> popularity_;
  std::optional<Buckets> buckets_;
  std::optional<transitions::Prior> prior_;
  std::optional<transitions::Estimate> estimate_;
  std::optional<CandidateSource> source_;
};

std::vector<double> CandidatesTest::Naive(const std::vector<uint32_t>& history, uint32_t b) const {
  constexpr double kLeast = 1e-6;
  const auto score = [&](double decay, double reverse) {
    return std::log(Decayed(history, decay, [&](uint32_t a) { return Pair(a, b, reverse); }) +
                    kLeast);
  };
  const double r = kReverseWeight;  // for any options of counts alone
  const uint32_t latest = history.back(),
                 before = history[history.size() < 2 ? 0 : history.size() - 2];
  std::vector<double> x(kFeatures);
  double counted = 0;
  for (size_t age = 0; age < std::min<size_t>(20, history.size()); ++age)
    counted += std::pow(1 + static_cast<double>(age) / 2, -1.5) *
               Pair(history[history.size() - 1 - age], b, r);
  x[kScore] = std::log(counted + kLeast);
  x[kForward] = score(.7, 0);
  x[kSharp] = score(.4, r);
  x[kLong] = score(.9, r);
  x[kLatest] = std::log(Pair(latest, b, r) + kLeast);
  x[kProduct] = Decayed(history, .7, [&](uint32_t a) { return std::log(Pair(a, b, r) + kLeast); });
  const auto log_p = [&](uint32_t i) { return std::log(popularity_[i]); };
  const double usual =
      Decayed(history, .9, log_p) / Decayed(history, .9, [](uint32_t) { return 1.0; });
  x[kPopular] = log_p(b);
  x[kUsual] = -std::pow(log_p(b) - usual, 2);
  x[kAsLatest] = -std::abs(log_p(b) - log_p(latest));

  const auto& of = [&](uint32_t i) -> const ItemFeatures& { return described_.features(i); };
  const auto has = [&](uint32_t i, int g) { return (of(i).genres >> g & 1) != 0; };
  const auto genres = [&](uint32_t i) { return std::popcount(of(i).genres); };
  const double all = std::accumulate(popularity_.begin(), popularity_.end(), 0.0);
  const auto share = [&](auto holds) {
    double sum = 0;
    for (uint32_t i = 0; i < kItems; ++i) sum += holds(i) ? popularity_[i] / all : 0;
    return sum;
  };
  const auto ratio = [&](double decay, double prior, auto holds) {
    const double p = share(holds);
    const double weight = Decayed(history, decay, [&](uint32_t a) { return holds(a) ? 1.0 : 0.0; });
    const double total = Decayed(history, decay, [](uint32_t) { return 1.0; });
    return std::log((weight + prior * p) / (total + prior) / p);
  };
  const auto taste = [&](double decay) {
    double sum = 0;
    for (int g = 0; g < 64; ++g)
      if (has(b, g)) sum += ratio(decay, 3, [&](uint32_t i) { return has(i, g); });
    return genres(b) == 0 ? 0 : sum / genres(b);
  };
  const auto cosine = [&](double decay) {
    double dot = 0, squares = 0;
    for (int g = 0; g < 64; ++g) {
      const double u = Decayed(
          history, decay, [&](uint32_t a) { return has(a, g) ? 1 / std::sqrt(genres(a)) : 0; });
      squares += u * u;
      if (has(b, g)) dot += u / std::sqrt(genres(b));
    }
    return squares > 0 ? dot / std::sqrt(squares) : 0;
  };
  const auto era = [&](double decay) {
    const auto bin = [&](uint32_t i) { return buckets_->bins(i)[Buckets::kYears]; };
    return ratio(decay, 2, [&](uint32_t i) { return bin(i) == bin(b); });
  };
  x[kGenresRecent] = cosine(.9), x[kGenresEver] = cosine(1);
  x[kTasteRecent] = taste(.9), x[kTasteEver] = taste(1);
  x[kEraLatest] = era(.7), x[kEraRecent] = era(.9), x[kEraEver] = era(1);
  const auto years = [&](uint32_t a) {
    return of(a).year == 0 || of(b).year == 0 ? 0 : of(b).year - of(a).year;
  };
  const auto places = [&](uint32_t a) { return static_cast<double>(of(b).id - of(a).id); };
  const auto near = [](double d) { return -std::log1p(std::abs(d)); };
  const auto sign = [](double d) { return d > 0 ? 1.0 : d < 0 ? -1.0 : 0.0; };
  x[kYearsLatest] = near(years(latest)), x[kYearsBefore] = near(years(before));
  x[kPlacesLatest] = near(places(latest)), x[kPlacesBefore] = near(places(before));
  x[kYounger] = sign(years(latest)), x[kBehind] = sign(places(latest));
  x[kYoungerBy] = years(latest) > 0 ? -near(years(latest)) : 0;
  x[kBehindBy] = places(latest) > 0 ? -near(places(latest)) : 0;
  const auto overlap = [&](uint32_t a) {
    const int either = std::popcount(of(a).genres | of(b).genres);
    return either == 0 ? 0.0 : std::popcount(of(a).genres & of(b).genres) / double(either);
  };
  x[kOverlapLatest] = overlap(latest), x[kOverlapBefore] = overlap(before);
  x[kWordLatest] = described_.ShareRareWord(latest, b) ? 1 : 0;
  return x;
}

// The longest history loses what came long ago.
TEST_F(CandidatesTest, FeaturesAreWhatTheirWordsSay) {
  std::mt19937_64 random(9);
  for (size_t length : {1, 2, 3, 8, 15, 90}) {
    std::vector<uint32_t> history;
    while (history.size() < length) history.push_back(static_cast<uint32_t>(random() % kItems));
    Candidates got;
    source_->Find(history, 25, &got);
    ASSERT_GE(got.items.size(), 10u);
    const auto count = static_cast<double>(got.items.size());
    std::vector<std::vector<double>> expected;
    for (const uint32_t b : got.items) expected.push_back(Naive(history, b));
    for (size_t f = 0; f < kFeatures; ++f) {
      double mean = 0, variance = 0;
      for (const auto& x : expected) mean += x[f] / count;
      for (const auto& x : expected) variance += (x[f] - mean) * (x[f] - mean) / count;
      const double deviation = std::sqrt(variance);
      for (size_t i = 0; i < got.items.size(); ++i)
        EXPECT_NEAR(got.Row(i)[f], deviation > 1e-5 ? (expected[i][f] - mean) / deviation : 0, 5e-3)
            << "feature " << f << " of " << got.items[i] << " after " << length;
    }
  }
}

TEST_F(CandidatesTest, TheLikeliestByTheCountsWithoutWhatWasSeen) {
  const std::vector<uint32_t> history = {3, 40, 7, 7, 12};
  Candidates got;
  source_->Find(history, 10, &got);
  transitions::Options both_ways = options_;
  both_ways.reverse_weight = kReverseWeight;
  const transitions::Scorer scorer(*estimate_, both_ways, workers_);
  std::vector<float> scores(kItems);
  scorer.Score(history, scores);
  EXPECT_EQ(got.scores, scores);
  for (size_t i = 0; i < got.items.size(); ++i) EXPECT_EQ(got.counted[i], scores[got.items[i]]);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < kItems; ++i)
    if (std::ranges::find(history, i) == history.end()) order.push_back(i);
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  order.resize(10);
  std::ranges::sort(order);
  EXPECT_EQ(got.items, order);
  EXPECT_EQ(got.PlaceOf(order[4]), 4u);
  EXPECT_EQ(got.PlaceOf(3), 10u) << "seen";
  source_->Find(history, 1000, &got);
  EXPECT_EQ(got.items.size(), kItems - 4) << "all but the four that were seen";
  source_->Find({}, 10, &got);
  EXPECT_TRUE(got.items.empty());
  EXPECT_EQ(got.scores, std::vector<float>(kItems));
}

TEST_F(CandidatesTest, OfEqualsTheEarlierAreTaken) {
  const PublicItems plain(kItems);
  const std::vector<double> alike(kItems, 4);
  const Buckets buckets(plain, alike, 1);
  const transitions::Prior prior(buckets, alike);
  transitions::Cells none;
  none.row_end.resize(kItems);
  const transitions::Estimate estimate(prior, none, options_, workers_);
  const CandidateSource source(estimate, plain, options_, workers_);
  Candidates got;
  source.Find(std::vector<uint32_t>{2, 0}, 5, &got);
  EXPECT_EQ(got.items, (std::vector<uint32_t>{1, 3, 4, 5, 6}));
  EXPECT_GT(got.counted[0], 0);
  EXPECT_EQ(got.counted, std::vector<float>(5, got.counted[0]));
}

// Without a table of all pairs the candidates and their numbers are the same: this prior has no
// factors, so that nothing is left out.
TEST_F(CandidatesTest, ListsOfMeasuredCellsSayWhatATableSays) {
  transitions::Options sparse = options_;
  sparse.dense_cells_most = 0;
  const CandidateSource lists(*estimate_, described_, sparse, workers_);
  std::mt19937_64 random(10);
  Candidates of_table, of_lists;
  for (const size_t length : {1, 2, 5, 30, 90}) {
    std::vector<uint32_t> history;
    while (history.size() < length) history.push_back(static_cast<uint32_t>(random() % kItems));
    std::vector<uint8_t> left_out;
    if (length % 2 == 0)
      for (uint32_t i = 0; i < kItems; ++i) left_out.push_back(random() % 2);
    source_->Find(history, 12, &of_table, left_out);
    lists.Find(history, 12, &of_lists, left_out);
    ASSERT_EQ(of_lists.items, of_table.items);
    ASSERT_GE(of_lists.items.size(), 3u);
    for (const uint32_t item : of_lists.items) {
      EXPECT_EQ(std::ranges::count(history, item), 0);
      EXPECT_TRUE(left_out.empty() || left_out[item] == 0);
    }
    ASSERT_EQ(of_lists.rows.size(), of_table.rows.size());
    for (size_t i = 0; i < of_lists.rows.size(); ++i)
      ASSERT_NEAR(of_lists.rows[i], of_table.rows[i], 2e-3) << i % kFeatures;
  }
  EXPECT_TRUE(of_lists.scores.empty());
}

// The best of TopRanked are those that sorting the scores of the whole catalogue finds.
TEST_F(CandidatesTest, TheRankersTopIsWhatSortingFinds) {
  transitions::Options sparse = options_;
  sparse.dense_cells_most = 0;
  const CandidateSource lists(*estimate_, described_, sparse, workers_);
  std::vector<float> parameters = InitialRanker(4);
  parameters[kPopular] = -3;
  std::mt19937_64 random(11);
  Candidates candidates;
  RankerPass pass;
  std::vector<transitions::ScoredItem> top;
  for (const CandidateSource* source : {std::as_const(source_).operator->(), &lists})
    for (const size_t count : {1u, 8u, 15u, 40u, 200u}) {
      std::vector<uint32_t> history;
      for (int i = 0; i < 6; ++i) history.push_back(static_cast<uint32_t>(random() % kItems));
      std::vector<float> scores(kItems);
      ScoreRanked(*source, parameters, 15, history, scores);
      std::vector<uint32_t> order;
      for (uint32_t i = 0; i < kItems; ++i)
        if (std::ranges::count(history, i) == 0) order.push_back(i);
      std::ranges::stable_sort(order, std::greater<>(), [&](uint32_t i) { return scores[i]; });
      order.resize(std::min(order.size(), count));
      TopRanked(*source, parameters, 15, history, count, {}, &candidates, &pass, &top);
      ASSERT_EQ(top.size(), order.size());
      for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(top[i].score, scores[order[i]]) << i;
    }
}

TEST_F(CandidatesTest, WithoutDescriptionsWhatTheyWouldSayIsNothing) {
  const PublicItems plain(kItems);
  const Buckets buckets(plain, popularity_, options_.rank_bins);
  const transitions::Prior prior(buckets, popularity_);
  const transitions::Estimate estimate(prior, transitions::Measured(estimate_->measured()),
                                       options_, workers_);
  const CandidateSource source(estimate, plain, options_, workers_);
  Candidates got;
  source.Find(std::vector<uint32_t>{1, 2}, 10, &got);
  for (size_t i = 0; i < got.items.size(); ++i)
    for (size_t f = kGenresRecent; f < kFeatures; ++f) EXPECT_EQ(got.Row(i)[f], 0);
}

}  // namespace
}  // namespace tacit::model::ranking
