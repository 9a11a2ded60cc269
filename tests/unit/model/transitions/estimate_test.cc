#include "model/transitions/estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "model/transitions/scorer.h"
#include "world.h"

namespace tacit::model::transitions {
namespace {

using Key = std::pair<uint32_t, uint32_t>;

class EstimateTest : public testing::Test {
 protected:
  static constexpr uint32_t kItems = 40;

  EstimateTest()
      : catalogue_(kItems), popularity_(MakePopularity()), buckets_(catalogue_, popularity_, 4) {}

  static std::vector<double> MakePopularity() {
    std::vector<double> p;
    for (uint32_t i = 0; i < kItems; ++i) p.push_back(1 + 30.0 / (1 + i));
    return p;
  }
  // Each cell about once in `one_in`.
  static Cells SomeCells(uint32_t one_in) {
    std::mt19937_64 random(3);
    Cells cells;
    for (uint32_t a = 0; a < kItems; ++a) {
      for (uint32_t b = 0; b < kItems; ++b)
        if (a != b && random() % one_in == 0) cells.column.push_back(b);
      cells.row_end.push_back(cells.column.size());
    }
    return cells;
  }
  static std::vector<Key> Keys(const Cells& cells) {
    std::vector<Key> keys;
    for (uint32_t a = 0; a < kItems; ++a)
      for (const uint32_t b : cells.Row(a)) keys.emplace_back(a, b);
    return keys;
  }
  std::vector<float> Noisy(size_t n, double around, double deviation) {
    std::normal_distribution<float> noise(static_cast<float>(around),
                                          static_cast<float>(deviation));
    std::vector<float> values(n);
    for (float& value : values) value = noise(random_);
    return values;
  }
  // W as the book has it, for every pair.
  std::vector<std::vector<double>> Dense(const Estimate& estimate) const {
    std::vector<std::vector<double>> w(kItems, std::vector<double>(kItems));
    for (uint32_t a = 0; a < kItems; ++a)
      for (uint32_t b = 0; b < kItems; ++b) w[a][b] = estimate.Of(a, b);
    return w;
  }

  const PublicItems catalogue_;
  const std::vector<double> popularity_;
  const Buckets buckets_;
  const Prior prior_{buckets_, popularity_};
  const Options options_;
  WorkerPool workers_{{.workers = 2}};
  std::mt19937_64 random_{5};
};

// Three measurements, combined in float64.
TEST_F(EstimateTest, MeasurementsCombineAsTheBookSays) {
  Estimate estimate(prior_, SomeCells(3), options_, workers_);
  const std::vector<Key> keys = Keys(estimate.cells());
  const Posterior posterior(options_.prior_log_deviation);
  std::vector<double> mean, precision, weight(keys.size());
  double kappa = 0;
  const auto update = [&](size_t i) {
    const double expected = kappa * popularity_[keys[i].first] * popularity_[keys[i].second];
    weight[i] = posterior.Mean(expected, mean[i], 1 / std::sqrt(precision[i]));
  };

  const std::vector<float> first = Noisy(keys.size(), 4, 3);
  estimate.MeasureAll(first, 3);
  double measured = 0, expected = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    measured += first[i];
    expected += popularity_[keys[i].first] * popularity_[keys[i].second];
    mean.push_back(first[i]);
    precision.push_back(1 / 9.0);
  }
  kappa = measured / expected;
  EXPECT_NEAR(estimate.kappa(), kappa, 1e-6 * kappa);
  for (size_t i = 0; i < keys.size(); ++i) update(i);

  for (const double scale : {2.0, 5.0}) {
    const std::vector<uint32_t> places = estimate.Top(keys.size() / 3);
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < keys.size(); ++i)
      order.emplace_back(-weight[i] / std::pow(popularity_[keys[i].first], options_.support_from) /
                             std::pow(popularity_[keys[i].second], options_.support_to),
                         i);
    std::ranges::sort(order);
    for (size_t i = 0; i + 1 < places.size(); ++i) ASSERT_LT(places[i], places[i + 1]);
    for (const uint32_t place : places) {
      const auto at = std::ranges::find(order, size_t{place}, &std::pair<double, size_t>::second);
      ASSERT_LE(at->first, order[places.size() - 1].first * (1 - 1e-4)) << "within floats";
    }
    std::vector<float> sums = Noisy(places.size(), 0, 3);
    double cross = 0, square = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      sums[i] += static_cast<float>(scale * weight[places[i]]);
      cross += sums[i] * weight[places[i]];
      square += weight[places[i]] * weight[places[i]];
    }
    estimate.MeasureMore(places, sums, 3);
    const double c = cross / square;
    for (size_t i = 0; i < places.size(); ++i) {
      const size_t at = places[i];
      const double more = c * c / 9;
      mean[at] = (mean[at] * precision[at] + sums[i] / c * more) / (precision[at] + more);
      precision[at] += more;
      update(at);
    }
    for (size_t i = 0; i < keys.size(); ++i)
      ASSERT_NEAR(estimate.weights()[i], weight[i], 1e-3 * weight[i] + 1e-4) << i;
  }
  // And what was not measured follows the prior.
  for (uint32_t a = 0; a < kItems; ++a)
    for (uint32_t b = 0; b < kItems; ++b)
      if (estimate.cells().Find(a, b) == Cells::kNone && a != b) {
        ASSERT_NEAR(estimate.Of(a, b), kappa * popularity_[a] * popularity_[b],
                    1e-4 * estimate.Of(a, b));
      }
}

