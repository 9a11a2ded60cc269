#include "stream/kafka/schema_registry.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>

#include "broker_double.h"
#include "event/schema_books.h"
#include "http_responder.h"
#include "support/eventually.h"

namespace tacit::stream {
namespace {

using event::SchemaBook;
using event::SchemaKey;
using event::SchemaVerdict;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = SchemaVerdict::Kind;

constexpr char kOurs[] = R"({"schemaType":"JSON","schema":"{\"type\":\"object\"}"})";

std::string Ours() { return HttpResponder::Reply("200 OK", kOurs); }
std::string NotThere() { return HttpResponder::Reply("404 Not Found", R"({"error_code":40403})"); }

// The id that a request asks for.
int IdOf(const std::string& head) {
  constexpr std::string_view kPath = "GET /schemas/ids/";
  return head.starts_with(kPath) ? std::stoi(head.substr(kPath.size())) : 0;
}

class SchemaRegistryTest : public ::testing::Test {
 protected:
  // Asks until there is a verdict, or the registry has failed.
  static SchemaVerdict Ask(SchemaBook& book, const SchemaKey& schema) {
    while (true) {
      SchemaVerdict verdict = book.Look(schema);
      if (verdict.kind != Kind::kWait || book.Trouble() != "") return verdict;
      book.Await(schema, milliseconds(20));
    }
  }
  // A machine that stalls takes no question's time from it.
  static SchemaRegistryOptions Options(const std::string& url) {
    return {.url = url, .timeout = std::chrono::minutes(10)};
  }
  std::unique_ptr<SchemaBook> Make(const std::string& url) const {
    return MakeSchemaRegistry(Options(url), clock_);
  }
  static size_t Asked(const HttpResponder& server, int id) {
    const auto heads = server.heads();
    return static_cast<size_t>(
        std::ranges::count_if(heads, [&](const auto& head) { return IdOf(head) == id; }));
  }

  SetClock clock_;
};

TEST_F(SchemaRegistryTest, AsksForIdsAndGuidsOnceEach) {
  HttpResponder server([](const std::string&) { return Ours(); });
  const auto book = Make(server.url());
  EXPECT_EQ(Ask(*book, 7).kind, Kind::kAccept);
  const auto guid = *event::ParseSchemaKey("5f0c9e00-1111-2222-3333-0123456789ab");
  EXPECT_EQ(Ask(*book, guid).kind, Kind::kAccept);
  EXPECT_EQ(Ask(*book, 7).kind, Kind::kAccept);
  const auto heads = server.heads();
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_THAT(heads[0], StartsWith("GET /schemas/ids/7 HTTP/1.1\r\n"));
  EXPECT_THAT(heads[1], StartsWith("GET /schemas/guids/5f0c9e00-1111-2222-3333-0123456789ab HTTP"));
  EXPECT_THAT(heads[0], Not(HasSubstr("Authorization")));
}

TEST_F(SchemaRegistryTest, WhatIsNotOursIsRejectedForGood) {
  HttpResponder server([](const std::string&) {
    return HttpResponder::Reply("200 OK", R"({"schema":"\"string\""})");
  });
  const auto book = Make(server.url());
  for (int i = 0; i < 3; ++i) {
    const SchemaVerdict verdict = Ask(*book, 7);
    EXPECT_EQ(verdict.kind, Kind::kReject);
    EXPECT_THAT(verdict.reason, HasSubstr("is of type 'AVRO'"));
    clock_.Advance(3'600'000);
  }
  EXPECT_EQ(server.heads().size(), 1u);
}

