#include "http/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/client.h"

namespace tacit::http {
namespace {

using testing::HasSubstr;

TEST(AddressTest, ParsesWhatItPrints) {
  for (const std::string text : {"127.0.0.1:8980", "[::1]:0", "localhost:65535", "unix:/run/t.sock",
                                 "unix:relative.sock", "unix:/with:colon"}) {
    const auto address = ParseAddress(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(AddressTest, RefusesWhatIsNoAddressAndNamesIt) {
  for (const std::string text : {"", "127.0.0.1", ":80", "host:", "host:x", "host:65536", "host:-1",
                                 "[::1]", "[::1:80", "[]:80", "unix:", "host:80 "}) {
    const auto address = ParseAddress(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_EQ(address.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(address.error().message, HasSubstr("'" + text + "'"));
  }
  EXPECT_FALSE(ParseAddress("unix:/" + std::string(107, 'x')).has_value());
  EXPECT_TRUE(ParseAddress("unix:/" + std::string(106, 'x')).has_value());
}

TEST(UrlTest, SplitsAddressAndTarget) {
  const std::vector<std::array<std::string, 3>> cases = {
      {"http://127.0.0.1:8980/v1/score", "127.0.0.1:8980", "/v1/score"},
      {"http://localhost", "localhost:80", "/"},
      {"http://[::1]:81/a?b=c:d", "[::1]:81", "/a?b=c:d"},
      {"https://h/x", "h:443", "/x"},
      {"unix:/run/t.sock:/metrics", "unix:/run/t.sock", "/metrics"},
      {"unix:/run/t.sock", "unix:/run/t.sock", "/"}};
  for (const auto& [text, address, target] : cases) {
    const auto url = ParseUrl(text);
    ASSERT_TRUE(url.has_value()) << text;
    EXPECT_EQ(url->address.ToString(), address);
    EXPECT_EQ(url->target, target);
    EXPECT_EQ(url->tls, text.starts_with("https"));
  }
  for (const std::string text : {"https://", "ftp://h/", "h:80/x", "", "http://", "http:///x",
                                 "http://h:80/a b", "http://h/\r\nX: y", "unix::/x"})
    EXPECT_FALSE(ParseUrl(text).has_value()) << text;
}

TEST(UrlTest, JoinsBaseAndPath) {
  EXPECT_EQ(JoinUrl("http://h:1", "/v1/score"), "http://h:1/v1/score");
  EXPECT_EQ(JoinUrl("http://h:1/", "/v1/score"), "http://h:1/v1/score");
  EXPECT_EQ(JoinUrl("unix:/run/t.sock", "/v1/score"), "unix:/run/t.sock:/v1/score");
  EXPECT_EQ(JoinUrl("unix:/run/t.sock:/", "/v1/score"), "unix:/run/t.sock:/v1/score");
}

}  // namespace
}  // namespace tacit::http
