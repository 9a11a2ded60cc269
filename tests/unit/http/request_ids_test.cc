// Ids of requests come back, and stand in the access log, which has nothing of what was asked.
#include "http/request_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <optional>
#include <sstream>

#include "echo_server.h"
#include "http/token.h"

namespace tacit::http {
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

// A request that no handler sees, and the status that it gets.
struct Early {
  const char* why;
  int status;
  std::string bytes;
};

std::string Ids() { return "X-Request-Id: r-17\r\ntraceparent: " + std::string(kTrace) + "\r\n"; }

std::vector<Early> EarlyRefusals() {
  const std::string post = "POST /v1/users/anna HTTP/1.1\r\n", host = "Host: x\r\n";
  return {
      {"no token", 401, post + host + Ids() + "Content-Length: 5\r\n\r\nhello"},
      {"a stranger's token", 401,
       post + host + "Authorization: Bearer secret\r\n" + Ids() + "\r\n"},
      {"another name", 421, "GET /anna HTTP/1.1\r\nHost: evil.example\r\n" + Ids() + "\r\n"},
      {"no name", 400, "GET /anna HTTP/1.1\r\n" + Ids() + "\r\n"},
      {"two lengths", 400, post + host + Ids() + "Content-Length: 1, 1\r\n\r\na"},
      {"a long method", 400, std::string(33, 'M') + " /anna HTTP/1.1\r\n" + host + Ids() + "\r\n"},
      {"another transfer encoding", 501, post + host + Ids() + "Transfer-Encoding: gzip\r\n\r\n"},
      {"a line that goes on", 400, post + host + Ids() + "A: b\r\n c\r\n\r\n"},
      {"no HTTP", 400, "GET /anna HTTP/9.9\r\n" + host + Ids() + "\r\n"},
      {"a bad target", 400, "GET an na HTTP/1.1\r\n" + host + Ids() + "\r\n"},
      {"a bad line before", 400, post + host + "bad line\r\n" + Ids() + "\r\n"},
      {"a bad line behind", 400, post + host + Ids() + "bad line\r\n\r\n"},
      {"a bad line between", 400,
       post + "X-Request-Id: r-17\r\nbad(line: anna\r\ntraceparent: " + kTrace + "\r\n\r\n"},
      {"a long header", 431,
       post + host + Ids() + "Long: " + std::string(20'000, 'a') + "\r\n\r\n"},
      {"a long header without end", 431, post + Ids() + "Long: " + std::string(20'000, 'a')},
      {"a long target", 431, "GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n"},
  };
}

// Early refusals are answers like others: they have the ids, and a line of the log.
TEST(RequestIdsTest, ARefusalHasThemToo) {
  ServerOptions options = OnLoopback();
  options.access_log = true;
  options.callers = Callers::Fixed(*CallerTable::Parse(
      CallerLine("query", "web", DigestOfToken("known"), "") + "\n", "test", {0, 0, 0}));
  for (const Early& early : EarlyRefusals()) {
    SCOPED_TRACE(early.why);
    const LogCatcher log;
    EchoServer server(options);
    std::optional<RawConnection> connection(server.address());
    ASSERT_TRUE(connection->Send(early.bytes));
    const auto response = connection->Receive();
    ASSERT_TRUE(response.has_value());
    connection.reset();  // the server waits for that, and no time passes for it
    EXPECT_EQ(response->status, early.status) << response->body;
    server->Stop(kPatience);
    const std::string line = "access: public - - " + std::to_string(early.status) + " ";
    EXPECT_THAT(log.text(), HasSubstr(line));
    EXPECT_THAT(log.text(), Not(HasSubstr("anna")));
    EXPECT_THAT(log.text(), Not(HasSubstr("secret")));
    if (early.why == std::string("a long target")) continue;  // it never came to its ids
    EXPECT_THAT(response->head, HasSubstr("X-Request-Id: r-17\r\n"));
    EXPECT_THAT(response->head, HasSubstr(std::string("traceparent: ") + kTrace + "\r\n"));
    EXPECT_THAT(log.text(), HasSubstr(std::string("ms, id r-17, trace ") + kTrace));
  }
}

TEST(RequestIdsTest, ABodyTooLongAndARequestTooSlowHaveThem) {
  ServerOptions options = OnLoopback();
  options.access_log = true;
  options.max_body_bytes = 100;
  const LogCatcher log;
  EchoServer server(options);
  std::optional<RawConnection> large(server.address()), in_header(server.address()),
      in_body(server.address());
  const std::string post = "POST /b HTTP/1.1\r\nHost: x\r\n" + Ids();
  ASSERT_TRUE(large->Send(post + "Content-Length: 101\r\n\r\n"));
  const auto refused = large->Receive();
  EXPECT_EQ(refused->status, 413);
  EXPECT_THAT(refused->head, HasSubstr("X-Request-Id: r-17\r\n"));
  // The clock stands still until both have arrived as far as they do.
  ASSERT_TRUE(in_header->Send(post + "Half"));
  ASSERT_TRUE(in_body->Send(post + "Content-Length: 10\r\n\r\nfive."));
  ASSERT_TRUE(Eventually("a body is held", [&] { return server->held_bytes(Role::kPublic) == 5; }));
  ASSERT_TRUE(Fetch("http://" + server.address(), "GET", "", kPatience).has_value());
  server.Pass(options.request_timeout + std::chrono::seconds(1));
  for (std::optional<RawConnection>* slow : {&in_header, &in_body}) {
    const auto late = (*slow)->Receive();
    ASSERT_TRUE(late.has_value());
    EXPECT_EQ(late->status, 408);
    EXPECT_THAT(late->head, HasSubstr("X-Request-Id: r-17\r\n"));
    EXPECT_THAT(late->head, HasSubstr(std::string("traceparent: ") + kTrace + "\r\n"));
    slow->reset();
  }
  large.reset();
  server->Stop(kPatience);
  EXPECT_THAT(log.text(), HasSubstr("access: public - - 413 0 bytes in, "));
  EXPECT_THAT(log.text(), HasSubstr("access: public - - 408 5 bytes in, "));
}

TEST(RequestIdsTest, AConnectionTooManyHasALine) {
  ServerOptions options = OnLoopback();
  options.access_log = true;
  options.max_connections = 1;
  const LogCatcher log;
  EchoServer server(options);
  RawConnection first(server.address());
  ASSERT_TRUE(first.Send(MakeRequest("GET", "/")));
  ASSERT_EQ(first.Receive()->status, 200);
  RawConnection second(server.address());
  EXPECT_EQ(second.Receive()->status, 503);
  server->Stop(kPatience);
  EXPECT_THAT(log.text(), HasSubstr("access: public - - 503 0 bytes in, "));
}

TEST(RequestIdsTest, LinesThatNoParserHasReadAreSearched) {
  const auto ids = [](std::string_view lines) {
    const RequestIds found = IdsInLines(lines);
    return std::string(found.id) + "|" + std::string(found.trace);
  };
  EXPECT_EQ(ids(""), "|");
  EXPECT_EQ(ids("x-REQUEST-id:a\nTraceParent:\t b \r\n\r\n"), "a|b");
  EXPECT_EQ(ids("X-Request-Id: a\r\nX-Request-Id: b\r\n"), "a|");
  EXPECT_EQ(ids("X-Request-Id: a"), "|") << "it may go on";
  EXPECT_EQ(ids("X-Request-Id : a\r\nXX-Request-Id: a\r\n: a\r\n"), "|");
  EXPECT_EQ(ids("X-Request-Id: a b\r\ntraceparent: \"\r\n"), "|");
  EXPECT_EQ(ids("A: b\r\n\r\nX-Request-Id: of-the-body\r\n"), "|");
}

}  // namespace
}  // namespace tacit::http
