// A ledger read over HTTP while it moves, and from a daemon that lies.
#include "cli/ledger/ledger_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/text.h"
#include "cli/ledger/ledger.h"
#include "http/server.h"
#include "serve/routes/ledger_route.h"

namespace tacit::cli {
namespace {

using testing::HasSubstr;

// The ledger as of now, as a snapshot.
class LedgerSnapshot final : public store::Snapshot {
 public:
  explicit LedgerSnapshot(const privacy::Ledger& ledger)
      : ledger_(ledger), learners_(ledger.Learners()), total_(ledger.Total()) {}
  CommitSeq version() const override {
    uint64_t last = 0;
    for (const privacy::LedgerEntry& entry : ledger_.entries())
      last = std::max(last, entry.last_commit);
    return CommitSeq(last);
  }
  const Digest& head() const override { return ledger_.head(); }
  std::string lineage() const override { return std::string(32, 'b'); }
  const std::vector<privacy::LedgerTotal>& learners() const override { return learners_; }
  const privacy::LedgerTotal& total() const override { return total_; }
  uint64_t ledger_entries() const override { return ledger_.entries().size(); }
  Result<std::vector<std::string>> LedgerEntries(uint64_t from, uint64_t count) const override {
    std::vector<std::string> entries;
    for (uint64_t i = from; i < ledger_.entries().size() && entries.size() < count; ++i)
      entries.push_back(ledger_.entries()[i].Encode());
    return entries;
  }
  std::shared_ptr<const store::DenseState> Dense(LearnerIndex) const override { return nullptr; }
  Status Rows(LearnerIndex, std::span<const uint64_t>, std::span<float>) const override {
    return {};
  }

