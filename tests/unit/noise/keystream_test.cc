#include "noise/keystream.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "fork_check.h"
#include "support/golden.h"
#include "support/statistics.h"

namespace tacit::noise {
namespace {

using tacit::testing::CheckNoCommonWord;
using testing::CheckFork;

// The key and counter block of SP 800-38A, F.5.5.
Keystream NistStream() {
  return Keystream(
      tacit::testing::Bytes<32>("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"),
      tacit::testing::Bytes<16>("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"));
}

std::vector<uint64_t> Words(Keystream& stream, size_t n) {
  std::vector<uint64_t> words(n);
  for (uint64_t& word : words) word = stream.Next64();
  return words;
}

TEST(Keystream, IsAes256CtrOfNist) {
  Keystream stream = NistStream();
  for (const auto& row : tacit::testing::ReadGolden("aes256_ctr")) {
    const auto plain = tacit::testing::Bytes<16>(row[0]);
    const auto cipher = tacit::testing::Bytes<16>(row[1]);
    const auto words = stream.Take(4);
    ASSERT_EQ(words.size(), 4u);
    std::array<uint8_t, 16> key_stream;
    std::memcpy(key_stream.data(), words.data(), 16);
    for (size_t i = 0; i < 16; ++i) EXPECT_EQ(key_stream[i], plain[i] ^ cipher[i]);
  }
}

// Chunks follow one another without a gap, however the stream is taken.
TEST(Keystream, DoesNotDependOnHowItIsTaken) {
  Keystream whole = NistStream(), pieces = NistStream();
  std::vector<uint32_t> a, b;
  while (a.size() < 20000) {
    const auto taken = whole.Take(1 << 20);
    a.insert(a.end(), taken.begin(), taken.end());
  }
  for (size_t want = 2; b.size() < a.size(); ++want) {
    const auto taken = pieces.Take(want);
    EXPECT_EQ(taken.size() % 2, 0u);
    EXPECT_GE(taken.size(), 2u);
    EXPECT_LE(taken.size(), want);
    b.insert(b.end(), taken.begin(), taken.end());
  }
  b.resize(a.size());
  EXPECT_EQ(a, b);
}

TEST(Keystream, TwoStreamsHaveNothingInCommon) {
  Keystream a, b;
  EXPECT_EQ(CheckNoCommonWord(Words(a, 50000), Words(b, 50000)), "");
  Keystream replayed = NistStream(), original = NistStream();
  EXPECT_NE(CheckNoCommonWord(Words(replayed, 10), Words(original, 10)), "");
}

TEST(Keystream, RekeyStartsAnotherStream) {
  Keystream stream;
  const auto before = Words(stream, 5000);
  stream.Rekey();
  EXPECT_EQ(CheckNoCommonWord(before, Words(stream, 5000)), "");
}

TEST(Keystream, ForkedChildDrawsFromAKeyOfItsOwn) {
  Keystream stream;
  // With words left over from before the fork, and at the beginning of a chunk.
  stream.Next64();
  EXPECT_EQ(CheckFork([&] { return stream.Next64(); }), "");
  stream.Rekey();
  EXPECT_EQ(CheckFork([&] { return stream.Next64(); }), "");
}

TEST(Keystream, AGeneratorThatDoesNotNoticeForkIsFoundOut) {
  std::mt19937_64 generator(1);
  EXPECT_NE(CheckFork([&] { return generator(); }), "");
}

}  // namespace
}  // namespace tacit::noise
