#include "http/http.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>

namespace tacit::http {
namespace {

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

TEST(JsonStringTest, EscapesWhatJsonWants) {
  EXPECT_EQ(Quoted("plain"), R"("plain")");
  EXPECT_EQ(Quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(Quoted(std::string_view("\n\0", 2)), R"("\u000a\u0000")");
  EXPECT_EQ(Quoted("größe €"), "\"größe €\"");
}

TEST(JsonStringTest, WhatIsNotUtf8BecomesReplacementCharacters) {
  EXPECT_EQ(Quoted("\xff"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(Quoted("\xc3"), "\"\xef\xbf\xbd\"");                  // cut short
  EXPECT_EQ(Quoted("\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");  // overlong
  EXPECT_EQ(Quoted("\xed\xa0\x80").size(), 2 + 3 * 3);            // a surrogate
  EXPECT_EQ(Quoted("\xf4\x90\x80\x80").size(), 2 + 4 * 3);        // above U+10FFFF
}

// The oracle is another library's strict UTF-8 check and parser.
TEST(JsonStringTest, RandomBytesAlwaysMakeAValidString) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 12, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 4 == 0 ? random() % 128 : random());
    boost::json::error_code error;
    const std::string quoted = Quoted(bytes);
    const boost::json::value parsed = boost::json::parse(quoted, error);
    ASSERT_FALSE(error) << "round " << round << ": " << quoted;
    boost::json::error_code valid;
    const std::string plain = "\"" + bytes + "\"";
    const boost::json::value direct = boost::json::parse(plain, valid);
    if (!valid && bytes.find('\\') == std::string::npos) {
      ASSERT_EQ(parsed, direct) << "round " << round;
    }
  }
}

TEST(ErrorReplyTest, HasTheDocumentedForm) {
  Reply reply;
  SetError(404, "no \"x\"", &reply);
  EXPECT_EQ(reply.status, 404u);
  EXPECT_EQ(reply.content_type, "application/json");
  EXPECT_EQ(reply.body, "{\"error\":{\"code\":404,\"message\":\"no \\\"x\\\"\"}}\n");
}

}  // namespace
}  // namespace tacit::http
