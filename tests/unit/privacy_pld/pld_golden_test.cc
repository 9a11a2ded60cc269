#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "accountants.h"
#include "support/golden.h"

namespace tacit::privacy {
namespace {

using tacit::testing::CellNumber;
using tacit::testing::ReadGolden;
using testing::ExpectTightAround;
using testing::SampledEpsilon;
using testing::Stride;

std::string Describe(const std::vector<std::string>& row) {
  return "q " + row[0] + " sigma " + row[1] + " steps " + row[2] + " delta " + row[3];
}

TEST(PldAccountant, IsTightAroundTheSubsampledTable) {
  const auto rows = ReadGolden("pld_subsampled");
  for (size_t i = 0; i < rows.size(); i += Stride(4)) {
    const auto& row = rows[i];
    double reference = CellNumber(row[15]);  // exact, where rate is 1
    if (row[15].empty()) reference = std::min(CellNumber(row[5]), CellNumber(row[9]));
    ExpectTightAround(reference,
                      SampledEpsilon(CellNumber(row[1]), CellNumber(row[0]), CellNumber(row[2]),
                                     CellNumber(row[3])),
                      Describe(row));
  }
}

TEST(PldAccountant, IsTightAroundTheReplaceOneTable) {
  const auto rows = ReadGolden("pld_replace_one");
  for (size_t i = 0; i < rows.size(); i += Stride(2)) {
    const auto& row = rows[i];
    ExpectTightAround(std::min(CellNumber(row[5]), CellNumber(row[7])),
                      SampledEpsilon(CellNumber(row[1]), CellNumber(row[0]), CellNumber(row[2]),
                                     CellNumber(row[3]), Adjacency::kReplaceOne),
                      Describe(row));
  }
}

// The reference's lattice is as coarse as a quarter of the one-step loss at small rates. Connecting
// the dots then adds h^2 / 6 to each step's variance, about half as much, relatively, to epsilon;
// the contour integral below says the same.
TEST(PldAccountant, IsTightAroundTheAdaFestTable) {
  const auto rows = ReadGolden("adafest");
  for (size_t i = 0; i < rows.size(); i += Stride(4)) {
    const auto& row = rows[i];
    const double sigma = CellNumber(row[7]), rate = CellNumber(row[2]);
    const double relative_step =
        CellNumber(row[11]) / (rate * std::sqrt(std::expm1(1 / sigma / sigma)));
    const double reference = std::min(CellNumber(row[10]), CellNumber(row[12]));
    const CertifiedInterval found =
        SampledEpsilon(sigma, rate, CellNumber(row[4]), CellNumber(row[8]));
    const std::string what = "sigma1 " + row[5] + " sigma2 " + row[6] + " n " + row[0];
    EXPECT_GE(found.upper, reference * (1 - 1e-3 - relative_step * relative_step / 12)) << what;
    EXPECT_LE(found.upper, reference * (1 + 2e-3) + 1e-6) << what;
    EXPECT_LE(found.lower, reference) << what;
    EXPECT_LE(found.upper - found.lower, 2e-3 * found.upper + 1e-6) << what;
  }
}

TEST(PldAccountant, KnowsThePublishedAnswers) {
  ExpectTightAround(6.7687874, SampledEpsilon(1.5, 0.04, 2250, 1e-5), "opacus tutorial");
  ExpectTightAround(0.6401109, SampledEpsilon(1.3, 0.0025, 6000, 1e-5), "sigma 1.3");
  ExpectTightAround(1.0981989, SampledEpsilon(1, 0.001, 30000, 1e-7), "sigma 1");
  const CertifiedInterval whole = SampledEpsilon(0.7, 1, 2, 1e-5);
  EXPECT_NEAR(whole.upper, 10.1224946, 1e-7);
  ExpectTightAround(1, SampledEpsilon(0.673792947, 0.01, 1, 1e-5), "one query");
}

// Two queries on one sampled batch are one event of the joint noise. Billed as two independently
// sampled events they would seem to cost half.
TEST(PldAccountant, ChargesQueriesOnOneBatchTogether) {
  const auto epsilon = [](double sigma, uint64_t count) {
    PldAccountant accountant(Adjacency::kAddRemove);
    EXPECT_TRUE(accountant.Add(Event::PoissonGaussian(sigma, 2048 / 1e5), count));
    return *accountant.Epsilon(Delta(1e-5));
  };
  EXPECT_NEAR(epsilon(0.8 / std::sqrt(2.0), 49).upper, 5.77, 0.01);
  EXPECT_NEAR(epsilon(0.8, 2 * 49).upper, 2.66, 0.01);
  int rows = 0;
  for (const auto& row : ReadGolden("adafest")) {
    if (CellNumber(row[0]) != 1e5 || row[5] != "0.8" || row[6] != "0.8" || row[15].empty())
      continue;
    const auto steps = static_cast<uint64_t>(CellNumber(row[4]));
    ExpectTightAround(CellNumber(row[12]), epsilon(0.8 / std::sqrt(2.0), steps), "joint");
    ExpectTightAround(CellNumber(row[15]), epsilon(0.8, 2 * steps), "split");
    ++rows;
  }
  EXPECT_GT(rows, 0);
}

// An oracle of its own: delta by integrating the exact law's moment generating function along the
// line c + it, with no lattice and no bound.
double ContourDelta(double rate, double sigma, double steps, double epsilon, double tilt) {
  constexpr int kNodes = 4000;
  const double low = -13 * sigma, width = (1 + 26 * sigma) / kNodes;
  std::vector<double> loss(kNodes), mass(kNodes);
  double mean = 0, square = 0, moment = 0;
  for (int i = 0; i < kNodes; ++i) {
    const double x = low + i * width;
    loss[i] = std::log1p(rate * std::expm1((2 * x - 1) / (2 * sigma * sigma)));
    mass[i] =
        std::exp(-x * x / (2 * sigma * sigma) + loss[i]) * width / sigma / std::sqrt(2 * M_PI);
    const double weight = mass[i] * std::exp(tilt * loss[i]);
    moment += weight;
    mean += weight * loss[i];
    square += weight * loss[i] * loss[i];
  }
  const double scale = std::sqrt(steps * (square / moment - mean * mean / moment / moment));
  const double dt = 2 * M_PI / (60 * scale + 40 / tilt);
  double sum = 0;
  for (int k = 0; k * dt * scale < 13; ++k) {
    const std::complex<double> z(tilt, k * dt);
    std::complex<double> excess = 0;
    for (int i = 0; i < kNodes; ++i) {
      const double grown = std::expm1(tilt * loss[i]);
      // e^(z l) - 1 without cancellation.
      const double turn = k * dt * loss[i], half = std::sin(turn / 2);
      excess += mass[i] * std::complex<double>(grown - (1 + grown) * 2 * half * half,
                                               (1 + grown) * std::sin(turn));
    }
    const std::complex<double> value =
        std::exp(steps * std::log(1.0 + excess) - z * epsilon) / (z * (z + 1.0));
    sum += (k == 0 ? 0.5 : 1.0) * value.real();
  }
  return sum * dt / M_PI;
}

TEST(PldAccountant, HoldsTheContourIntegralBetweenItsBounds) {
  struct Cell {
    double rate, sigma, steps, delta;
  };
  for (const Cell& cell :
       {Cell{1e-4, 8, 1e5, 1e-5}, Cell{1e-3, 2, 1e5, 1e-6}, Cell{0.01, 1, 1e4, 1e-6},
        Cell{0.04, 1.5, 2250, 1e-5}, Cell{0.5, 4, 1000, 1e-10}, Cell{1e-3, 2, 1e7, 1e-12}}) {
    const CertifiedInterval found = SampledEpsilon(cell.sigma, cell.rate, cell.steps, cell.delta);
    const double variance =
        cell.steps * cell.rate * cell.rate * std::expm1(1 / cell.sigma / cell.sigma);
    const double tilt = std::max(found.upper / variance - 0.5, 1.0);
    EXPECT_LE(ContourDelta(cell.rate, cell.sigma, cell.steps, found.upper, tilt), cell.delta)
        << "rate " << cell.rate << " steps " << cell.steps;
    EXPECT_GE(ContourDelta(cell.rate, cell.sigma, cell.steps, found.lower, tilt), cell.delta)
        << "rate " << cell.rate << " steps " << cell.steps;
  }
}

TEST(PldAccountant, DeltaAndEpsilonAreInverse) {
  for (double delta : {1e-3, 1e-6, 1e-12}) {
    PldAccountant accountant(Adjacency::kAddRemove);
    ASSERT_TRUE(accountant.Add(Event::PoissonGaussian(1, 0.01), 1000));
    const auto epsilon = accountant.Epsilon(Delta(delta));
    ASSERT_TRUE(epsilon);
    PldAccountant fresh(Adjacency::kAddRemove);
    ASSERT_TRUE(fresh.Add(Event::PoissonGaussian(1, 0.01), 1000));
    EXPECT_LE(fresh.DeltaAt(epsilon->upper * 1.002)->upper, delta);
    EXPECT_LE(fresh.DeltaAt(epsilon->upper)->lower, delta);
    EXPECT_GE(fresh.DeltaAt(epsilon->lower)->upper, delta);
  }
}

}  // namespace
}  // namespace tacit::privacy
