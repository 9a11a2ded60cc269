#include "cuda/device/arena.h"

#include <gtest/gtest.h>

#include "cuda/device/emulated.h"
#include "cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

ArenaPlan SmallPlan() {
  ArenaPlan plan;
  plan.Add<float>("dense model", 1000);
  plan.Add<unsigned char>("flags", 3);
  plan.Add<uint64_t>("rows", 0);
  plan.Add<double>("working memory", 5000);
  return plan;
}

TEST(ArenaPlan, PiecesLieOneBehindTheOther) {
  const ArenaPlan plan = SmallPlan();
  size_t end = 0;
  for (const ArenaPlan::Piece& piece : plan.pieces()) {
    EXPECT_EQ(piece.offset % ArenaPlan::kAlignment, 0u) << piece.name;
    EXPECT_GE(piece.offset, end) << piece.name;
    end = piece.offset + piece.bytes;
  }
  EXPECT_GE(plan.bytes(), end);
  EXPECT_EQ(plan.pieces()[0].bytes, 4000u);
}

TEST(ArenaPlan, IsDescribedTheLargestFirst) {
  ArenaPlan plan;
  plan.Add<unsigned char>("small", 3 << 19);
  plan.Add<unsigned char>("large", 5 << 20);
  const std::string text = plan.Describe();
  EXPECT_EQ(text.find("         5.0 MiB  large\n         1.5 MiB  small\n         6.5 MiB  in all"),
            0u)
      << text;
}

TEST(Arena, TakesAllAtOnceAndGivesItBack) {
  auto device = OpenTrialDevice();
  const uint64_t calls = emulated::Calls();
  {
    const auto arena = Arena::Make(*device, SmallPlan());
    ASSERT_TRUE(arena) << arena.error().message;
    EXPECT_EQ(emulated::BytesTaken(), SmallPlan().bytes());
    EXPECT_EQ(emulated::Calls() - calls, 2u);  // how much is free, and the memory
    EXPECT_EQ(arena->Piece<float>(0).size, 1000u);
    EXPECT_EQ(arena->Piece<uint64_t>(2).size, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->Piece<double>(3).data) % 256, 0u);
  }
  EXPECT_EQ(emulated::BytesTaken(), 0u);
}

TEST(Arena, ThatDoesNotFitNamesItsLargestPieceAndTheKey) {
  emulated::Reset({.memory_bytes = 32 << 10});
  auto device = OpenDevice(0);
  const auto arena = Arena::Make(**device, SmallPlan());
  ASSERT_FALSE(arena);
  EXPECT_EQ(arena.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(arena.error().message.find("for working memory; lower gpu.memory"), std::string::npos)
      << arena.error().message;
  EXPECT_EQ(emulated::BytesTaken(), 0u);
}

TEST(Arena, IsOverwrittenAtAnOrderlyEnd) {
  auto device = OpenTrialDevice();
  auto stream = Stream::Make(*device);
  const auto arena = Arena::Make(*device, SmallPlan());
  ASSERT_TRUE(arena);
  for (size_t i = 0; i < 4; ++i) ASSERT_TRUE(stream->Fill(arena->Piece<unsigned char>(i), 0x5a));
  ASSERT_TRUE(arena->Wipe(*stream));
  ASSERT_TRUE(stream->Synchronize());
  for (size_t i = 0; i < 4; ++i) {
    const auto piece = arena->Piece<unsigned char>(i);
    for (size_t b = 0; b < piece.size; ++b) ASSERT_EQ(piece[b], 0) << "piece " << i;
  }
}

TEST(Arena, RefusesAPieceOfAnotherType) {
  auto device = OpenTrialDevice();
  const auto arena = Arena::Make(*device, SmallPlan());
  ASSERT_TRUE(arena);
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_DEATH((void)arena->Piece<uint32_t>(1), "a piece of another type");
  EXPECT_DEATH((void)arena->Piece<float>(4), "no such piece");
}

#if defined(__SANITIZE_ADDRESS__)
TEST(Arena, WriteBehindAPieceIsFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto device = OpenTrialDevice();
  const auto arena = Arena::Make(*device, SmallPlan());
  ASSERT_TRUE(arena);
  EXPECT_DEATH(arena->Piece<unsigned char>(1).data[3] = 1, "use-after-poison");
}
#endif

}  // namespace
}  // namespace tacit::cuda::testing
