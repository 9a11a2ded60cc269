#include "cuda/kernels/parts/chacha.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/kernels/noise/noise.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

using ::testing::ElementsAreArray;

// RFC 8439, 2.1.1.
TEST(ChaCha, QuarterRoundOfRfc8439) {
  uint32_t a = 0x11111111, b = 0x01020304, c = 0x9b8d6f43, d = 0x01234567;
  QuarterRound(a, b, c, d);
  EXPECT_EQ(a, 0xea2a92f4u);
  EXPECT_EQ(b, 0xcb1cf8ceu);
  EXPECT_EQ(c, 0x4581472eu);
  EXPECT_EQ(d, 0x5881c4bbu);
}

// A vector: key bytes, the words after them in the state, and the block's words.
struct Vector {
  const char* name;
  uint32_t key[8];
  uint32_t counter, nonce[3];
  uint32_t block[16];
};

const Vector kVectors[] = {{"2.3.2",
                            {0x03020100, 0x07060504, 0x0b0a0908, 0x0f0e0d0c, 0x13121110, 0x17161514,
                             0x1b1a1918, 0x1f1e1d1c},
                            1,
                            {0x09000000, 0x4a000000, 0x00000000},
                            {0xe4e7f110, 0x15593bd1, 0x1fdd0f50, 0xc47120a3, 0xc7f4d1c7, 0x0368c033,
                             0x9aaa2204, 0x4e6cd4c3, 0x466482d2, 0x09aa9f07, 0x05d7c214, 0xa2028bd9,
                             0xd19c12b5, 0xb94e16de, 0xe883d0cb, 0x4e3c50a2}},
                           {"A.1, test vector 1",
                            {},
                            0,
                            {},
                            {0xade0b876, 0x903df1a0, 0xe56a5d40, 0x28bd8653, 0xb819d2bd, 0x1aed8da0,
                             0xccef36a8, 0xc70d778b, 0x7c5941da, 0x8d485751, 0x3fe02477, 0x374ad8b8,
                             0xf4b8436a, 0x1ca11815, 0x69b687c3, 0x8665eeb2}},
                           {"A.1, test vector 2",
                            {},
                            1,
                            {},
                            {0xbee7079f, 0x7a385155, 0x7c97ba98, 0x0d082d73, 0xa0290fcb, 0x6965e348,
                             0x3e53c612, 0xed7aee32, 0x7621b729, 0x434ee69c, 0xb03371d5, 0xd539d874,
                             0x281fed31, 0x45fb0a51, 0x1f0ae1ac, 0x6f4d794b}},
                           {"A.1, test vector 3",
                            {0, 0, 0, 0, 0, 0, 0, 0x01000000},
                            1,
                            {},
                            {0x2452eb3a, 0x9249f8ec, 0x8d829d9b, 0xddd4ceb1, 0xe8252083, 0x60818b01,
                             0xf38422b8, 0x5aaa49c9, 0xbb00ca8e, 0xda3ba7b4, 0xc4b592d1, 0xfdf2732f,
                             0x4436274e, 0x2561b3c8, 0xebdd4aa6, 0xa0136c00}},
                           {"A.1, test vector 4",
                            {0x0000ff00, 0, 0, 0, 0, 0, 0, 0},
                            2,
                            {},
                            {0xfb4dd572, 0x4bc42ef1, 0xdf922636, 0x327f1394, 0xa78dea8f, 0x5e269039,
                             0xa1bebbc1, 0xcaf09aae, 0xa25ab213, 0x48a6b46c, 0x1b9d9bcb, 0x092c5be6,
                             0x546ca624, 0x1bec45d5, 0x87f47473, 0x96f0992e}},
                           {"A.1, test vector 5",
                            {},
                            0,
                            {0, 0, 0x02000000},
                            {0x374dc6c2, 0x3736d58c, 0xb904e24a, 0xcd3f93ef, 0x88228b1a, 0x96a4dfb3,
                             0x5b76ab72, 0xc727ee54, 0x0e0e978a, 0xf3145c95, 0x1b748ea8, 0xf786c297,
                             0x99c28f5f, 0x628314e8, 0x398a19fa, 0x6ded1b53}}};

uint64_t BlockNumber(const Vector& v) { return v.counter | uint64_t{v.nonce[0]} << 32; }
uint64_t Query(const Vector& v) { return v.nonce[1] | uint64_t{v.nonce[2]} << 32; }

TEST(ChaCha, BlocksOfRfc8439OnTheHost) {
  for (const Vector& v : kVectors) {
    uint32_t block[16];
    ChaChaBlock(v.key, BlockNumber(v), Query(v), block);
    EXPECT_THAT(block, ElementsAreArray(v.block)) << v.name;
  }
}

using ChaChaOnDevice = OnDevice;

TEST_F(ChaChaOnDevice, BlocksOfRfc8439) {
  if (device_ == nullptr) return;
  for (const Vector& v : kVectors) {
    NoiseKey key;
    std::copy(std::begin(v.key), std::end(v.key), key.words);
    const auto on_device = ToDevice<NoiseKey>({key});
    const auto out = Make<uint32_t>(16);
    ASSERT_TRUE(FillKeystream(*stream_, on_device.span(), static_cast<NoiseQuery>(Query(v)),
                              BlockNumber(v), out.span()));
    EXPECT_THAT(FromDevice(out), ElementsAreArray(v.block)) << v.name;
  }
}

// Block numbers of 64 bits, one a thread, over several blocks of threads.
TEST_F(ChaChaOnDevice, KeystreamIsBlockBehindBlock) {
  if (device_ == nullptr) return;
  constexpr uint64_t kFirst = (uint64_t{7} << 32) - 100;
  constexpr size_t kBlocks = 300;
  const NoiseKey key = {{1, 2, 3, 4, 5, 6, 7, 8}};
  const auto on_device = ToDevice<NoiseKey>({key});
  const auto out = Make<uint32_t>(kBlocks * 16);
  ASSERT_TRUE(FillKeystream(*stream_, on_device.span(), NoiseQuery::kRows, kFirst, out.span()));
  const auto got = FromDevice(out);
  for (size_t b = 0; b < kBlocks; ++b) {
    uint32_t block[16];
    ChaChaBlock(key.words, kFirst + b, static_cast<uint64_t>(NoiseQuery::kRows), block);
    ASSERT_THAT(std::span(got).subspan(b * 16, 16), ElementsAreArray(block)) << b;
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
