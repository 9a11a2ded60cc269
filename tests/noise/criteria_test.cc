// What noise must be, as criteria; each passes on the product's sources, alone and on workers, and
// fails on sources that have a fault planted in them (planted_noise.h). The product's keys are
// random: a run of all of them raises a false alarm with probability below 1e-6 (statistics.h).
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "noise/noise.h"
#include "planted_noise.h"
#include "support/statistics.h"

namespace tacit::noise {
namespace {

using testing::Fault;
using testing::Fingerprint;
using testing::PlantedNoise;

using MakeSource = std::function<std::unique_ptr<NoiseSource>()>;

constexpr double kStddev = 0x1p30;
constexpr size_t kBlock = size_t{1} << 16;  // is cut over workers

void Draw(NoiseSource& source, std::span<double> z) {
  std::vector<int64_t> steps(z.size());
  source.AddGridGaussian(kStddev, steps);
  for (size_t i = 0; i < z.size(); ++i) z[i] = static_cast<double>(steps[i]) / kStddev;
}

// Two sources' draws, a block at a time, and their sum over the root of 2, which is standard normal
// only if both are, and if they have nothing to do with one another.
void Mixed(
    const MakeSource& make, size_t n,
    const std::function<void(std::span<const double> a, std::span<const double> mixed)>& take) {
  const auto first = make(), second = make();
  std::vector<double> a(kBlock), b(kBlock);
  for (size_t left = n; left > 0; left -= std::min(left, kBlock)) {
    const size_t size = std::min(left, kBlock);
    Draw(*first, std::span(a).first(size));
    Draw(*second, std::span(b).first(size));
    for (size_t i = 0; i < size; ++i) b[i] = (a[i] + b[i]) / std::numbers::sqrt2;
    take(std::span(a).first(size), std::span(b).first(size));
  }
}

std::vector<double> MixedSample(const MakeSource& make, size_t n) {
  std::vector<double> sample;
  sample.reserve(n);
  Mixed(make, n, [&](std::span<const double>, std::span<const double> mixed) {
    sample.insert(sample.end(), mixed.begin(), mixed.end());
  });
  return sample;
}

// A deviation off by 1 % is 14 times what chance does to a million draws.
std::string Variance(const MakeSource& make) {
  return tacit::testing::CheckMoments(MixedSample(make, 1000000));
}

std::string Distribution(const MakeSource& make) {
  return tacit::testing::CheckDistribution(MixedSample(make, 5000000), tacit::testing::NormalCdf);
}

// A hundred million, of which 29 lie above five deviations and 29 below.
std::string Tails(const MakeSource& make) {
  tacit::testing::TailCounts alone, mixed;
  Mixed(make, 100000000, [&](std::span<const double> a, std::span<const double> sum) {
    alone.Count(a);
    mixed.Count(sum);
  });
  return alone.Check() + mixed.Check();
}

std::vector<double> Normals(NoiseSource& source, size_t n) {
  std::vector<double> z(n);
  Draw(source, z);
  return z;
}

// Series of draws: their correlation, and that of their squares.
std::string Unrelated(std::span<const double> a, std::span<const double> b) {
  const auto squares = [](std::span<const double> z) {
    std::vector<double> s;
    for (double value : z) s.push_back((value * value - 1) / std::numbers::sqrt2);
    return s;
  };
  return tacit::testing::CheckUncorrelated(a, b) +
         tacit::testing::CheckUncorrelated(squares(a), squares(b));
}

std::vector<uint64_t> Fingerprints(NoiseSource& source, size_t n) {
  std::vector<uint64_t> prints(n);
  for (uint64_t& print : prints) print = Fingerprint(source);
  return prints;
}

std::string Independence(const MakeSource& make) {
  const auto a = make(), b = make();
  return Unrelated(Normals(*a, 1000000), Normals(*b, 1000000)) +
         tacit::testing::CheckNoCommonWord(Fingerprints(*a, 50000), Fingerprints(*b, 50000));
}

std::string NewKey(const MakeSource& make) {
  const auto source = make();
  const auto before = Normals(*source, 1000000);
  const auto prints = Fingerprints(*source, 50000);
  source->Rekey();
  const auto after = Normals(*source, 1000000);
  return Unrelated(before, after) +
         tacit::testing::CheckNoCommonWord(prints, Fingerprints(*source, 50000));
}

// What 300,000 keys begin with. Of 31-bit keys, 21 are expected to come twice.
std::string ManyKeys(const MakeSource& make) {
  const auto source = make();
  std::vector<uint64_t> prints(300000);
  for (size_t i = 0; i < prints.size(); ++i) {
    source->Rekey();
    prints[i] = Fingerprint(*source);
    if (i > 0 && prints[i] == prints[i - 1]) return "the same key twice; ";
  }
  return tacit::testing::CheckNoRepeat(prints);
}

struct Criterion {
  const char* name;
  std::string (*check)(const MakeSource&);
  std::vector<Fault> finds;
};

class Criteria : public ::testing::TestWithParam<Criterion> {};

TEST_P(Criteria, PassesOnTheProductsSource) {
  EXPECT_EQ(GetParam().check([] { return MakeNoiseSource(); }), "");
}

TEST_P(Criteria, PassesOnWorkers) {
  WorkerPool pool({.workers = 2});
  EXPECT_EQ(GetParam().check([&] { return MakeNoiseSource(pool); }), "");
}

TEST_P(Criteria, FindsWhatItIsFor) {
  // A planted source fails by its fault alone. (A hundred thousand sound keys take too long.)
  if (GetParam().check != ManyKeys) {
    EXPECT_EQ(GetParam().check([] { return std::make_unique<PlantedNoise>(Fault::kNone); }), "");
  }
  for (const Fault fault : GetParam().finds) {
    EXPECT_NE(GetParam().check([&] { return std::make_unique<PlantedNoise>(fault); }), "")
        << "fault " << static_cast<int>(fault);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Noise, Criteria,
    ::testing::Values(
        Criterion{"Variance", Variance, {Fault::kNarrow, Fault::kWide, Fault::kReplay}},
        Criterion{"Distribution", Distribution, {Fault::kNarrow, Fault::kWide, Fault::kReplay}},
        Criterion{
            "Tails", Tails, {Fault::kNarrow, Fault::kWide, Fault::kReplay, Fault::kShortTail}},
        Criterion{"Independence", Independence, {Fault::kReplay}},
        Criterion{"NewKey", NewKey, {Fault::kReplay}},
        Criterion{"ManyKeys", ManyKeys, {Fault::kReplay, Fault::kSeed31}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tacit::noise
