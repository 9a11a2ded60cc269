#include "privacy/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "accountants.h"
#include "privacy/gaussian.h"
#include "privacy/rdp.h"
#include "support/golden.h"

namespace tacit::privacy {
namespace {

TEST(Calibrate, KeepsTheTargetWithHardlyMoreNoiseThanTheReference) {
  const auto rows = tacit::testing::ReadGolden("calibration");
  for (size_t i = 0; i < rows.size(); i += testing::Stride(3)) {
    std::vector<double> row;
    for (const std::string& cell : rows[i]) row.push_back(std::strtod(cell.c_str(), nullptr));
    const CalibrationTarget target{row[7], row[6], row[3], static_cast<uint64_t>(row[5])};
    const std::string what = rows[i][0] + " epsilon " + rows[i][7] + " steps " + rows[i][5];

    const auto pld = CalibratePld(target, Adjacency::kAddRemove);
    ASSERT_TRUE(pld) << pld.error().message;
    EXPECT_LE(*pld, 1.001 * row[11]) << what;
    EXPECT_GE(*pld, 0.999 * row[11]) << what;
    EXPECT_LE(testing::SampledEpsilon(*pld, target.sampling_rate, row[5], target.delta).upper,
              target.epsilon)
        << what;

    const auto rdp = CalibrateRdp(target, {});
    ASSERT_TRUE(rdp) << rdp.error().message;
    EXPECT_LE(*rdp, 1.001 * row[8]) << what;
    RdpAccountant accountant;
    ASSERT_TRUE(accountant.Add(Event::PoissonGaussian(*rdp, target.sampling_rate), target.steps));
    EXPECT_LE(accountant.Epsilon(Delta(target.delta)).epsilon, target.epsilon) << what;
  }
}

TEST(Calibrate, KnowsThePublishedAnswer) {
  EXPECT_NEAR(*CalibratePld({1, 1e-5, 0.01, 1}, Adjacency::kAddRemove), 0.673792947, 2e-4);
}

TEST(Calibrate, IsTheGaussiansAtRateOne) {
  const double exact = CalibrateGaussian(Epsilon(2), Delta(1e-6), 9).value;
  const double found = *CalibratePld({2, 1e-6, 1, 9}, Adjacency::kAddRemove);
  EXPECT_GE(found, exact * (1 - 1e-9));
  EXPECT_LE(found, exact * 1.001);
  EXPECT_NEAR(*CalibratePld({2, 1e-6, 1, 9}, Adjacency::kReplaceOne) / found, 2, 2e-3);
}

TEST(Calibrate, RefusesWhatCannotBeKept) {
  for (const CalibrationTarget& target :
       {CalibrationTarget{0, 1e-6, 0.1, 10}, CalibrationTarget{1, 0, 0.1, 10},
        CalibrationTarget{1, 1e-6, 0, 10}, CalibrationTarget{1, 1e-6, 0.1, 0}}) {
    EXPECT_FALSE(CalibratePld(target, Adjacency::kAddRemove));
    EXPECT_FALSE(CalibrateRdp(target, {}));
  }
}

// The queries that a mechanism may release once a period, beside its steps.
const std::vector<CountedEvent> kHistogram{{Event::Gaussian(4), 3}};
const std::vector<CountedEvent> kQueries{{Event::Zcdp(0.01), 3}, {Event::Gaussian(10), 1}};

double CertifiedEpsilon(double sigma, const CalibrationTarget& target) {
  PldAccountant accountant(Adjacency::kAddRemove);
  EXPECT_TRUE(accountant.Add(Event::PoissonGaussian(sigma, target.sampling_rate), target.steps));
  for (const auto& [event, count] : target.beside) EXPECT_TRUE(accountant.Add(event, count));
  return accountant.Epsilon(Delta(target.delta)).value().upper;
}

TEST(Calibrate, PldPaysForWhatIsBesideTheSteps) {
  for (const auto& beside : {kHistogram, kQueries}) {
    for (const CalibrationTarget& target : {CalibrationTarget{8, 1e-6, 0.01, 1000, 0, beside},
                                            CalibrationTarget{3, 1e-5, 0.05, 200, 0, beside},
                                            CalibrationTarget{4, 1e-7, 1, 4, 0, beside}}) {
      const auto sigma = CalibratePld(target, Adjacency::kAddRemove);
      ASSERT_TRUE(sigma) << sigma.error().message;
      EXPECT_LE(CertifiedEpsilon(*sigma, target), target.epsilon);
      EXPECT_GT(CertifiedEpsilon(*sigma * (1 - 1e-3), target), target.epsilon) << *sigma;
    }
  }
}

// The least log sigma that the accountant itself certifies, asked afresh each time.
double SlowRoot(const CalibrationTarget& target) {
  double low = std::log(0.2), high = std::log(5);
  while (high - low > 1e-4) {
    const double middle = (low + high) / 2;
    (CertifiedEpsilon(std::exp(middle), target) > target.epsilon ? low : high) = middle;
  }
  return high;
}

// Epsilon is flat where what is beside the steps dominates, and steep where they do: no probe may
// be led astray by another, nor refused for it.
TEST(Calibrate, FindsTheRootBehindAFlatStretch) {
  const std::vector<std::pair<CountedEvent, uint64_t>> rows{{{Event::Zcdp(0.73), 1}, 73},
                                                            {{Event::Gaussian(0.75), 1}, 73},
                                                            {{Event::Gaussian(0.85), 1}, 1},
                                                            {{Event::Gaussian(0.80), 1}, 1},
                                                            {{Event::Gaussian(0.75), 1}, 1}};
  for (const auto& [beside, steps] : rows) {
    const CalibrationTarget target{8, 1e-7, 0.0137, steps, 0, {beside}};
    const auto sigma = CalibratePld(target, Adjacency::kAddRemove);
    ASSERT_TRUE(sigma) << sigma.error().message;
    EXPECT_LE(CertifiedEpsilon(*sigma, target), target.epsilon);
    EXPECT_NEAR(std::log(*sigma), SlowRoot(target), 1e-3) << *sigma;
  }
}

// A hint changes how long an answer takes, not what it is.
TEST(Calibrate, AHintFromFarAwayDoesNotLoosenTheBound) {
  for (uint64_t steps : {1, 73}) {
    const std::vector<CountedEvent> events{{Event::PoissonGaussian(0.6, 0.0137), steps},
                                           {Event::Gaussian(0.8), 1}};
    const double plain = PldUpperEpsilon(events, Adjacency::kAddRemove, Delta(1e-7)).value();
    for (double factor : {0.05, 0.5, 0.9, 1.15, 1.5, 2.0, 5.0, 100.0}) {
      std::optional<PldHint> hint{{factor * plain, 4}};
      const auto found = PldUpperEpsilon(events, Adjacency::kAddRemove, Delta(1e-7), &hint);
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_NEAR(*found / plain, 1, 1e-3) << factor;
      ASSERT_TRUE(hint);
      EXPECT_EQ(hint->epsilon, *found);
    }
  }
}

TEST(Calibrate, RdpPaysForWhatIsBesideTheSteps) {
  const CalibrationTarget target{3, 1e-5, 0.05, 200, 0, kQueries};
  const auto sigma = CalibrateRdp(target, {});
  ASSERT_TRUE(sigma) << sigma.error().message;
  const auto epsilon = [&](double at) {
    RdpAccountant accountant;
    EXPECT_TRUE(accountant.Add(Event::PoissonGaussian(at, target.sampling_rate), target.steps));
    for (const auto& [event, count] : target.beside) EXPECT_TRUE(accountant.Add(event, count));
    return accountant.Epsilon(Delta(target.delta)).epsilon;
  };
  EXPECT_LE(epsilon(*sigma), 3);
  EXPECT_GT(epsilon(*sigma * (1 - 1e-5)), 3);
}

TEST(Calibrate, OncePaysForGaussiansBesideTheStepsInClosedForm) {
  const CalibrationTarget target{2, 1e-6, 1, 4, 0, kHistogram};
  const auto sigma = CalibrateOnce(target);
  ASSERT_TRUE(sigma) << sigma.error().message;
  const auto epsilon = [&](double at) {
    return GaussianEpsilon(std::sqrt(4 / at / at + 3.0 / 16), Delta(1e-6)).value;
  };
  EXPECT_LE(epsilon(*sigma), 2);
  EXPECT_GT(epsilon(*sigma * (1 - 1e-9)), 2);
  EXPECT_EQ(*CalibrateOnce({2, 1e-6, 1, 4}), CalibrateGaussian(Epsilon(2), Delta(1e-6), 4).value);
  const CalibrationTarget queries{2, 1e-6, 1, 4, 0, kQueries};
  EXPECT_EQ(*CalibrateOnce(queries), *CalibratePld(queries, Adjacency::kAddRemove));
}

// A sliver that is left can still be hit: the steps get the noise that fits into it.
TEST(Calibrate, AlmostEverythingMayBeSpentBesideTheSteps) {
  const double mu = GaussianMu(Epsilon(2), Delta(1e-6));
  const CalibrationTarget target{2, 1e-6, 0.05, 200, 0, {{Event::Gaussian(1.02 / mu), 1}}};
  const auto sigma = CalibratePld(target, Adjacency::kAddRemove);
  ASSERT_TRUE(sigma) << sigma.error().message;
  EXPECT_LE(CertifiedEpsilon(*sigma, target), 2);
  EXPECT_GT(CertifiedEpsilon(*sigma * 0.98, target), 2);
}

TEST(Calibrate, RefusesWhatIsSpentBesideTheStepsAlready) {
  const CalibrationTarget target{1, 1e-6, 0.05, 200, 0, {{Event::Gaussian(1), 2}}};
  for (const auto& found : {CalibratePld(target, Adjacency::kAddRemove), CalibrateRdp(target, {}),
                            CalibrateOnce({1, 1e-6, 1, 2, 0, target.beside})}) {
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().message.find("beside the steps"), std::string::npos);
    EXPECT_NE(found.error().message.find("alone"), std::string::npos);
  }
}

}  // namespace
}  // namespace tacit::privacy