// "me:hunter2" in base64; nothing we say holds the password.
TEST_F(SchemaRegistryTest, SaysWhoWeAre) {
  HttpResponder server([](const std::string& head) {
    const bool known = head.find("Authorization: Basic bWU6aHVudGVyMg==\r\n") != head.npos;
    return known ? Ours() : HttpResponder::Reply("401 Unauthorized", "hunter2");
  });
  SchemaRegistryOptions options = Options(server.url());
  options.username = "me";
  options.password = "hunter2";
  const auto right = MakeSchemaRegistry(options, clock_);
  EXPECT_EQ(Ask(*right, 7).kind, Kind::kAccept);
  options.password = "hunter3";
  const auto wrong = MakeSchemaRegistry(options, clock_);
  const std::string reason = Ask(*wrong, 7).reason;
  EXPECT_THAT(reason, StartsWith(server.url() + ": refused us (401)"));
  EXPECT_THAT(reason, Not(HasSubstr("hunter")));
}

// The clock stands still: nothing is waited for.
TEST_F(SchemaRegistryTest, WhatIsNotThereIsDeniedAtOnceAndAskedAgainAfterFiveSeconds) {
  std::atomic<bool> registered = false;
  HttpResponder server([&](const std::string&) { return registered ? Ours() : NotThere(); });
  const auto book = Make(server.url());
  const SchemaVerdict denied = Ask(*book, 7);
  EXPECT_EQ(denied.kind, Kind::kReject);
  EXPECT_EQ(denied.reason, server.url() + ": there is no such schema");
  registered = true;
  clock_.Advance(4999);
  EXPECT_EQ(Ask(*book, 7).kind, Kind::kReject);
  EXPECT_TRUE(book->LookAhead(7));
  EXPECT_EQ(server.heads().size(), 1u);
  // Another schema does not wait for this one.
  EXPECT_EQ(Ask(*book, 8).kind, Kind::kAccept);
  clock_.Advance(1);
  EXPECT_EQ(Ask(*book, 7).kind, Kind::kAccept);
  EXPECT_EQ(server.heads().size(), 3u);
  EXPECT_EQ(book->Trouble(), "");
}

// The registry may learn of a schema between a question and its answer.
TEST_F(SchemaRegistryTest, TheFiveSecondsBeginWithTheQuestion) {
  std::mutex mutex;
  std::atomic<int> answers = 0;
  HttpResponder server([&](const std::string&) {
    std::lock_guard lock(mutex);
    return ++answers == 1 ? NotThere() : Ours();
  });
  const auto book = Make(server.url());
  {
    std::lock_guard held(mutex);
    EXPECT_EQ(book->Look(7).kind, Kind::kWait);
    clock_.Advance(3000);
  }
  EXPECT_EQ(Ask(*book, 7).kind, Kind::kReject);
  clock_.Advance(2000);
  EXPECT_EQ(Ask(*book, 7).kind, Kind::kAccept);
}

// Else its record would ask for ever.
TEST_F(SchemaRegistryTest, AnAnswerThatTakesLongerThanADenialLastsIsTakenAllTheSame) {
  std::mutex mutex;
  HttpResponder server([&](const std::string&) {
    std::lock_guard lock(mutex);
    return NotThere();
  });
  const auto book = Make(server.url());
  {
    std::lock_guard held(mutex);
    EXPECT_EQ(book->Look(7).kind, Kind::kWait);
    clock_.Advance(60'000);
  }
  EXPECT_EQ(Ask(*book, 7).kind, Kind::kReject);
  EXPECT_EQ(server.heads().size(), 1u);
}

TEST_F(SchemaRegistryTest, SixtyFourAreAskedAtOnceAndNoMore) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  HttpResponder server([&](const std::string&) {
    released.wait();
    return Ours();
  });
  const auto book = Make(server.url());
  for (int id = 1; id <= 64; ++id) {
    EXPECT_TRUE(book->LookAhead(id));
    EXPECT_TRUE(book->LookAhead(id)) << "it is looked up already";
  }
  EXPECT_FALSE(book->LookAhead(65));
  // The record that is read may be none of those that were fetched then.
  EXPECT_EQ(book->Look(66).kind, Kind::kWait);
  ASSERT_TRUE(test::Eventually("64 questions are under way", [&] {
    book->Await(66, milliseconds(1));
    return server.heads().size() == 64;
  }));
  book->Await(66, milliseconds(50));
  EXPECT_EQ(server.heads().size(), 64u);
  release.set_value();
  EXPECT_EQ(Ask(*book, 66).kind, Kind::kAccept);
  for (int id = 1; id <= 64; ++id) EXPECT_EQ(Ask(*book, id).kind, Kind::kAccept);
  EXPECT_EQ(server.heads().size(), 65u);
}

