// Nothing that a trainer publishes, that a replica answers, writes or keeps, or that commands tell
// has secrets in it: tokens, keys of TLS and of the ledger, passwords of brokers, salts, users and
// what records say are planted, and all bytes are searched. librdkafka's mock stands for the
// broker.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

#include "ledger_keys.h"
#include "secrets_shop.h"
#include "stream/kafka/topic_reader.h"
#include "unit/stream/mock_kafka.h"

namespace tacit::planted {
namespace {

using testing::HasSubstr;

class SecretsFeedTest : public SecretsShop {
 protected:
  SecretsFeedTest() {
    kafka_.Create("model", 3);
    kafka_.Create("foreign", 1);
    kafka_.Create("heads", 1);
    test::WriteFile(dir_ / "kafka-key-password", kKeyPassword);
    std::string yaml = test::ReadFile(dir_ / "shop.yaml");
    yaml += fmt::format(
        "kafka: {{bootstrap.servers: \"{0}\", sasl.username: tacit, sasl.password: \"{1}\", "
        "ssl.key.password: {{file: {2}/kafka-key-password}}}}\n"
        "feed: {{topic: model, interval_ms: 20, max_age_ms: 3600000}}\n",
        kafka_.bootstrap(), kPassword, dir_.path());
    test::WriteFile(dir_ / "shop.yaml", yaml);
    test::WriteLedgerKey(dir_, "ledger");
    for (PlantedSecrets* secrets : {&own_, &kept_, &sent_}) {
      secrets->Add("the brokers' password", kPassword);
      secrets->Add("the password of the brokers' key", kKeyPassword);
      AddPrivateKey("the ledger's key", dir_ / "ledger.key", secrets);
    }
  }

  // A trainer or a replica with a store and an operators' listener of its name.
  std::unique_ptr<test::Process> Start(const std::string& what,
                                       std::vector<std::string> more = {}) {
    std::vector<std::string> command = {TACIT_FEED_CHILD, what, dir_ / "shop.yaml",
                                        "store.path=" + (dir_ / what),
                                        "serve.operator_listen=" + Operators(what)};
    command.insert(command.end(), more.begin(), more.end());
    return std::make_unique<test::Process>(command);
  }
  std::string Operators(const std::string& what) const { return "unix:" + (dir_ / what) + ".ops"; }
  double Metric(const std::string& what, const std::string& name) {
    const auto answer = Ask(Operators(what) + ":/metrics", "GET", "", tokens_["operator"]);
    const std::string page = answer ? "\n" + answer->body : "";
    const size_t at = page.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(page.substr(at + name.size() + 2));
  }

  // Ends a daemon, and keeps what it has said.
  void End(test::Process& daemon) {
    daemon.Signal(SIGTERM);
    const auto ended = daemon.Wait();
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->exit_code, 0) << ended->err;
    said_ += ended->out + ended->err;
  }

  // All bytes of a topic's records.
  std::string TopicBytes(const std::string& topic) {
    std::string bytes;
    const Status read = stream::ReadKafkaTail(
        {{{"bootstrap.servers", kafka_.bootstrap()}}}, topic, 1'000'000, kPatience,
        [&](const stream::KafkaTopicRecord& record) -> Status {
          bytes += fmt::format("{}|{}|", record.key.value_or(""), record.value.value_or(""));
          for (const event::MessageHeader& header : record.headers)
            bytes += fmt::format("{}|{}|", header.name, header.value);
          return {};
        });
    EXPECT_TRUE(read) << read.error().message;
    return bytes;
  }

  // Runs a command, and keeps what it has said.
  Ended Tell(std::vector<std::string> words, const std::string& token = "operator") {
    words.insert(words.begin(), TACIT);
    Ended ended = test::Run(
        words, {"TACIT_TOKEN_FILE=" + (dir_ / token), "TACIT_CA_FILE=" + (dir_ / "ca.pem")});
    said_ += ended.out + ended.err;
    return ended;
  }

