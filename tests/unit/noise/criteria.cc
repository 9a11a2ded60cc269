#include "criteria.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <span>

#include "planted_noise.h"
#include "support/statistics.h"

namespace tacit::noise {
namespace {

using testing::Fingerprint;
using testing::MakeSource;

constexpr double kStddev = 0x1p30;
constexpr size_t kBlock = size_t{1} << 16;  // is cut over workers

size_t Share(size_t draws, double share) {
  return static_cast<size_t>(static_cast<double>(draws) * share);
}

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
std::string Variance(const MakeSource& make, double share) {
  return tacit::testing::CheckMoments(MixedSample(make, Share(1000000, share)));
}

std::string Distribution(const MakeSource& make, double share) {
  return tacit::testing::CheckDistribution(MixedSample(make, Share(5000000, share)),
                                           tacit::testing::NormalCdf);
}

// A hundred million, of which 29 lie above five deviations and 29 below.
std::string Tails(const MakeSource& make, double share) {
  tacit::testing::TailCounts alone, mixed;
  Mixed(make, Share(100000000, share), [&](std::span<const double> a, std::span<const double> sum) {
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

std::string Independence(const MakeSource& make, double share) {
  const auto a = make(), b = make();
  const size_t n = Share(1000000, share), prints = Share(50000, share);
  return Unrelated(Normals(*a, n), Normals(*b, n)) +
         tacit::testing::CheckNoCommonWord(Fingerprints(*a, prints), Fingerprints(*b, prints));
}

std::string NewKey(const MakeSource& make, double share) {
  const auto source = make();
  const size_t n = Share(1000000, share), words = Share(50000, share);
  const auto before = Normals(*source, n);
  const auto prints = Fingerprints(*source, words);
  source->Rekey();
  const auto after = Normals(*source, n);
  return Unrelated(before, after) +
         tacit::testing::CheckNoCommonWord(prints, Fingerprints(*source, words));
}

// The first numbers of 300,000 keys. Of 31-bit keys, 21 are expected to come twice.
std::string ManyKeys(const MakeSource& make, double share) {
  const auto source = make();
  std::vector<uint64_t> prints(Share(300000, share));
  for (size_t i = 0; i < prints.size(); ++i) {
    source->Rekey();
    prints[i] = Fingerprint(*source);
    if (i > 0 && prints[i] == prints[i - 1]) return "the same key twice; ";
  }
  return tacit::testing::CheckNoRepeat(prints);
}

}  // namespace

namespace testing {

const std::vector<Criterion>& AllCriteria() {
  static const std::vector<Criterion> kAll = {
      {"Variance", Variance, {Fault::kNarrow, Fault::kWide, Fault::kReplay}},
      {"Distribution", Distribution, {Fault::kNarrow, Fault::kWide, Fault::kReplay}},
      {"Tails", Tails, {Fault::kNarrow, Fault::kWide, Fault::kReplay, Fault::kShortTail}},
      {"Independence", Independence, {Fault::kReplay}},
      {"NewKey", NewKey, {Fault::kReplay}},
      {"ManyKeys", ManyKeys, {Fault::kReplay, Fault::kSeed31}}};
  return kAll;
}

}  // namespace testing
}  // namespace tacit::noise
