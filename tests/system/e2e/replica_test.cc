// A trainer and its replica, as two processes with librdkafka's mock of a broker between them. The
// oracle of the replica's answers is the trainer: at one version both answer with the same bytes.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cerrno>
#include <random>

#include "support/metrics_page.h"
#include "system/e2e/recommend_shop.h"
#include "system/e2e/service.h"
#include "unit/stream/mock_kafka.h"

namespace tacit::shop {
namespace {

using ::testing::HasSubstr;

// A daemon of the shop that listens on a socket of its own.
class ShopDaemon {
 public:
  // `fault` as tests/support/fault_env.cc has it; empty if none.
  ShopDaemon(const TempDir& dir, const std::string& what, const std::string& name,
             const std::string& fault = "")
      : url_("unix:" + (dir / (name + ".socket"))) {
    process_ = std::make_unique<test::Process>(
        std::vector<std::string>{fault.empty() ? TACIT_FEED_CHILD : TACIT_FAULTY_FEED_CHILD, what,
                                 dir / "shop.yaml", "serve.listen=" + url_,
                                 "serve.operator_listen=" + url_ + "-operators",
                                 "store.path=" + (dir / name)},
        std::vector<std::string>{"TACIT_TEST_FAULT=" + fault});
  }
  std::string Ask(const std::string& method, const std::string& path, const std::string& body = "",
                  const std::string& listener = "") const {
    const auto answer = http::Fetch(url_ + listener + ":" + path, method, body, kPatience);
    return answer ? fmt::format("{} {}", static_cast<int>(answer->status), answer->body)
                  : "no answer: " + answer.error().message;
  }
  // The metric's value; -1 without one.
  double Metric(const std::string& name) const {
    const std::string page = "\n" + Ask("GET", "/metrics");
    const size_t at = page.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(page.substr(at + name.size() + 2));
  }
  std::string Err() const { return process_->Err(); }
  test::Process& process() { return *process_; }
  void Stop() {
    process_->Signal(SIGTERM);
    const auto ended = process_->Wait();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->exit_code, 0) << ended->err;
  }

 private:
  std::string url_;
  std::unique_ptr<test::Process> process_;
};

class ReplicaE2e : public RecommendTest {
 protected:
  ReplicaE2e() {
    kafka_.Create("model", 3);
    WriteRankersConfig();
    std::string yaml = test::ReadFile(dir_ / "shop.yaml");
    yaml.replace(yaml.find("learning_rate: 0.01}"), 19, "learning_rate: 0.01, ema: 0.9");
    yaml += fmt::format(
        "  - id: ctr\n    model: {{kind: pctr, hidden: [8]}}\n    mechanism: {{kind: dp-sgd}}\n"
        "    optimizer: {{kind: adam, learning_rate: 0.01, ema: 0.8}}\n"
        "    participation: {{mode: once, batch: 320, max_participations: 9}}\n    privacy: {0}\n"
        "  - id: sums\n    model: {{kind: linear}}\n    mechanism: {{kind: sums}}\n"
        "    participation: {{mode: once, batch: 640, max_participations: 9}}\n    privacy: {0}\n"
        "kafka: {{bootstrap.servers: \"{1}\"}}\n"
        "feed: {{topic: model, interval_ms: 20, max_age_ms: 3600000}}\n",
        kPrivate.privacy, kafka_.bootstrap());
    test::WriteFile(dir_ / "shop.yaml", yaml);
    for (int day = 1; day < kDays; ++day) Hide(day);
  }
  void Hide(int day) const {
    std::filesystem::rename(dir_ / fmt::format("day-{}.jsonl", day),
                            dir_ / fmt::format("hidden-{}", day));
  }
  void Show(int day) const {
    std::filesystem::rename(dir_ / fmt::format("hidden-{}", day),
                            dir_ / fmt::format("day-{}.jsonl", day));
  }
  ShopDaemon Trainer() const { return {dir_, "trainer", "trainer"}; }
  ShopDaemon ReplicaCalled(const std::string& name) const { return {dir_, "replica", name}; }
  // Waits until the trainer has published what it has, the replicas show it, and nothing new comes
  // for a while. A slow trainer may go on after that: a comparison has to ask again.
  static void WaitForAll(const ShopDaemon& trainer, const std::vector<const ShopDaemon*>& replicas,
                         double newer_than) {
    double version = 0;
    int quiet = 0;
    EXPECT_TRUE(Eventually("the trainer is at the end, and the replicas are too",
                           [&] {
                             const double committed = trainer.Metric("tacit_commit_version");
                             const bool same =
                                 committed > newer_than && committed == version &&
                                 trainer.Metric("tacit_feed_published_version") == committed &&
                                 std::ranges::all_of(replicas, [&](const ShopDaemon* replica) {
                                   return replica->Metric("tacit_replica_version") == committed;
                                 });
                             quiet = same ? quiet + 1 : 0;
                             version = committed;
                             return quiet > 25;
                           }))
        << trainer.Err() << replicas.front()->Err() << replicas.back()->Err();
  }

