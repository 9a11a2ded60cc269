#include "base/hash.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "support/golden.h"

namespace tacit {
namespace {

using testing::Bytes;
using testing::ReadGolden;

uint64_t HexNumber(const std::string& hex) { return std::stoull(hex, nullptr, 16); }

// xxHash's sanity buffer.
std::string SanityBuffer(size_t length) {
  std::string buffer(length, '\0');
  uint64_t generator = 2654435761u;
  for (char& byte : buffer) {
    byte = static_cast<char>(generator >> 56);
    generator *= 11400714785074694797u;
  }
  return buffer;
}

TEST(BucketHash, IsXxh64) {
  for (const auto& row : ReadGolden("xxh64_sanity"))
    EXPECT_EQ(BucketHash(SanityBuffer(std::stoul(row[0])), HexNumber(row[1])), HexNumber(row[2]))
        << "length " << row[0] << " seed " << row[1];
  for (const auto& row : ReadGolden("xxh64_text"))
    EXPECT_EQ(BucketHash(row[0], 0), HexNumber(row[1])) << row[0];
}

// Every length up to two blocks against the library, which publishes few values of its own.
TEST(BucketHash, IsTheLibrarysForEveryLength) {
  std::mt19937_64 random(13);
  for (size_t length = 0; length < 80; ++length)
    for (int round = 0; round < 200; ++round) {
      std::string value(length, '\0');
      for (char& byte : value) byte = static_cast<char>(random());
      const uint64_t seed = round % 2 == 0 ? 0 : random();
      ASSERT_EQ(BucketHash(value, seed), XXH64(value.data(), length, seed)) << length;
    }
}

TEST(BucketOf, IsTheHighPartOfHashTimesBuckets) {
  // 0x44bc2cf5ad770999 / 2^64 = 0.2685...
  EXPECT_EQ(BucketOf("abc", 0, 1), 0u);
  EXPECT_EQ(BucketOf("abc", 0, 10), 2u);
  EXPECT_EQ(BucketOf("abc", 0, 256), 0x44u);
  EXPECT_EQ(BucketOf("abc", 0, uint64_t{1} << 32), 0x44bc2cf5u);
}

template <size_t N>
std::array<uint32_t, N> Words(const std::string& text) {
  std::array<uint32_t, N> words;
  for (size_t i = 0; i < N; ++i) words[i] = static_cast<uint32_t>(HexNumber(text.substr(9 * i, 8)));
  return words;
}

TEST(Philox, IsPhilox4x32WithTenRounds) {
  for (const auto& row : ReadGolden("philox4x32_10"))
    EXPECT_EQ(Philox(Words<4>(row[0]), Words<2>(row[1])), Words<4>(row[2])) << row[0];
}

// The row's words are Philox(counter = (row low, row high, block, 0), key = seed), 24 bits each.
TEST(InitialRow, ComesFromPhilox) {
  const uint64_t seed = 0xa4093822'299f31d0, row = 0x85a308d3'243f6a88;
  std::vector<float> values(7);
  InitialRow(seed, row, 0.5f, values);
  for (uint32_t i = 0; i < values.size(); ++i) {
    const auto words = Philox({0x243f6a88, 0x85a308d3, i / 4, 0}, {0x299f31d0, 0xa4093822});
    EXPECT_EQ(values[i], 0.5f * (static_cast<float>(words[i % 4] >> 8) / 8388608.0f - 1.0f));
    EXPECT_GE(values[i], -0.5f);
    EXPECT_LT(values[i], 0.5f);
  }
}

TEST(InitialRow, APrefixDoesNotDependOnTheLength) {
  std::vector<float> longer(9), shorter(6);
  InitialRow(1, 2, 1.0f, longer);
  InitialRow(1, 2, 1.0f, shorter);
  EXPECT_EQ(std::vector<float>(longer.begin(), longer.begin() + 6), shorter);
}

TEST(Sha256, IsThatOfFips180) {
  Sha256 hash;
  for (const auto& row : ReadGolden("sha256")) {
    EXPECT_EQ(hash.Update(row[0]).Finish(), Bytes<32>(row[1])) << row[0];
    // In pieces, and with an object that was used before.
    for (char c : row[0]) hash.Update(std::string_view(&c, 1));
    EXPECT_EQ(hash.Finish(), Bytes<32>(row[1])) << row[0];
  }
}

}  // namespace
}  // namespace tacit