TEST_F(SchemaRegistryTest, DenialsAreBounded) {
  HttpResponder server([](const std::string&) { return NotThere(); });
  SchemaRegistryOptions options = Options(server.url());
  EXPECT_EQ(options.denied_most, 100'000u);
  options.denied_most = 10;
  const auto book = MakeSchemaRegistry(options, clock_);
  for (int id = 1; id <= 11; ++id) EXPECT_EQ(Ask(*book, id).kind, Kind::kReject);
  EXPECT_EQ(Ask(*book, 11).kind, Kind::kReject);
  EXPECT_EQ(server.heads().size(), 11u);
  EXPECT_EQ(Ask(*book, 1).kind, Kind::kReject);
  EXPECT_EQ(server.heads().size(), 12u) << "all but the last were forgotten";
}

// Its answers have numbers of their own, so that the book tells which it has taken in.
class FailingRegistryTest : public SchemaRegistryTest {
 protected:
  // Lets the book take in the registry's next failure.
  void AwaitFailure(SchemaBook& book) {
    const std::string next = fmt::format("answered {}", 500 + ++failures_);
    ASSERT_TRUE(
        test::Eventually(next, [&] { return book.Trouble().find(next) != std::string::npos; }));
  }

  std::atomic<bool> away_ = true;
  std::atomic<int> answers_ = 0;
  int failures_ = 0;
  HttpResponder server_{[this](const std::string& head) {
    if (!away_) return IdOf(head) < 100 ? Ours() : NotThere();
    return HttpResponder::Reply(fmt::format("{} Oops", 500 + ++answers_), "");
  }};
  const std::unique_ptr<SchemaBook> book_ = Make(server_.url());  // waits for 60 s
};

TEST_F(FailingRegistryTest, IsAskedAfterLongerAndLongerPauses) {
  EXPECT_EQ(book_->Look(7).kind, Kind::kWait);
  // After the first failure it is asked again at once.
  ++failures_;
  AwaitFailure(*book_);
  EXPECT_TRUE(book_->LookAhead(8));
  for (const int pause_ms : {500, 1000, 2000, 4000, 5000, 5000}) {
    clock_.Advance(pause_ms - 1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(book_->Look(7).kind, Kind::kWait);
    clock_.Advance(1);
    AwaitFailure(*book_);
  }
  // One at a time, and each of the two.
  EXPECT_EQ(server_.heads().size(), 8u);
  EXPECT_EQ(Asked(server_, 8), 3u);
  away_ = false;
  clock_.Advance(5000);
  ASSERT_TRUE(test::Eventually("it is back", [&] { return book_->Trouble().empty(); }));
  EXPECT_EQ(Ask(*book_, 7).kind, Kind::kAccept);
  EXPECT_EQ(Ask(*book_, 8).kind, Kind::kAccept);
}

TEST_F(FailingRegistryTest, IsWaitedForOnceForAllRecords) {
  away_ = false;
  EXPECT_EQ(Ask(*book_, 5).kind, Kind::kAccept);
  away_ = true;
  EXPECT_EQ(book_->Look(7).kind, Kind::kWait);
  ++failures_;
  AwaitFailure(*book_);
  for (int s = 0; s < 59; ++s) {
    clock_.Advance(1000);
    EXPECT_EQ(book_->Look(7 + s % 3).kind, Kind::kWait);
    EXPECT_EQ(book_->Look(5).kind, Kind::kAccept);
  }
  EXPECT_THAT(book_->Trouble(), HasSubstr("records whose schema it has not told yet wait for it"));
  clock_.Advance(1000);
  ASSERT_TRUE(
      test::Eventually("it is given up", [&] { return book_->Look(7).kind == Kind::kReject; }));
  const std::string reason = book_->Look(7).reason;
  EXPECT_THAT(reason, HasSubstr("it has not answered for 60 s (source.schema_wait_ms)"));
  // No record waits again, however many there are, and none of their ids is kept.
  for (int id = 1000; id < 3000; ++id) ASSERT_EQ(book_->Look(id).kind, Kind::kReject);
  EXPECT_EQ(book_->Look(5).kind, Kind::kAccept);
  EXPECT_THAT(book_->Trouble(), HasSubstr("are dead letters"));

  away_ = false;
  clock_.Advance(5000);
  ASSERT_TRUE(test::Eventually("it is back", [&] { return book_->Trouble().empty(); }));
  EXPECT_EQ(Ask(*book_, 7).kind, Kind::kAccept);
  EXPECT_LT(server_.heads().size(), 200u);
  // Its next failure is waited for anew.
  away_ = true;
  EXPECT_EQ(book_->Look(20).kind, Kind::kWait);
  ASSERT_TRUE(test::Eventually("it is away", [&] { return !book_->Trouble().empty(); }));
  EXPECT_EQ(book_->Look(20).kind, Kind::kWait);
}

// A worker's records wait: the trainer may reach the registry, and has what they wait for summed.
TEST_F(FailingRegistryTest, WithoutALimitIsWaitedForAsLongAsItTakes) {
  SchemaRegistryOptions options = Options(server_.url());
  options.wait.reset();
  const auto book = MakeSchemaRegistry(options, clock_);
  EXPECT_EQ(book->Look(7).kind, Kind::kWait);
  ++failures_;
  for (int days = 0; days < 20; ++days) {
    AwaitFailure(*book);
    clock_.Advance(86'400'000);
    EXPECT_EQ(book->Look(7).kind, Kind::kWait);
    EXPECT_THAT(book->Trouble(), HasSubstr("wait for it"));
  }
  away_ = false;
  clock_.Advance(5000);
  ASSERT_TRUE(test::Eventually("it is back", [&] { return book->Trouble().empty(); }));
  EXPECT_EQ(Ask(*book, 7).kind, Kind::kAccept);
}

// A long step held the reader back meanwhile: the registry gets its last chance now.
TEST_F(FailingRegistryTest, IsAskedOnceMoreBeforeItIsGivenUp) {
  EXPECT_EQ(book_->Look(7).kind, Kind::kWait);
  ++failures_;
  AwaitFailure(*book_);
  away_ = false;
  clock_.Advance(600'000);
  SchemaVerdict verdict;
  ASSERT_TRUE(test::Eventually("a verdict", [&] {
    verdict = book_->Look(7);
    return verdict.kind != Kind::kWait;
  }));
  EXPECT_EQ(verdict.kind, Kind::kAccept);
}

// Else a record that names it would be one that stops all others. The clock stands still.
TEST_F(SchemaRegistryTest, AnIdThatFailsAloneIsDeniedAndStopsNobody) {
  HttpResponder server([](const std::string& head) {
    const int id = IdOf(head);
    if (id == 9 || id >= 1000) return HttpResponder::Reply("403 Forbidden", "");
    return id < 100 ? Ours() : NotThere();
  });
  const auto book = Make(server.url());
  EXPECT_EQ(Ask(*book, 7).kind, Kind::kAccept);
  for (int i = 0; i < 2; ++i) {
    const SchemaVerdict verdict = Ask(*book, 9);
    EXPECT_EQ(verdict.kind, Kind::kReject);
    EXPECT_EQ(verdict.reason, server.url() + ": refused us (403), while it answers for others");
  }
  EXPECT_EQ(Asked(server, 9), 3u);
  for (int id = 1000; id < 1064; ++id) EXPECT_TRUE(book->LookAhead(id));
  for (int id = 1000; id < 1100; ++id) ASSERT_EQ(Ask(*book, id).kind, Kind::kReject);
  EXPECT_EQ(Ask(*book, 8).kind, Kind::kAccept);
  EXPECT_EQ(book->Trouble(), "");
  clock_.Advance(5000);
  EXPECT_EQ(Ask(*book, 9).kind, Kind::kReject);
  EXPECT_EQ(Asked(server, 9), 6u);
}

// No schema is known yet.
TEST_F(SchemaRegistryTest, AnIdThatIsNotThereShowsThatTheRegistryAnswers) {
  HttpResponder server([](const std::string& head) {
    return IdOf(head) == 9 ? HttpResponder::Reply("500 Oops", "") : NotThere();
  });
  const auto book = Make(server.url());
  EXPECT_EQ(Ask(*book, 200).kind, Kind::kReject);
  EXPECT_EQ(Ask(*book, 9).kind, Kind::kReject);
  EXPECT_EQ(book->Trouble(), "");
}

TEST_F(SchemaRegistryTest, ASlowOneHoldsNobodyUp) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  HttpResponder server([&](const std::string&) {
    released.wait();
    return Ours();
  });
  const auto book = Make(server.url());
  // Each of these would wait for ever if it waited for the answer.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(book->Look(7).kind, Kind::kWait);
    EXPECT_EQ(book->Look(8).reason, server.url() + " has been asked");
    book->Await(7, milliseconds(1));
  }
  release.set_value();
  EXPECT_EQ(Ask(*book, 7).kind, Kind::kAccept);
  EXPECT_EQ(Ask(*book, 8).kind, Kind::kAccept);
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
  const auto ask = [&](const std::string& reply) {
    HttpResponder server([&](const std::string&) { return reply; });
    return Ask(*Make(server.url()), 7);
  };
  const auto reason = [&](const std::string& reply) {
    const SchemaVerdict verdict = ask(reply);
    EXPECT_EQ(verdict.kind, Kind::kWait);
    return verdict.reason;
  };
  for (const char* status : {"500 Oops", "503 Starting", "429 Too Many Requests", "408 Timeout"})
    EXPECT_THAT(reason(HttpResponder::Reply(status, "")),
                HasSubstr("answered " + std::string(status, 3)));
  EXPECT_THAT(reason(HttpResponder::Reply("403 Forbidden", "")), HasSubstr("refused us (403)"));
  EXPECT_THAT(reason(HttpResponder::Reply("200 OK", "<html>")), HasSubstr("no schema"));
  EXPECT_THAT(reason(HttpResponder::Reply("302 Found", "", "Location: http://127.0.0.1:1/\r\n")),
              HasSubstr("answered 302"));
  EXPECT_THAT(reason(""), HasSubstr("Empty reply"));
  // Port 1 is never listened at. A port that was free a moment ago might be another program's now.
  EXPECT_THAT(Ask(*Make("http://127.0.0.1:1"), 7).reason, HasSubstr("Failed to connect"));

  // The schema is at fault here, or the question.
  const SchemaVerdict long_one = ask(HttpResponder::Reply("200 OK", std::string(5 << 20, ' ')));
  EXPECT_EQ(long_one.kind, Kind::kReject);
  EXPECT_THAT(long_one.reason, HasSubstr("has 1048576 bytes or more"));
  EXPECT_THAT(ask(HttpResponder::Reply("422 No", "")).reason, HasSubstr("answered 422"));
  EXPECT_EQ(ask(HttpResponder::Reply("422 No", "")).kind, Kind::kReject);
}

}  // namespace
}  // namespace tacit::stream
