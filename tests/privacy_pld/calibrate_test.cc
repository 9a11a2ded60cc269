#include "privacy/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace tacit::privacy
