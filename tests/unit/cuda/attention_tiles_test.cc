// Attention with factors of bf16 against loops in double, at ugly shapes, and its bits.
#include <gtest/gtest.h>

#include "unit/cuda/attention_trial.h"

namespace tacit::cuda::testing {
namespace {

using AttentionTiles = AttentionTrial;

const std::vector<uint32_t> kUgly = {1, 2, 63, 15, 16, 17, 64, 65}, kUglyAndLong = {200, 1, 129, 2};

TEST_F(AttentionTiles, AreWithinRoundingOfLoopsInDouble) {
  if (device_ == nullptr) return;
  for (const auto& [heads, width] : {std::pair<uint32_t, uint32_t>{1, 64},
                                     {2, 8},
                                     {1, 16},
                                     {2, 24},
                                     {1, 32},
                                     {3, 4},
                                     {5, 1},
                                     {1, 7},
                                     {1, 50},
                                     {1, 33}}) {
    if (kThreadsAreDear && width % 8 != 0) continue;
    for (const bool corrected : {false, true}) {
      // Those of four tiles are dear.
      const bool is_long = width == 64 || width == 24;
      const AttentionCase of{is_long ? kUglyAndLong : kUgly, heads, width, corrected};
      const auto numbers = RandomAttention(of, width);
      const AttentionLoops loops(of, numbers);
      NextOrder(static_cast<int>(width));
      EXPECT_LE(loops.Distance(Run(of, numbers)), 1)
          << heads << " heads of " << width << (corrected ? ", corrected" : "");
    }
  }
}

// Factors in memory are those that numbers of f32 become on their way, and results are rounded.
TEST_F(AttentionTiles, OfFactorsHaveTheBitsOfThoseOfNumbers) {
  if (device_ == nullptr) return;
  const auto round = [](std::vector<double>* numbers) {
    for (double& x : *numbers) x = ops::FromBf16(ops::ToBf16(static_cast<float>(x)));
  };
  for (const auto& [heads, width] :
       {std::pair<uint32_t, uint32_t>{1, 64}, {2, 8}, {3, 4}, {1, 7}, {1, 33}}) {
    if (kThreadsAreDear && width != 8) continue;
    const AttentionCase of{width == 64 ? kUglyAndLong : kUgly, heads, width};
    const auto numbers = RandomAttention(of, 70 + width);
    NextOrder(static_cast<int>(width));
    AttentionResults want = Run(of, numbers);
    round(&want.out);
    round(&want.qkv_grad);
    const AttentionResults got = RunRounded(of, numbers);
    EXPECT_EQ(got.out, want.out) << heads << " heads of " << width;
    EXPECT_EQ(got.qkv_grad, want.qkv_grad) << heads << " heads of " << width;
  }
}

// Wider heads have a warp a query, within the same bounds.
TEST_F(AttentionTiles, AreNotForWideHeads) {
  if (device_ == nullptr) return;
  for (const bool corrected : {false, true}) {
    const AttentionCase of{{1, 19, 70}, 2, 65, corrected};
    const auto numbers = RandomAttention(of, 5);
    EXPECT_LE(AttentionLoops(of, numbers).Distance(Run(of, numbers)), 1);
  }
  const AttentionShape shape{.longest = 70, .heads = 2, .rounds = true};
  EXPECT_FALSE(GoesThroughTiles(shape, 2 * 65));
  EXPECT_TRUE(GoesThroughTiles(shape, 2 * 64));
  AttentionShape exact = shape;
  exact.rounds = false;
  EXPECT_FALSE(GoesThroughTiles(exact, 2 * 64));
}

// Exponentials of logits far apart neither overflow nor lose the largest.
TEST_F(AttentionTiles, HoldLogitsThatAreFarApart) {
  if (device_ == nullptr) return;
  const AttentionCase of{{80, 3}, 1, 16};
  auto numbers = RandomAttention(of, 6);
  for (size_t i = 0; i < numbers.qkv.size(); ++i)
    if (i % 48 < 32) numbers.qkv[i] *= 16;
  EXPECT_LE(AttentionLoops(of, numbers).Distance(Run(of, numbers)), 1);
}

TEST_F(AttentionTiles, BitsDoNotDependOnTurns) {
  if (device_ == nullptr) return;
  for (const AttentionCase& of :
       {AttentionCase{{17, 130, 1}, 1, 8}, {{3, 66}, 2, 40}, {{70, 18}, 1, 20, true}}) {
    const auto numbers = RandomAttention(of, 7);
    const AttentionResults first = Run(of, numbers);
    for (int order = 1; order < Orders(); ++order) {
      NextOrder(order);
      ASSERT_EQ(Run(of, numbers), first) << "order " << order;
    }
  }
}

// A crop's numbers are the same in every bit, alone or beside others, wherever they lie.
TEST_F(AttentionTiles, BitsDoNotDependOnOtherCrops) {
  if (device_ == nullptr) return;
  for (const bool corrected : {false, true}) {
    const AttentionCase of{{5, 70, 33}, 1, 20, corrected};
    const auto numbers = RandomAttention(of, 8);
    const AttentionResults all = Run(of, numbers);
    uint32_t row = 0;
    for (const uint32_t n : of.lengths) {
      const auto part = [&](const auto& x, uint32_t each) {
        if (x.empty()) return x;
        return std::decay_t<decltype(x)>(x.begin() + row * each, x.begin() + (row + n) * each);
      };
      const AttentionResults alone =
          Run({{n}, 1, 20, corrected},
              {part(numbers.qkv, 60), part(numbers.grad, 20), part(numbers.variance, 20)});
      EXPECT_EQ(alone.out, part(all.out, 20));
      EXPECT_EQ(alone.qkv_grad, part(all.qkv_grad, 60));
      EXPECT_EQ(alone.variance, part(all.variance, 20));
      row += n;
    }
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
