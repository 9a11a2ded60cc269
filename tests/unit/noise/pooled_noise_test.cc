#include "noise/pooled_noise.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <mutex>
#include <vector>

#include "fork_check.h"
#include "planted_noise.h"
#include "support/statistics.h"

namespace tacit::noise {
namespace {

using tacit::testing::CheckNoCommonWord;
using tacit::testing::CheckNoRepeat;
using tacit::testing::CheckUncorrelated;
using testing::CheckFork;
using testing::Fault;
using testing::Fingerprint;
using testing::PlantedNoise;

constexpr size_t kLarge = 4 * PooledNoise::kSplitMin;

class PooledNoiseTest : public ::testing::Test {
 protected:
  PooledNoise Planted(Fault fault) {
    std::vector<std::unique_ptr<Keystream>> streams;
    for (size_t i = 0; i < pool_.workers(); ++i) streams.push_back(PlantedNoise::NextStream(fault));
    return PooledNoise(pool_, std::move(streams));
  }

  WorkerPool pool_{{.workers = 2}};
};

TEST_F(PooledNoiseTest, PartsCoverEverythingOnceAndDrawFromStreamsOfTheirOwn) {
  PooledNoise noise(pool_);
  for (const size_t n : {size_t{0}, size_t{1}, PooledNoise::kSplitMin - 1, PooledNoise::kSplitMin,
                         PooledNoise::kSplitMin + 77, kLarge}) {
    std::vector<int> seen(n);
    std::vector<NoiseSource*> sources;
    std::mutex mutex;
    noise.ForParts(n, [&](size_t begin, size_t end, NoiseSource& source) {
      for (size_t i = begin; i < end; ++i) ++seen[i];
      std::lock_guard lock(mutex);
      sources.push_back(&source);
    });
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<ptrdiff_t>(n));
    EXPECT_EQ(sources.size(), n == 0 ? 0u : n < PooledNoise::kSplitMin ? 1u : 2u);
    if (sources.size() == 2) {
      EXPECT_NE(sources[0], sources[1]);
    }
  }
}

// Every fill, large and small, is what the workers' streams give for their parts.
TEST_F(PooledNoiseTest, FillsAreThoseOfTheWorkersStreams) {
  const auto stream = [](int worker) {
    return std::make_unique<Keystream>(Keystream::Key{static_cast<uint8_t>(worker)},
                                       Keystream::CounterBlock{});
  };
  const auto check = [&]<class T>(T, const auto& fill) {
    for (const size_t n : {size_t{1000}, kLarge}) {
      std::vector<std::unique_ptr<Keystream>> streams;
      streams.push_back(stream(0));
      streams.push_back(stream(1));
      PooledNoise pooled(pool_, std::move(streams));
      StreamNoise first(stream(0)), second(stream(1));
      const size_t cut = n < PooledNoise::kSplitMin ? n : n / 2;
      std::vector<T> got(n, T{3}), want(n, T{3});
      fill(pooled, std::span(got));
      fill(first, std::span(want).first(cut));
      fill(second, std::span(want).subspan(cut));
      EXPECT_EQ(got, want) << n;
    }
  };
  check(int64_t{}, [](NoiseSource& s, std::span<int64_t> out) { s.AddGridGaussian(1e6, out); });
  check(float{}, [](NoiseSource& s, std::span<float> out) { s.AddGaussian(2, out); });
  check(float{}, [](NoiseSource& s, std::span<float> out) { s.FillGridGaussian(1e6, 0.1, out); });
  check(double{}, [](NoiseSource& s, std::span<double> out) { s.FillGaussian(out); });
}

// One half of a large fill against the other.
std::string CheckWorkers(NoiseSource& noise) {
  constexpr size_t kHalf = 1000000;
  std::vector<double> z(2 * kHalf);
  noise.FillGaussian(z);
  return CheckUncorrelated(std::span(z).first(kHalf), std::span(z).subspan(kHalf));
}

TEST_F(PooledNoiseTest, WorkersAreIndependentAndASharedKeyIsFoundOut) {
  PooledNoise noise(pool_), sound = Planted(Fault::kNone), replayed = Planted(Fault::kReplay);
  EXPECT_EQ(CheckWorkers(noise), "");
  EXPECT_EQ(CheckWorkers(sound), "");
  EXPECT_NE(CheckWorkers(replayed), "");
}

// The first words of every worker's next draws.
std::vector<uint64_t> WorkersPrints(NoiseSource& noise) {
  std::vector<uint64_t> prints;
  std::mutex mutex;
  noise.ForParts(kLarge, [&](size_t, size_t, NoiseSource& source) {
    std::lock_guard lock(mutex);
    prints.push_back(Fingerprint(source));
  });
  return prints;
}

TEST_F(PooledNoiseTest, ANewKeyIsOneForEveryWorker) {
  PooledNoise original = Planted(Fault::kReplay), replay = Planted(Fault::kReplay);
  EXPECT_EQ(WorkersPrints(original), WorkersPrints(replay));
  std::vector<uint64_t> prints;
  for (int i = 0; i < 2000; ++i) {
    original.Rekey();
    replay.Rekey();
    for (PooledNoise* noise : {&original, &replay})
      for (const uint64_t print : WorkersPrints(*noise)) prints.push_back(print);
  }
  EXPECT_EQ(prints.size(), 8000u);
  EXPECT_EQ(CheckNoRepeat(prints), "");
}

TEST_F(PooledNoiseTest, AForkedChildDrawsWithoutWorkersAndFromAKeyOfItsOwn) {
  PooledNoise noise(pool_);
  std::vector<double> z(kLarge);
  noise.FillGaussian(z);  // keystream is left over
  size_t next = z.size();
  EXPECT_EQ(CheckFork([&] {
              if (next == z.size()) {
                noise.FillGaussian(z);
                next = 0;
              }
              next += z.size() / 64;  // of every worker's part
              return std::bit_cast<uint64_t>(z[next - 1]);
            }),
            "");
}

}  // namespace
}  // namespace tacit::noise