  void RunFeedCommands() {
    const std::string config = dir_ / "shop.yaml";
    for (const char* command : {"show", "verify"})
      for (const bool json : {false, true}) {
        std::vector<std::string> words = {"feed", command, "--config", config};
        if (json) words.push_back("--json");
        const Ended whole = Tell(words);
        EXPECT_EQ(whole.exit_code, 0) << whole.err;
        words.insert(words.end(), {"--set", "feed.topic=foreign"});
        Tell(words);
        words.insert(words.end(), {"--set", "kafka.bootstrap.servers=127.0.0.1:1", "--wait", "1"});
        EXPECT_NE(Tell(words).exit_code, 0);
      }
  }

  void RunQueries(const std::string& open) {
    std::string rows;
    for (int i = 0; i < 50; ++i)
      rows += fmt::format(R"({{"label":1,"user":"u{}","item":"item-1","features":{{"x":{}}}}})"
                          "\n",
                          i, i % 7);
    test::WriteFile(dir_ / "rows.jsonl", rows);
    test::WriteFile(dir_ / "bad-rows.jsonl", rows + "{\"label\":1,\"" + kValue + "\n");
    test::WriteFile(dir_ / "sequences.jsonl", "{\"sequence\":[\"item-1\",\"item-2\"]}\n");
    for (const char* input : {"rows.jsonl", "bad-rows.jsonl"})
      for (const std::vector<std::string>& from : std::vector<std::vector<std::string>>{
               {"--url", open}, {"--checkpoint", dir_ / "trainer", "--config", dir_ / "shop.yaml"}})
        for (const char* token : {"query", "server.key"}) {
          std::vector<std::string> words = {
              "query",   "score",      "--learner", "ctr",
              "--input", dir_ / input, "--output",  dir_ / "scores.jsonl"};
          words.insert(words.end(), from.begin(), from.end());
          Tell(words, token);
        }
    EXPECT_EQ(Tell({"query", "score", "--url", open, "--learner", "ctr", "--input",
                    dir_ / "rows.jsonl", "--output", dir_ / "scores.jsonl"},
                   "query")
                  .exit_code,
              0);
    said_ += test::ReadFile(dir_ / "scores.jsonl");
    Tell({"query", "recommend", "--url", open, "--learner", "counts", "--input",
          dir_ / "sequences.jsonl", "--output", dir_ / "items.jsonl"},
         "query");
  }

  // Right and wrong ways to sign heads, and to hold them against the ledger.
  void RunLedgerCommands() {
    const std::string store = dir_ / "trainer", anchors = dir_ / "anchors.jsonl";
    const auto sign = [&](const std::string& key) {
      return Tell({"ledger", "sign", "--store", store, "--key", dir_ / key, "--anchors", anchors});
    };
    EXPECT_EQ(sign("ledger.key").exit_code, 0);
    EXPECT_NE(sign("server.key").exit_code, 0);
    EXPECT_NE(sign("query").exit_code, 0);
    EXPECT_NE(sign("ledger.pub").exit_code, 0);
    fs::copy(dir_ / "ledger.key", dir_ / "open.key");
    ASSERT_EQ(::chmod((dir_ / "open.key").c_str(), 0644), 0);
    EXPECT_NE(sign("open.key").exit_code, 0);
    for (const char* key : {"ledger.pub", "ledger.key"})
      for (const std::vector<std::string>& words :
           std::vector<std::vector<std::string>>{{"ledger", "verify"}, {"privacy", "report"}}) {
        std::vector<std::string> command = words;
        command.insert(command.end(),
                       {"--store", store, "--anchors", anchors, "--public-key", dir_ / key});
        EXPECT_EQ(Tell(command).exit_code == 0, std::string_view(key) == "ledger.pub");
      }
    said_ += test::ReadFile(anchors);
    for (const char* key : {"ledger.key", "server.key"})
      for (const char* topic : {"topic:heads", "topic:foreign"})
        Tell({"ledger", "sign", "--store", store, "--key", dir_ / key, "--anchors", topic,
              "--kafka", dir_ / "shop.yaml"});
    said_ += TopicBytes("heads");
    EXPECT_THAT(said_, HasSubstr("topic:heads: anchor 0 at offset 0"));
  }

