#include "noise/keystream.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "support/golden.h"
#include "support/statistics.h"

namespace tacit::noise {
namespace {

using testing::CheckNoCommonWord;
using testing::CheckNoRepeat;

// The key and counter block of SP 800-38A, F.5.5.
Keystream NistStream() {
  return Keystream(
      testing::Bytes<32>("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"),
      testing::Bytes<16>("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"));
}

std::vector<uint64_t> Words(Keystream& stream, size_t n) {
  std::vector<uint64_t> words(n);
  for (uint64_t& word : words) word = stream.Next64();
  return words;
}

TEST(Keystream, IsAes256CtrOfNist) {
  Keystream stream = NistStream();
  for (const auto& row : testing::ReadGolden("aes256_ctr")) {
    const auto plain = testing::Bytes<16>(row[0]);
    const auto cipher = testing::Bytes<16>(row[1]);
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

// First words after a new key, 300,000 times.
std::vector<uint64_t> FirstWords(const std::function<uint64_t()>& first_word) {
  std::vector<uint64_t> words(300000);
  for (uint64_t& word : words) word = first_word();
  return words;
}

TEST(Keystream, KeysHaveMoreThan31Bits) {
  Keystream stream;
  EXPECT_EQ(CheckNoRepeat(FirstWords([&] {
              stream.Rekey();
              return stream.Next64();
            })),
            "");
}

TEST(Keystream, KeysFromA31BitSeedAreFoundOut) {
  std::mt19937 seeds(1);
  EXPECT_NE(CheckNoRepeat(FirstWords([&] {
              // SplitMix64: one word of a generator that was given 31 bits.
              uint64_t z = (seeds() >> 1) + 0x9e3779b97f4a7c15u;
              z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
              z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
              return z ^ (z >> 31);
            })),
            "");
}

// Draws in a forked child and in the parent after the fork; what is wrong, or "".
std::string CheckFork(const std::function<uint64_t()>& next) {
  constexpr size_t kWords = 100;
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::vector<uint64_t> words(kWords);
    for (uint64_t& word : words) word = next();
    const auto size = static_cast<ssize_t>(kWords * sizeof(uint64_t));
    _exit(write(pipe_ends[1], words.data(), kWords * sizeof(uint64_t)) == size ? 0 : 1);
  }
  EXPECT_GT(child, 0);
  std::vector<uint64_t> ours(kWords), theirs(kWords);
  for (uint64_t& word : ours) word = next();
  const auto size = static_cast<ssize_t>(kWords * sizeof(uint64_t));
  EXPECT_EQ(read(pipe_ends[0], theirs.data(), kWords * sizeof(uint64_t)), size);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  return CheckNoCommonWord(ours, theirs);
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