TEST_F(EstimateTest, TheTopIsThatOfASortAndOfEqualsTheEarlier) {
  const std::vector<double> alike(kItems, 2);
  const Buckets buckets(catalogue_, alike, 4);
  const Prior prior(buckets, alike);
  Estimate estimate(prior, SomeCells(3), options_, workers_);
  // Sums without noise are the weights; of each there are many, 0 and its negative among them.
  std::vector<float> sums(estimate.cells().size());
  for (float& sum : sums) sum = static_cast<float>(random_() % 7) * 0.25f - 0.5f;
  sums[5] = -0.0f;
  estimate.MeasureAll(sums, 0);
  std::vector<uint32_t> order(sums.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(
      order, [&](uint32_t x, uint32_t y) { return estimate.weights()[x] > estimate.weights()[y]; });
  for (size_t count = 0; count <= sums.size() + 1; ++count) {
    auto expected = order;
    expected.resize(std::min(count, order.size()));
    std::ranges::sort(expected);
    ASSERT_EQ(estimate.Top(count), expected) << count;
  }
}

TEST_F(EstimateTest, AMeasurementOfTheOtherSignIsNotUsed) {
  Estimate estimate(prior_, SomeCells(3), options_, workers_);
  estimate.MeasureAll(Noisy(estimate.cells().size(), 4, 3), 3);
  const std::vector<float> before(estimate.weights().begin(), estimate.weights().end());
  estimate.MeasureMore(std::vector<uint32_t>{0, 1}, std::vector<float>{-9, -9}, 3);
  EXPECT_TRUE(std::ranges::equal(estimate.weights(), before));
}

TEST_F(EstimateTest, AFirstMeasurementBelowZeroKeepsALittle) {
  Estimate estimate(prior_, SomeCells(3), options_, workers_);
  estimate.MeasureAll(std::vector<float>(estimate.cells().size(), -1.0f), 3);
  EXPECT_GT(estimate.kappa(), 0);
  for (const float weight : estimate.weights()) EXPECT_GT(weight, 0);
}

TEST_F(EstimateTest, ScoresAreTheSumsOfTheBook) {
  Estimate estimate(prior_, SomeCells(3), options_, workers_);
  estimate.MeasureAll(Noisy(estimate.cells().size(), 4, 3), 3);
  const auto w = Dense(estimate);
  const Scorer scorer(estimate, options_, workers_);
  const std::vector<std::vector<uint32_t>> histories = {
      {}, {5}, {1, 2, 3, 3, 2}, std::vector<uint32_t>(50, 7), {0, 39, 12, 4, 8, 15, 16, 23}};
  for (const auto& history : histories) {
    std::vector<float> scores(kItems, 99.0f);
    scorer.Score(history, scores);
    for (uint32_t b = 0; b < kItems; ++b) {
      double expected = 0;
      for (size_t age = 0; age < std::min<size_t>(20, history.size()); ++age) {
        const uint32_t a = history[history.size() - 1 - age];
        const double v = w[a][b] + options_.reverse_weight * w[b][a];
        expected += std::pow(1 + static_cast<double>(age) / 2, -1.5) *
                    std::pow(v / (std::pow(popularity_[a], options_.score_from) *
                                  std::pow(popularity_[b], options_.score_to)),
                             options_.score_power);
      }
      ASSERT_NEAR(scores[b], expected, 1e-4 * expected);
    }
  }
}

// Beyond what fits as a table: the listed cells are the same, the others use popularity.
TEST_F(EstimateTest, SparseScoresAreTheSameWhereThePriorIsAProduct) {
  Estimate estimate(prior_, SomeCells(4), options_, workers_);
  estimate.MeasureAll(Noisy(estimate.cells().size(), 4, 3), 3);
  Options options = options_;
  options.dense_cells_most = 0;
  const Scorer dense(estimate, options_, workers_), sparse(estimate, options, workers_);
  const std::vector<uint32_t> history = {3, 9, 27, 14, 0};
  std::vector<float> d(kItems), s(kItems);
  dense.Score(history, d);
  sparse.Score(history, s);
  for (uint32_t b = 0; b < kItems; ++b) ASSERT_NEAR(s[b], d[b], 1e-4 * d[b]) << b;
}

}  // namespace
}  // namespace tacit::model::transitions