  void RunVersionsCommands(const std::string& checkpoint) {
    test::Process server({TACITD, "--config", dir_ / "shop.yaml", "--serve-only", "--checkpoint",
                          checkpoint, "--set", "serve.operator_listen=" + Operators("server")});
    PublicUrl(server);
    for (const char* token : {"operator", "query", "server.key"})
      for (const std::string& at : {Operators("server"), Operators("replica")}) {
        Tell({"versions", "list", "--url", at}, token);
        Tell({"versions", "serve", kValue, "--url", at}, token);
        Tell({"versions", "serve", "newest", "--url", at}, token);
        Tell({"versions", "canary", "1", "--share", "0.5", "--url", at}, token);
      }
    End(server);
  }

  static inline const std::string kPassword = "planted-password-of-brokers-77d0";
  static inline const std::string kKeyPassword = "planted-password-of-a-key-1b9e";

  stream::MockKafka kafka_;
  std::string said_;  // by daemons and commands
};

TEST_F(SecretsFeedTest, NothingThatIsPublishedOrThatAReplicaHasHasThem) {
  auto trainer = Start("trainer", {"store.anchors.path=" + (dir_ / "daemons-anchors.jsonl"),
                                   "store.anchors.key=" + (dir_ / "ledger.key")});
  auto replica = Start("replica");
  ASSERT_TRUE(test::Eventually("the replica has all",
                               [&] {
                                 const double version = Metric("trainer", "tacit_commit_version");
                                 return version > 0 &&
                                        Metric("replica", "tacit_replica_version") == version &&
                                        Metric("trainer", "tacit_feed_unpublished_commits") == 0;
                               }))
      << trainer->Err() << replica->Err();
  // A record of somebody else, whose words are nobody's to repeat.
  kafka_.WriteKeyed("foreign", 0, UserName(7), kValue);
  kafka_.Flush();
  const std::string open = PublicUrl(*replica);
  ASSERT_FALSE(HasFailure());
  AskEverything(open, Operators("replica") + ":");
  RunFeedCommands();
  const Ended made = Tell(
      {"checkpoint", "create", "--url", Operators("trainer"), "--kind", "release"}, "operator");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::string checkpoint;
  for (const auto& entry : fs::directory_iterator(dir_ / "trainer.checkpoints"))
    if (entry.is_directory()) checkpoint = entry.path();
  RunVersionsCommands(checkpoint);
  End(*trainer);
  RunQueries(open);
  End(*replica);
  RunLedgerCommands();
  if (HasFatalFailure()) return;

  AddStoresKeys(dir_ / "trainer", {&own_, &kept_, &sent_});
  const std::string topic = TopicBytes("model"), store = BytesBelow(dir_ / "replica");
  EXPECT_EQ(sent_.FoundIn(topic), "");
  EXPECT_EQ(sent_.FoundIn(store), "");
  // The log, outputs of commands, files that they have made.
  EXPECT_EQ(sent_.FoundIn(said_), "") << said_;
  EXPECT_EQ(sent_.FoundIn(test::ReadFile(dir_ / "daemons-anchors.jsonl")), "");
  EXPECT_EQ(own_.FoundIn(told_public_), "");
  // A replica has nothing of users, so that it has nothing to tell operators either.
  EXPECT_EQ(kept_.FoundIn(told_operators_), "");

  // These ways of looking see what is there: the trainer's store has the salt, and topic, replica,
  // log and answers have the learner's name.
  EXPECT_NE(own_.FoundIn(BytesBelow(dir_ / "trainer")), "");
  for (const std::string* bytes : std::initializer_list<const std::string*>{
           &topic, &store, &said_, &told_public_, &told_operators_})
    EXPECT_THAT(*bytes, HasSubstr("counts"));
  EXPECT_THAT(TopicBytes("foreign"), HasSubstr(kValue));
}

}  // namespace
}  // namespace tacit::planted
