#include "http/body_buffer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>

namespace tacit::http {
namespace {

TEST(BodyBufferTest, HoldsWhatWasAppended) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    BodyBuffer body;
    std::string expected;
    while (expected.size() < (size_t{1} << (10 + round % 12))) {
      const std::string piece(random() % 40'000, static_cast<char>('a' + random() % 26));
      ASSERT_TRUE(body.Append(piece.data(), piece.size()));
      expected += piece;
      ASSERT_EQ(body.size(), expected.size());
    }
    ASSERT_EQ(body.view(), expected);
    body.Clear();
    EXPECT_EQ(body.view(), "");
    ASSERT_TRUE(body.Append("again", 5));
    EXPECT_EQ(body.view(), "again");
  }
}

// The thread sanitizer keeps a shadow of the body, which stays.
#if !defined(__SANITIZE_THREAD__)
size_t ResidentKilobytes() {
  FILE* const file = std::fopen("/proc/self/statm", "r");
  size_t total = 0, resident = 0;
  EXPECT_EQ(std::fscanf(file, "%zu %zu", &total, &resident), 2);
  std::fclose(file);
  return resident * 4;
}

// Large bodies leave nothing in memory, wherever small ones were allocated between them.
TEST(BodyBufferTest, GivesItsMemoryBackAtOnce) {
  const std::string piece(16 << 10, 'x');
  const size_t before = ResidentKilobytes();
  for (int round = 0; round < 8; ++round) {
    BodyBuffer body;
    for (int i = 0; i < 2048; ++i) ASSERT_TRUE(body.Append(piece.data(), piece.size()));  // 32 MiB
    EXPECT_GT(ResidentKilobytes(), before + 30'000);
    body.Clear();
    EXPECT_LT(ResidentKilobytes(), before + 8'000) << round;
  }
}
#endif

}  // namespace
}  // namespace tacit::http
