// Log records as JSON: every line is an object, with any message, and fields are its
// members.
#include "base/files/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

namespace tacit {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// Writes records as InitLogging has them; returns what went to standard error.
template <class Write>
std::string Logged(LogFormat format, const Write& write) {
  const auto before = spdlog::default_logger();
  ::testing::internal::CaptureStderr();
  InitLogging(format, "info");
  write();
  spdlog::default_logger()->flush();
  spdlog::set_default_logger(before);
  return ::testing::internal::GetCapturedStderr();
}

void WriteOne() {
  LogEvent(spdlog::level::info, "progress",
           {{"learner", "c\"t\\r"},
            {"events", uint64_t{18446744073709551615u}},
            {"below", -5},
            {"auc", 0.75},
            {"none", NAN},
            {"parts", {{{"part", "a"}, {"n", 1}}, {{"part", "b"}}}},
            {"empty", std::vector<std::vector<LogField>>{}}},
           "half \"way\"");
}

// A message may quote bytes of a file or a topic; a terminal would obey them.
TEST(LogTest, NoByteOfOthersCommandsATerminal) {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    static constexpr char kName[] = "name \x1b[31m\r\0 \xff of others";
    const std::string line =
        Logged(format, [] { spdlog::info("{}", std::string_view(kName, sizeof(kName) - 1)); });
    EXPECT_THAT(line, HasSubstr("of others"));
    for (const char c : line) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << int{c};
  }
}

TEST(LogTest, FieldsAreMembersOfTheRecord) {
  const std::string line = Logged(LogFormat::kJson, WriteOne);
  EXPECT_THAT(line, HasSubstr(R"("level":"info","message":"half \"way\"","event":"progress",)"
                              R"("learner":"c\"t\\r","events":18446744073709551615,"below":-5,)"
                              R"("auc":0.75,"none":null,)"
                              R"("parts":[{"part":"a","n":1},{"part":"b"}],"empty":[]})"));
  EXPECT_THAT(line, EndsWith("}\n"));
}

TEST(LogTest, OnlyTheRecordThatHasThemShowsFields) {
  const std::string lines = Logged(LogFormat::kJson, [] {
    WriteOne();
    spdlog::info("plain");
  });
  EXPECT_THAT(lines, EndsWith("\"message\":\"plain\"}\n"));
}

TEST(LogTest, AsTextOnlyTheMessageShows) {
  EXPECT_THAT(Logged(LogFormat::kText, WriteOne), EndsWith(" I half \"way\"\n"));
}

TEST(LogTest, AMessageForgesNoField) {
  const std::string line = Logged(LogFormat::kJson, [] {
    LogEvent(spdlog::level::info, "e", {{"name", "x\",\"level\":\"critical"}},
             "y\",\"event\":\"f\n\x01");
  });
  EXPECT_THAT(line, HasSubstr(R"("message":"y\",\"event\":\"f\n","event":"e",)"
                              R"("name":"x\",\"level\":\"critical"})"));
  const std::string bytes = Logged(LogFormat::kJson, [] { spdlog::info("a\xff\"b"); });
  EXPECT_THAT(bytes, HasSubstr("\\\"b\"}"));
  EXPECT_EQ(bytes.find('\xff'), std::string::npos) << "no byte that is not UTF-8";
}

}  // namespace
}  // namespace tacit
