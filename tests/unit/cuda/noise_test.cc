// Noise on the device against the CPU's own arithmetic: bit for bit, for the same words.
#include "cuda/kernels/noise/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cuda/kernels/noise/noise_check.h"
#include "cuda/kernels/parts/chacha.h"
#include "noise/grid_gaussian.h"
#include "noise/noise.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

using NoiseOnDevice = OnDevice;

constexpr NoiseKey kKey = {{11, 22, 33, 44, 55, 66, 77, 88}};

// Number i of a query: place i / 16 is 48 words, each pair 6 of them; the CPU's loop makes two of
// them. `add_grid` is the CPU's portable or its fastest.
std::vector<int64_t> CpuNumbers(NoiseQuery query, uint64_t first_place, size_t n, double stddev,
                                noise::AddGridFunction add_grid) {
  std::vector<int64_t> numbers;
  for (uint64_t place = first_place; numbers.size() < n; ++place) {
    std::vector<uint32_t> words;
    for (uint64_t b = 0; b < 3; ++b) {
      uint32_t block[16];
      ChaChaBlock(kKey.words, 3 * place + b, static_cast<uint64_t>(query), block);
      words.insert(words.end(), std::begin(block), std::end(block));
    }
    for (size_t pair = 0; pair < 8; ++pair) {
      alignas(64) uint32_t bits[6];
      std::copy_n(words.begin() + static_cast<long>(6 * pair), 6, bits);
      int64_t first = 0, second = 0;
      add_grid(bits, stddev, noise::DitherBits(stddev), &first, &second, 1);
      numbers.push_back(first);
      numbers.push_back(second);
    }
  }
  numbers.resize(n);
  return numbers;
}

TEST_F(NoiseOnDevice, HasTheBitsOfTheCpuForEverySizeAndDeviation) {
  if (device_ == nullptr) return;
  const auto key = ToDevice<NoiseKey>({kKey});
  for (const double stddev :
       {noise::kGridStddevMin, 150.0, 1.3e6, 0x1.fffffp30, noise::kGridStddevMax}) {
    for (const size_t n : {1u, 15u, 16u, 17u, 2047u, 2048u, 2049u, 5003u}) {
      std::mt19937_64 random(n);
      std::vector<int64_t> start(n);
      for (int64_t& value : start) value = static_cast<int64_t>(random());  // so that sums wrap
      const auto values = ToDevice(start);
      ASSERT_TRUE(AddGridNoise(*stream_, key.span(), NoiseQuery::kDense, stddev, values.span()));
      auto want = CpuNumbers(NoiseQuery::kDense, 0, n, stddev, noise::AddGridPortable);
      ASSERT_EQ(want, CpuNumbers(NoiseQuery::kDense, 0, n, stddev, noise::FastestAddGrid()));
      for (size_t i = 0; i < n; ++i)
        want[i] =
            static_cast<int64_t>(static_cast<uint64_t>(want[i]) + static_cast<uint64_t>(start[i]));
      ASSERT_EQ(FromDevice(values), want) << n << " numbers, stddev " << stddev;
    }
  }
}

TEST_F(NoiseOnDevice, FillsWithTheFloatsOfTheCpu) {
  if (device_ == nullptr) return;
  const auto key = ToDevice<NoiseKey>({kKey});
  constexpr size_t kNumbers = 3001;
  constexpr double kStddev = 7e8, kFactor = 1.0 / 3e9;
  const auto out = Make<float>(kNumbers);
  ASSERT_TRUE(
      FillGridNoise(*stream_, key.span(), NoiseQuery::kSelection, kStddev, kFactor, out.span()));
  std::vector<float> want;
  for (const int64_t n :
       CpuNumbers(NoiseQuery::kSelection, 0, kNumbers, kStddev, noise::AddGridPortable))
    want.push_back(static_cast<float>(static_cast<double>(n) * kFactor));
  EXPECT_EQ(FromDevice(out), want);
}

// A row's noise depends on its id: it is the same in any order and beside any rows.
TEST_F(NoiseOnDevice, RowsHaveTheNoiseOfTheirIds) {
  if (device_ == nullptr) return;
  const auto key = ToDevice<NoiseKey>({kKey});
  constexpr double kStddev = 3e5;
  for (const uint32_t dim : {1u, 16u, 37u, 64u}) {
    std::vector<uint64_t> ids = {5, 0, 1, (uint64_t{1} << 48) - 1, 4, 999999999};
    for (int order = 0; order < 3; ++order) {
      std::shuffle(ids.begin(), ids.end(), std::mt19937(static_cast<unsigned>(order)));
      if (order == 2) ids.resize(2);
      const auto rows = ToDevice(ids);
      const auto values = ToDevice(std::vector<int64_t>(ids.size() * dim, 1000));
      ASSERT_TRUE(AddGridNoiseToRows(*stream_, key.span(), NoiseQuery::kRows, kStddev, rows.span(),
                                     dim, values.span()));
      std::vector<int64_t> want;
      for (const uint64_t id : ids)
        for (const int64_t n : CpuNumbers(NoiseQuery::kRows, id * ((dim + 15) / 16), dim, kStddev,
                                          noise::AddGridPortable))
          want.push_back(n + 1000);
      ASSERT_EQ(FromDevice(values), want) << "dim " << dim;
    }
  }
}

TEST_F(NoiseOnDevice, QueriesAndKeysHaveNothingInCommon) {
  if (device_ == nullptr) return;
  NoiseKey other = kKey;
  other.words[7] ^= 1u << 31;
  std::vector<std::vector<int64_t>> draws;
  for (const NoiseKey& words : {kKey, other}) {
    const auto key = ToDevice<NoiseKey>({words});
    for (const auto query : {NoiseQuery::kDense, NoiseQuery::kRows, NoiseQuery::kSelection}) {
      const auto values = ToDevice(std::vector<int64_t>(1000, 0));
      ASSERT_TRUE(AddGridNoise(*stream_, key.span(), query, 0x1p30, values.span()));
      draws.push_back(FromDevice(values));
    }
  }
  for (size_t a = 0; a < draws.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      size_t equal = 0;
      for (size_t i = 0; i < 1000; ++i) equal += draws[a][i] == draws[b][i];
      EXPECT_LE(equal, 1u) << a << ", " << b;
    }
}

TEST_F(NoiseOnDevice, SameBitsUnderEveryOrder) {
  if (device_ == nullptr) return;
  const auto key = ToDevice<NoiseKey>({kKey});
  std::vector<int64_t> first;
  for (int order = 0; order < Orders(); ++order) {
    NextOrder(order);
    const auto values = ToDevice(std::vector<int64_t>(5000, 0));
    ASSERT_TRUE(AddGridNoise(*stream_, key.span(), NoiseQuery::kDense, 1e6, values.span()));
    const auto got = FromDevice(values);
    if (order == 0) first = got;
    ASSERT_EQ(got, first);
  }
}

TEST_F(NoiseOnDevice, PassesItsSelfTest) {
  if (device_ == nullptr) return;
  const Status status = CheckNoise(*stream_);
  EXPECT_TRUE(status) << status.error().message;
}

TEST_F(NoiseOnDevice, RefusesADeviationThatItsGridCannotHide) {
  if (device_ == nullptr) return;
  GTEST_FLAG_SET(death_test_style, "fast");
  const auto key = ToDevice<NoiseKey>({kKey});
  const auto values = Make<int64_t>(1);
  EXPECT_DEATH((void)AddGridNoise(*stream_, key.span(), NoiseQuery::kDense, 100, values.span()),
               "the grid's step does not fit the noise");
}

}  // namespace
}  // namespace tacit::cuda::testing
