// Tests what kernel.h offers, by small kernels that use it; on the emulated device under many
// orders of turns, and on a real one.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "unit/cuda/trial_device.h"
#include "unit/cuda/trial_kernels.h"

namespace tacit::cuda::testing {
namespace {

using KernelTest = OnDevice;

std::vector<uint32_t> ReversedBlocks(std::vector<uint32_t> numbers) {
  for (size_t i = 0; i < numbers.size(); i += kTrialBlock)
    std::reverse(numbers.begin() + static_cast<long>(i),
                 numbers.begin() + static_cast<long>(i + kTrialBlock));
  return numbers;
}

TEST_F(KernelTest, ThreadsKnowTheirPlace) {
  if (device_ == nullptr) return;
  const auto out = Make<uint32_t>(6 * 16);
  ASSERT_TRUE(NameThreads(*stream_, out.span()));
  std::vector<uint32_t> want;
  for (uint32_t by = 0; by < 3; ++by)
    for (uint32_t bx = 0; bx < 2; ++bx)
      for (uint32_t tz = 0; tz < 2; ++tz)
        for (uint32_t ty = 0; ty < 2; ++ty)
          for (uint32_t tx = 0; tx < 4; ++tx)
            want.push_back(((bx * 10 + by) * 10 + tx) * 100 + ty * 10 + tz);
  EXPECT_EQ(FromDevice(out), want);
}

TEST_F(KernelTest, SharedMemoryAndBarriers) {
  if (device_ == nullptr) return;
  const auto numbers = Counted(7 * kTrialBlock);
  const auto in = ToDevice(numbers);
  for (int order = 0; order < Orders(); ++order) {
    NextOrder(order);
    const auto out = Make<uint32_t>(numbers.size());
    ASSERT_TRUE(Reverse(*stream_, in.span(), out.span()));
    ASSERT_EQ(FromDevice(out), ReversedBlocks(numbers)) << "order " << order;
  }
}

TEST_F(KernelTest, AsynchronousCopies) {
  if (device_ == nullptr) return;
  const auto numbers = Counted(5 * kTrialBlock);
  auto cleared = numbers;
  for (size_t i = 0; i < cleared.size(); ++i)
    if (i / 4 % 2 == 1) cleared[i] = 0;
  const auto in = ToDevice(numbers);
  for (int order = 0; order < Orders(); ++order) {
    NextOrder(order);
    const auto out = Make<uint32_t>(numbers.size());
    ASSERT_TRUE(ReverseAsync(*stream_, in.span(), out.span(), false));
    ASSERT_EQ(FromDevice(out), ReversedBlocks(numbers)) << "order " << order;
    ASSERT_TRUE(ReverseAsync(*stream_, in.span(), out.span(), true));
    ASSERT_EQ(FromDevice(out), ReversedBlocks(cleared)) << "order " << order;
  }
}

TEST_F(KernelTest, ShufflesVotesAndAtomics) {
  if (device_ == nullptr) return;
  std::mt19937_64 random(5);
  std::vector<int64_t> numbers(1001);
  int64_t want = 0;
  uint32_t want_odd = 0;
  for (int64_t& n : numbers) {
    n = static_cast<int64_t>(random() >> 20) - (int64_t{1} << 42);
    want += n;
    want_odd += n % 2 != 0;
  }
  const auto in = ToDevice(numbers);
  for (int order = 0; order < Orders(); ++order) {
    NextOrder(order);
    const auto sum = ToDevice<int64_t>({100});
    const auto odd = ToDevice<uint32_t>({7});
    ASSERT_TRUE(SumAll(*stream_, in.span(), sum.span(), odd.span()));
    ASSERT_EQ(FromDevice(sum)[0], want + 100) << "order " << order;
    ASSERT_EQ(FromDevice(odd)[0], want_odd + 7) << "order " << order;
  }
}

// Small integers, whose products and sums are exact in any order.
TEST_F(KernelTest, FragmentsAreThoseOfPtx) {
  if (device_ == nullptr) return;
  std::mt19937 random(7);
  const auto bf16 = [](float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); };
  std::vector<float> a(256), b(128), want(128, 0.0f);
  for (float& x : a) x = static_cast<float>(static_cast<int>(random() % 17) - 8);
  for (float& x : b) x = static_cast<float>(static_cast<int>(random() % 17) - 8);
  std::vector<uint16_t> a16, b16;
  for (float x : a) a16.push_back(bf16(x));
  for (float x : b) b16.push_back(bf16(x));
  for (size_t i = 0; i < 16; ++i)
    for (size_t j = 0; j < 8; ++j)
      for (size_t k = 0; k < 16; ++k) want[8 * i + j] += a[16 * i + k] * b[8 * k + j];
  const auto on_a = ToDevice(a16), on_b = ToDevice(b16);
  for (int order = 0; order < Orders(); ++order) {
    NextOrder(order);
    const auto c = Make<float>(128);
    ASSERT_TRUE(MultiplyTile(*stream_, on_a.span(), on_b.span(), c.span()));
    ASSERT_EQ(FromDevice(c), want) << "order " << order;
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
