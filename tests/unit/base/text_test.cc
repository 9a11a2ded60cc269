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

TEST(Utf8, IsWhatRfc3629Says) {
  for (std::string_view good :
       {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xc3\xa9z"})
    EXPECT_TRUE(IsUtf8(good)) << good;
  for (std::string_view bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "ok\xe9"})
    EXPECT_FALSE(IsUtf8(bad));
}

TEST(Printable, ShowsTheBytesThatNoTerminalShouldGet) {
  EXPECT_EQ(Printable(""), "");
  EXPECT_EQ(Printable("a file's name, caf\xc3\xa9\n"), "a file's name, caf\xc3\xa9\n");
  EXPECT_EQ(Printable(std::string_view("a\0b\x1b[1m\x7f\xff\xc3", 10)),
            "a\\x00b\\x1b[1m\\x7f\\xff\\xc3");
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