  // A recommender keeps its state, and the version that it was made of, while later versions do not
  // change its learner. So the version that it names depends on which one a process has seen first.
  static std::string WithoutVersion(std::string answer) {
    const size_t from = answer.find("\"version\":"), to = answer.find(",\"epsilon\"", from);
    if (from != std::string::npos && to != std::string::npos) answer.erase(from, to - from);
    return answer;
  }

  // The most that anybody can tell of a unit: the trainer's ledger knows it from its state, others
  // bound it by the entries alone, never below (privacy::AddAdvantages).
  static std::string WithoutBounds(std::string answer) {
    for (size_t at; (at = answer.find("\"at_most\":{")) != std::string::npos;)
      answer.erase(at, answer.find('}', at) - at);
    return answer;
  }

  struct Question {
    std::string method, path, body;
  };
  static Question Draw(std::mt19937& random) {
    const auto sequence = [&] {
      std::string items;
      for (uint32_t i = 0; i <= random() % 6; ++i)
        items += fmt::format(R"({}"item-{}")", i == 0 ? "" : ",", random() % kItems);
      return items;
    };
    const auto features = [&] {
      return fmt::format(R"({{"x":{},"c":"{}"}})", static_cast<int>(random() % kItems),
                         random() % 9);
    };
    switch (random() % 8) {
      case 0:
      case 1: {
        const char* const learner = random() % 2 == 0 ? "ctr" : "sums";
        return {"POST", "/v1/score",
                fmt::format(R"({{"learner":"{}","rows":[{{"features":{}}},{{"features":{}}}]}})",
                            learner, features(), features())};
      }
      case 2:
        return {"POST", "/v1/lookup",
                fmt::format(R"({{"learner":"{}","rows":[{{"feature":"c","bucket":{}}}]}})",
                            random() % 2 == 0 ? "ctr" : "sums", random() % 16)};
      case 3:
        return {"GET", random() % 2 == 0 ? "/v1/ledger" : "/v1/privacy", ""};
      case 4:
        return {"GET", "/v2/models/ctr", ""};
      default: {
        static constexpr std::array kLearners = {"ranked", "from-counts", "from-popularity"};
        return {"POST", "/v1/recommend",
                fmt::format(R"({{"learner":"{}","sequence":[{}],"k":7}})", kLearners[random() % 3],
                            sequence())};
      }
    }
  }