 private:
  const privacy::Ledger& ledger_;
  const std::vector<privacy::LedgerTotal> learners_;
  const privacy::LedgerTotal total_;
};

class LedgerCopyTest : public testing::Test {
 protected:
  LedgerCopyTest() {
    for (const char* learner : {"a", "b"}) {
      privacy::Promise promise;
      promise.learner = learner;
      promise.epsilon = 8;
      promise.delta = 1e-6;
      EXPECT_TRUE(ledger_.Declare(promise));
    }
  }
  void Step(const std::string& learner, double noise_multiplier) {
    privacy::CommitCharge step;
    step.learner = learner;
    step.charge.mechanism = privacy::MechanismKind::kDpSgd;
    step.charge.noise_multiplier = step.charge.sigma_gradient = noise_multiplier;
    step.charge.clip_gradient = 1;
    step.steps = 1;
    step.topic = "log";
    step.ranges = {{0, commit_, commit_ + 1}};
    ++commit_;
    ledger_.Append(CommitSeq(commit_), static_cast<int64_t>(commit_), {&step, 1}, Digest{}, "test");
  }
  // Entries of `a` in turn with two noises, and one of `b` at the end.
  void Fill(uint64_t entries) {
    while (ledger_.entries().size() + 1 < entries)
      Step("a", ledger_.entries().size() % 2 == 0 ? 2 : 3);
    Step("b", 2);
    ASSERT_EQ(ledger_.entries().size(), entries);
  }
  // `after(i, reply)`: once the i-th answer, from 1, has been made.
  void Serve(std::function<void(int, http::Reply*)> after) {
    struct Handler final : http::Handler {
      void Handle(const http::Request& request, http::Reply* reply) override {
        serve::AnswerLedger(LedgerSnapshot(test->ledger_), {}, std::nullopt, request.query, reply);
        after(++test->requests_, reply);
      }
      LedgerCopyTest* test = nullptr;
      std::function<void(int, http::Reply*)> after;
    };
    http::ServerOptions options;
    options.listeners = {{"127.0.0.1:0", http::Role::kOperator}};
    auto server = http::Server::Start(
        options,
        [this, after] {
          auto handler = std::make_unique<Handler>();
          handler->test = this;
          handler->after = after;
          return handler;
        },
        registry_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }
  Result<LedgerCopy> Copy() const {
    LedgerOptions options;
    options.url = "http://" + server_->addresses()[0];
    return CopyLedger(options);
  }

  privacy::Ledger ledger_;
  uint64_t commit_ = 0;
  int requests_ = 0;
  metrics::Registry registry_;
  std::unique_ptr<http::Server> server_;
};

// The last entry of a page moves before the next page is asked for: the two do not join.
TEST_F(LedgerCopyTest, PagesThatDoNotJoinAreReadAgain) {
  constexpr uint64_t kEntries = serve::kLedgerPageEntries + 1;
  Fill(kEntries);
  Serve([this](int request, http::Reply*) {
    if (request == 1) Step("a", ledger_.entries()[kEntries - 2].charge.noise_multiplier);
  });
  const auto copy = Copy();
  ASSERT_TRUE(copy) << copy.error().message;
  ASSERT_EQ(copy->entries.size(), kEntries);
  EXPECT_EQ(copy->entries[kEntries - 2].steps, 2u) << "it moved";
  EXPECT_EQ(copy->head, ledger_.head());
  EXPECT_TRUE(privacy::VerifyChain(copy->entries, {.epsilons_max = 10}));
  EXPECT_EQ(requests_, 3);
}

TEST_F(LedgerCopyTest, AChainThatNeverJoinsIsGivenUp) {
  Fill(serve::kLedgerPageEntries + 1);
  Serve([this](int, http::Reply* reply) {
    // From the second page on, other people's entries.
    if (requests_ < 2) return;
    privacy::LedgerEntry entry = ledger_.entries()[serve::kLedgerPageEntries];
    entry.previous_head = Digest{7};
    const auto at = reply->body.find("\"entries\":[");
    const std::string bytes = entry.Encode();
    const std::string hex = ToHex({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    reply->body.replace(at, std::string::npos, "\"entries\":[\"" + hex + "\"]}");
  });
  const auto copy = Copy();
  ASSERT_FALSE(copy);
  EXPECT_THAT(copy.error().message, HasSubstr("changes faster than it can be read"));
  EXPECT_LT(requests_, 300);
}

TEST_F(LedgerCopyTest, AnswersOfAnotherShapeAreRefused) {
  Fill(3);
  const std::string good = [&] {
    http::Reply reply;
    serve::AnswerLedger(LedgerSnapshot(ledger_), {}, std::nullopt, "", &reply);
    return reply.body;
  }();
  std::string body;
  Serve([&](int, http::Reply* reply) { reply->body = body; });
  const auto edited = [&](const std::string& from, const std::string& to) {
    body = good;
    body.replace(body.find(from), from.size(), to);
    const auto copy = Copy();
    return copy ? std::string() : copy.error().message;
  };
  EXPECT_EQ(edited("\"from\"", "\"from\""), "");
  EXPECT_THAT(edited("sha256:", "sha256:00"), HasSubstr("no SHA-256"));
  EXPECT_THAT(edited("sha256", "md5"), HasSubstr("no SHA-256"));
  EXPECT_THAT(edited("\"from\":0", "\"from\":1"), HasSubstr("another page"));
  EXPECT_THAT(edited("\"entries\":[\"", "\"entries\":[\"0"), HasSubstr("not hexadecimal"));
  EXPECT_THAT(edited("\"entries\":[\"4501", "\"entries\":[\"4507"), HasSubstr("format 7"));
  EXPECT_THAT(edited("\"entries\":[\"4501", "\"entries\":[\"0301"), HasSubstr("before 0.1.0"));
  EXPECT_THAT(edited("\"entries\":[", "\"entries\":[1,"), HasSubstr("as tacitd does"));
  EXPECT_THAT(edited("\"promises\"", "\"premises\""), HasSubstr("as tacitd does"));
  // No link of the chain holds the store's identity.
  EXPECT_THAT(edited("\"lineage\"", "\"lines\""), HasSubstr("its lineage is missing"));
  for (const char* lineage : {"\"b938\"", "\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbg\"", "\"\"", "7"})
    EXPECT_THAT(edited("\"" + std::string(32, 'b') + "\"", lineage),
                HasSubstr(std::string("its lineage is ") + lineage +
                          ", and must be 32 hexadecimal digits"));
  EXPECT_THAT(edited("\"version\"", "\"virgin\""), HasSubstr("its version is missing"));
  EXPECT_THAT(edited("\"version\":3", "\"version\":-3"), HasSubstr("its version is -3, and must"));
  EXPECT_THAT(edited("\"version\":3", "\"version\":\"3\""), HasSubstr("its version is \"3\""));
  EXPECT_THAT(edited("\"version\":3", "\"version\":2"),
              HasSubstr("its version is 2, and its entry 2 is of commit 3"));
  const std::string head = ToHex(ledger_.head());
  EXPECT_THAT(edited(head, std::string(64, '0')), HasSubstr("the head that was committed"));
}

}  // namespace
}  // namespace tacit::cli
