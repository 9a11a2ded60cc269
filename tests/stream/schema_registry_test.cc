#include "stream/kafka/schema_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "event/schema_books.h"
#include "http_responder.h"

namespace tacit::stream {
namespace {

using event::SchemaVerdict;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using VerdictKind = SchemaVerdict::Kind;
using std::chrono::milliseconds;

constexpr char kOurs[] = R"({"schemaType":"JSON","schema":"{\"type\":\"object\"}"})";

class StoppedClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  int64_t UnixMillis() const override { return 0; }
  void Advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

class SchemaRegistryTest : public ::testing::Test {
 protected:
  // Asks until the question under way has been answered, with a verdict or a reason why not.
  SchemaVerdict Ask(event::SchemaBook& book, const event::SchemaKey& schema) const {
    SchemaVerdict verdict;
    do {
      verdict = book.Look(schema);
    } while (verdict.kind == VerdictKind::kUnknown && verdict.reason.ends_with("has been asked"));
    return verdict;
  }
  // A machine that stalls takes no question's time from it.
  static SchemaRegistryOptions Options(const std::string& url) {
    return {.url = url,
            .username = "",
            .password = "",
            .ca_file = "",
            .timeout = std::chrono::minutes(10)};
  }
  std::unique_ptr<event::SchemaBook> Make(const std::string& url) const {
    return MakeSchemaRegistry(Options(url), clock_);
  }

  StoppedClock clock_;
};

TEST_F(SchemaRegistryTest, AsksForIdsAndGuidsOnceEach) {
  HttpResponder server([](const std::string&) { return HttpResponder::Reply("200 OK", kOurs); });
  const auto book = Make(server.url());
  EXPECT_EQ(Ask(*book, 7).kind, VerdictKind::kAccept);
  const auto guid = *event::ParseSchemaKey("5f0c9e00-1111-2222-3333-0123456789ab");
  EXPECT_EQ(Ask(*book, guid).kind, VerdictKind::kAccept);
  EXPECT_EQ(Ask(*book, 7).kind, VerdictKind::kAccept);
  const auto heads = server.heads();
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_THAT(heads[0], StartsWith("GET /schemas/ids/7 HTTP/1.1\r\n"));
  EXPECT_THAT(heads[1], StartsWith("GET /schemas/guids/5f0c9e00-1111-2222-3333-0123456789ab HTTP"));
  EXPECT_THAT(heads[0], Not(HasSubstr("Authorization")));
}

TEST_F(SchemaRegistryTest, WhatIsNotOursIsRejected) {
  HttpResponder server([](const std::string&) {
    return HttpResponder::Reply("200 OK", R"({"schema":"\"string\""})");
  });
  const SchemaVerdict verdict = Ask(*Make(server.url()), 7);
  EXPECT_EQ(verdict.kind, VerdictKind::kReject);
  EXPECT_THAT(verdict.reason, HasSubstr("Avro is not read"));
}

// "me:hunter2" in base64; nothing we say holds the password.
TEST_F(SchemaRegistryTest, SaysWhoWeAre) {
  HttpResponder server([](const std::string& head) {
    const bool known = head.find("Authorization: Basic bWU6aHVudGVyMg==\r\n") != head.npos;
    return HttpResponder::Reply(known ? "200 OK" : "401 Unauthorized", known ? kOurs : "hunter2");
  });
  SchemaRegistryOptions options = Options(server.url());
  options.username = "me";
  options.password = "hunter2";
  const auto right = MakeSchemaRegistry(options, clock_);
  EXPECT_EQ(Ask(*right, 7).kind, VerdictKind::kAccept);
  options.password = "hunter3";
  const auto wrong = MakeSchemaRegistry(options, clock_);
  EXPECT_EQ(Ask(*wrong, 7).reason, server.url() + ": refused us (401)");
}