  stream::MockKafka kafka_;
};

TEST_F(ReplicaE2e, AnswersWithTheTrainersBytesAtEachVersion) {
  std::mt19937 random(17);
  ShopDaemon first = ReplicaCalled("first");
  std::string ready;
  EXPECT_TRUE(Eventually("the replica tells that it has nothing", [&] {
    ready = first.Ask("GET", "/readyz");
    return ready.starts_with("503");
  })) << first.Err();
  EXPECT_THAT(ready, HasSubstr("no committed model yet"));
  EXPECT_THAT(first.Ask("GET", "/v1/privacy"), ::testing::StartsWith("503"));
  std::unique_ptr<ShopDaemon> second;
  std::map<std::string, std::string> before;  // answers at the version before
  size_t changed = 0;
  double last = 0;  // the version that was served before
  for (int day = 0; day < kDays; ++day) {
    if (day > 0) Show(day);
    ShopDaemon trainer = Trainer();
    if (day == 1) second = std::make_unique<ShopDaemon>(dir_, "replica", "second");
    std::vector<const ShopDaemon*> replicas = {&first};
    if (second) replicas.push_back(second.get());
    WaitForAll(trainer, replicas, last);
    last = trainer.Metric("tacit_commit_version");
    EXPECT_TRUE(first.Ask("GET", "/readyz").starts_with("200"));
    for (int i = 0; i < 150; ++i) {
      const Question question = Draw(random);
      const auto ask = [&](const ShopDaemon& daemon) {
        std::string answer = daemon.Ask(question.method, question.path, question.body,
                                        question.path == "/v1/ledger" ? "-operators" : "");
        if (question.path == "/v1/privacy") return WithoutBounds(std::move(answer));
        return question.path == "/v1/recommend" ? WithoutVersion(std::move(answer)) : answer;
      };
      std::string expected, is;
      // States of recommenders are made after the commits, which takes a slow machine its time:
      // both may say so in the same words.
      EXPECT_TRUE(Eventually("both answer alike",
                             [&] {
                               expected = ask(trainer);
                               is = ask(second && i % 2 == 1 ? *second : first);
                               return is == expected && is.starts_with("200");
                             }))
          << question.path << " " << question.body << "\n"
          << expected << "\n"
          << is;
      if (HasFailure()) return;
      const auto known = before.find(question.path + question.body);
      if (known != before.end() && known->second != is) ++changed;
      before[question.path + question.body] = is;
    }
    trainer.Stop();
  }
  // The comparison would see an answer of another version.
  EXPECT_GT(changed, 5u);
  // Nothing depends on the trainer: it is gone.
  EXPECT_TRUE(first.Ask("GET", "/v1/privacy").starts_with("200"));
  const std::string by_user =
      first.Ask("POST", "/v1/recommend", R"({"learner":"ranked","user":"u1"})", "-operators");
  EXPECT_THAT(by_user, HasSubstr("a checkpoint or replica knows no user by id"));
  EXPECT_THAT(first.Ask("GET", "/v1/weights?learner=sums", "", "-operators"),
              HasSubstr("without their deviations"));
  EXPECT_GT(first.Metric("tacit_replica_versions_total"), 2);
  // The trainer may have published once more when it ended.
  EXPECT_TRUE(Eventually("the replica has the newest version", [&] {
    return first.Metric("tacit_replica_lag_versions") == 0 &&
           first.Metric("tacit_replica_version") == second->Metric("tacit_replica_version");
  }));
  // metrics/families.h has these, and says that they are replicas'.
  const auto shown = test::ShapesOf(first.Ask("GET", "/metrics"));
  for (const auto& [name, row] : test::DocumentedMetrics())
    EXPECT_TRUE(row.of != metrics::kReplicas || (row.is_public && shown.contains(name))) << name;
  // It goes on with what it has, brokers or not.
  const std::string ledger = first.Ask("GET", "/v1/ledger", "", "-operators");
  first.Stop();
  kafka_.SetDown(true);
  ShopDaemon again = ReplicaCalled("first");
  EXPECT_TRUE(Eventually("it serves what it has", [&] {
    return again.Ask("GET", "/v1/ledger", "", "-operators") == ledger;
  })) << again.Err();
}

// The disk of a replica is full from its second version on: it was written to when the replica
// began, and once a version.
TEST_F(ReplicaE2e, SighupReadsTheConfigurationAgain) {
  ShopDaemon replica = ReplicaCalled("first");
  const auto answers = [&] { return replica.Ask("GET", "/healthz").starts_with("200"); };
  EXPECT_TRUE(Eventually("the replica answers", answers)) << replica.Err();
  const auto reload = [&](std::string_view from, std::string_view to, const std::string& told) {
    std::string yaml = test::ReadFile(dir_ / "shop.yaml");
    ASSERT_NE(yaml.find(from), yaml.npos) << yaml;
    yaml.replace(yaml.find(from), from.size(), to);
    test::WriteFile(dir_ / "shop.yaml", yaml);
    replica.process().Signal(SIGHUP);
    EXPECT_TRUE(Eventually("it says " + told, [&] {
      return replica.Err().find(told) != std::string::npos;
    })) << replica.Err();
  };
  reload("serve: {", "serve: {access_log: true, ",
         "SIGHUP: serve.access_log is true now, and was false");
  EXPECT_TRUE(answers());
  EXPECT_TRUE(Eventually("the answer is logged", [&] {
    return replica.Err().find("access: public GET /healthz 200") != std::string::npos;
  })) << replica.Err();
  reload("idle_priority: false", "idle_priority: true",
         "SIGHUP: training.idle_priority is true in the file, and stays false");
  reload("access_log: true", "acess_log: true", "; the configuration stays as it was");
  replica.Stop();
}

TEST_F(ReplicaE2e, AReplicaWhoseDiskIsFullServesWhatItHasAndIsDegraded) {
  ShopDaemon full(dir_, "replica", "replica", fmt::format("write:.log:3:{}:1000000", ENOSPC));
  auto trainer = std::make_unique<ShopDaemon>(Trainer());
  // Day 0 may have been published as one version.
  EXPECT_TRUE(Eventually("it has a version", [&] {
    return full.Metric("tacit_replica_version") > 0;
  })) << full.Err();
  trainer->Stop();
  Show(1);
  trainer = std::make_unique<ShopDaemon>(Trainer());
  EXPECT_TRUE(Eventually("the trainer answers", [&] {
    return trainer->Metric("tacit_commit_version") > 0;
  })) << trainer->Err();
  EXPECT_TRUE(Eventually("it is told", [&] {
    return full.Ask("GET", "/readyz", "", "-operators").find("store has failed") !=
           std::string::npos;
  })) << full.Err();
  const double version = full.Metric("tacit_replica_version");
  trainer->Stop();
  Show(2);
  trainer = std::make_unique<ShopDaemon>(Trainer());
  EXPECT_TRUE(Eventually("the trainer goes on", [&] {
    return trainer->Metric("tacit_feed_published_version") > version + 1;
  })) << trainer->Err();
  EXPECT_EQ(full.Metric("tacit_replica_version"), version);
  EXPECT_THAT(full.Err(), HasSubstr("the replica's store has failed"));
  EXPECT_THAT(full.Err(), HasSubstr("No space left on device"));
  const std::string readyz = full.Ask("GET", "/readyz");
  EXPECT_GT(version, 0);
  EXPECT_TRUE(readyz.starts_with("200"));
  EXPECT_THAT(readyz, HasSubstr("degraded"));
  EXPECT_TRUE(full.Ask("GET", "/v1/privacy").starts_with("200"));
  full.Stop();
  // There is room again.
  ShopDaemon again = ReplicaCalled("replica");
  WaitForAll(*trainer, {&again}, version);
  EXPECT_TRUE(Eventually("both answer alike", [&] {
    const std::string ledger = again.Ask("GET", "/v1/ledger", "", "-operators");
    return ledger.starts_with("200") &&
           ledger == trainer->Ask("GET", "/v1/ledger", "", "-operators");
  }));
  trainer->Stop();
}

TEST_F(ReplicaE2e, StoresAndOptionsThatDoNotFitAreRefusedByName) {
  ASSERT_EQ(Tacitd().exit_code, 0);
  const Ended in_trainers = Tacitd({"--replica"});
  EXPECT_EQ(in_trainers.exit_code, 3) << in_trainers.err;
  EXPECT_THAT(in_trainers.err, HasSubstr("is a trainer's"));
  const Ended without = Tacitd({"--replica", "--set", "feed.topic="});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.err, HasSubstr("--replica: the configuration has no feed.topic"));
  const Ended both = Tacitd({"--replica", "--until-end"});
  EXPECT_EQ(both.exit_code, 2);
}

}  // namespace
}  // namespace tacit::shop
