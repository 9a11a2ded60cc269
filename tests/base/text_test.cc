#include "base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <vector>

namespace tacit {
namespace {

TEST(DidYouMean, NamesTheNearestOrNobody) {
  const std::vector<std::string_view> keys = {"source", "store", "serve", "learners"};
  EXPECT_EQ(DidYouMean("stroe", keys), " (did you mean 'store'?)");
  EXPECT_EQ(DidYouMean("learner", keys), " (did you mean 'learners'?)");
  EXPECT_EQ(DidYouMean("zzzzzzzz", keys), "");
  EXPECT_EQ(DidYouMean("x", {}), "");
}

TEST(Hex, RoundTripsAndRefusesWhatIsNoHex) {
  const std::array<uint8_t, 4> bytes = {0x00, 0x7f, 0xAB, 0xff};
  EXPECT_EQ(ToHex(bytes), "007fabff");
  std::array<uint8_t, 4> back{};
  EXPECT_TRUE(FromHex("007fabff", back));
  EXPECT_EQ(back, bytes);
  EXPECT_TRUE(FromHex("007FABFF", back));
  EXPECT_EQ(back, bytes);
  for (std::string_view bad : {"", "007fabf", "007fabff0", "007fabfg", "0x7fabff", "007fab f"})
    EXPECT_FALSE(FromHex(bad, back)) << bad;
}

TEST(WithThousands, PutsACommaBeforeEveryThirdDigit) {
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1000), "1,000");
  EXPECT_EQ(WithThousands(12345678), "12,345,678");
  EXPECT_EQ(WithThousands(18446744073709551615u), "18,446,744,073,709,551,615");
}

}  // namespace
}  // namespace tacit