TEST_F(SchemaRegistryTest, WhatFailsIsAskedAgainAfterLongerAndLongerPauses) {
  std::atomic<bool> registered = false;
  HttpResponder server([&](const std::string&) {
    return registered ? HttpResponder::Reply("200 OK", kOurs)
                      : HttpResponder::Reply("404 Not Found", R"({"error_code":40403})");
  });
  const auto book = Make(server.url());
  EXPECT_EQ(Ask(*book, 7).reason, server.url() + ": there is no such schema");
  EXPECT_EQ(server.heads().size(), 1u);
  // The pauses are 0.5, 1, 2, 4, 5, 5 s; nothing is asked within one.
  size_t asked = 1;
  for (const int pause_ms : {500, 1000, 2000, 4000, 5000, 5000}) {
    clock_.Advance(milliseconds(pause_ms - 1));
    Ask(*book, 7);
    EXPECT_EQ(server.heads().size(), asked);
    clock_.Advance(milliseconds(1));
    EXPECT_EQ(Ask(*book, 7).kind, VerdictKind::kUnknown);
    EXPECT_EQ(server.heads().size(), ++asked);
  }
  // Another schema does not wait for this one.
  EXPECT_EQ(Ask(*book, 8).kind, VerdictKind::kUnknown);
  EXPECT_EQ(server.heads().size(), ++asked);
  registered = true;
  clock_.Advance(milliseconds(30000));
  EXPECT_EQ(Ask(*book, 7).kind, VerdictKind::kAccept);
}

TEST_F(SchemaRegistryTest, ASlowOneHoldsNobodyUp) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  HttpResponder server([&](const std::string&) {
    released.wait();
    return HttpResponder::Reply("200 OK", kOurs);
  });
  const auto book = Make(server.url());
  // Each of these would wait for ever if it waited for the answer.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(book->Look(7).kind, VerdictKind::kUnknown);
    EXPECT_EQ(book->Look(8).reason, server.url() + " has been asked");
  }
  release.set_value();
  EXPECT_EQ(Ask(*book, 7).kind, VerdictKind::kAccept);
  EXPECT_EQ(Ask(*book, 8).kind, VerdictKind::kAccept);
}

TEST_F(SchemaRegistryTest, AQuestionHasItsTime) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  HttpResponder server([&](const std::string&) {
    released.wait();
    return std::string();
  });
  SchemaRegistryOptions options = Options(server.url());
  options.timeout = milliseconds(100);
  const auto book = MakeSchemaRegistry(options, clock_);
  EXPECT_THAT(Ask(*book, 7).reason, HasSubstr("timed out"));
  release.set_value();
}

TEST_F(SchemaRegistryTest, WhatIsNoAnswerIsToldAndWaitedFor) {
  const auto reason = [&](const std::string& reply) {
    HttpResponder server([&](const std::string&) { return reply; });
    const SchemaVerdict verdict = Ask(*Make(server.url()), 7);
    EXPECT_EQ(verdict.kind, VerdictKind::kUnknown);
    return verdict.reason;
  };
  EXPECT_THAT(reason(HttpResponder::Reply("500 Oops", "")), HasSubstr("answered 500"));
  EXPECT_THAT(reason(HttpResponder::Reply("200 OK", "<html>")), HasSubstr("no schema"));
  EXPECT_THAT(reason(HttpResponder::Reply("200 OK", std::string(5 << 20, ' '))),
              HasSubstr("the answer is too long"));
  EXPECT_THAT(reason(HttpResponder::Reply("302 Found", "", "Location: http://127.0.0.1:1/\r\n")),
              HasSubstr("answered 302"));
  EXPECT_THAT(reason(""), HasSubstr("Empty reply"));
  // Port 1 is never listened at. A port that was free a moment ago might be another program's now.
  EXPECT_THAT(Ask(*Make("http://127.0.0.1:1"), 7).reason, HasSubstr("Failed to connect"));
}

}  // namespace
}  // namespace tacit::stream
