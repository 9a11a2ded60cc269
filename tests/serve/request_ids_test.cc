// Ids of requests come back, and stand in the access log, which has nothing of what was asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "echo_server.h"

namespace tacit::serve {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kTrace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

Response AskWith(EchoServer& server, const std::string& path, const FieldList& fields) {
  const auto response =
      Fetch("http://" + server.address() + path, "POST", "a secret", kPatience, fields);
  EXPECT_TRUE(response.has_value()) << response.error().message;
  return response ? *response : Response{};
}

TEST(RequestIdsTest, PlainOnesComeBackAndOthersDoNot) {
  EchoServer server(OnLoopback());
  const Response both = AskWith(server, "/a", {{"X-Request-Id", "r-17"}, {"traceparent", kTrace}});
  EXPECT_EQ(both.Header("x-request-id"), "r-17");
  EXPECT_EQ(both.Header("traceparent"), kTrace);
  const Response none = AskWith(server, "/a", {});
  EXPECT_EQ(none.Header("x-request-id"), "");
  EXPECT_EQ(none.Header("traceparent"), "");
  for (const std::string& odd : {std::string("a b"), std::string("a\tb"), std::string("\"x\""),
                                 std::string(129, 'x'), std::string("\xc3\xa4")})
    EXPECT_EQ(AskWith(server, "/a", {{"X-Request-Id", odd}}).Header("x-request-id"), "") << odd;
  EXPECT_EQ(AskWith(server, "/a", {{"X-Request-Id", std::string(128, 'x')}}).Header("x-request-id"),
            std::string(128, 'x'));
}

// Keeps the lines of the log while it lives.
class LogCatcher {
 public:
  LogCatcher() : sink_(std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)) {
    spdlog::default_logger()->sinks().push_back(sink_);
  }
  ~LogCatcher() { spdlog::default_logger()->sinks().pop_back(); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::sinks::ostream_sink_mt> sink_;
};

std::string LoggedFor(bool access_log) {
  const LogCatcher log;
  ServerOptions options = OnLoopback();
  options.access_log = access_log;
  EchoServer server(options, [](const Request&, Reply* reply) {
    reply->route = "/v1/users/{id}";
    reply->body = "an answer";
  });
  AskWith(server, "/v1/users/anna?q=private", {{"X-Request-Id", "r-17"}, {"traceparent", kTrace}});
  AskWith(server, "/v1/users/anna", {{"X-Request-Id", "two words"}});
  server->Stop(kPatience);
  return log.text();
}

TEST(RequestIdsTest, TheAccessLogHasNoContent) {
  const std::string text = LoggedFor(true);
  EXPECT_THAT(text, HasSubstr("access: public POST /v1/users/{id} 200 8 bytes in, 9 bytes out, "));
  EXPECT_THAT(text, HasSubstr(std::string(" ms, id r-17, trace ") + kTrace));
  EXPECT_THAT(text, HasSubstr(" ms, id -, trace -"));
  for (const char* content : {"anna", "private", "secret", "an answer", "two words"})
    EXPECT_THAT(text, Not(HasSubstr(content)));
  EXPECT_THAT(LoggedFor(false), Not(HasSubstr("access:")));
}

}  // namespace
}  // namespace tacit::serve
