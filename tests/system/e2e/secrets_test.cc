// Nothing that leaves the process has secrets in it: tokens, keys, salts, users and what records
// say are planted, every route and many commands are driven with errors, and all that came out is
// searched.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "secrets_shop.h"

namespace tacit::planted {
namespace {

using testing::HasSubstr;

class SecretsTest : public SecretsShop {
 protected:
  // Starts a daemon, drives it, and searches what came out.
  void Drive(std::vector<std::string> more, const std::string& format, bool makes_release) {
    SCOPED_TRACE(format + (more.empty() ? "" : " " + more[0]));
    std::vector<std::string> command = {TACITD, "--config", dir_ / "shop.yaml", "--set",
                                        "log.format=" + format};
    command.insert(command.end(), more.begin(), more.end());
    test::Process daemon(command);
    const std::string open = PublicUrl(daemon);
    if (HasFailure()) return;
    const std::string operators = "unix:" + (dir_ / "operators") + ":";
    ASSERT_TRUE(test::Eventually("all is learnt", [&] {
      const auto answer = Ask(operators + "/v1/privacy", "GET", "", tokens_["operator"]);
      return answer && answer->status == 200 &&
             answer->body.find("\"steps\":0,") == std::string::npos;
    })) << daemon.Err();
    if (makes_release) MakeCheckpoints();
    AskEverything(open, operators);
    RunCommands(open);
    const std::string limits = test::ReadFile(fmt::format("/proc/{}/limits", daemon.pid()));
    EXPECT_THAT(limits, testing::ContainsRegex("Max core file size +0 +0 "));
    EXPECT_EQ(sent_.FoundIn(test::ReadFile(fmt::format("/proc/{}/cmdline", daemon.pid()))), "");
    daemon.Signal(SIGTERM);
    const auto ended = daemon.Wait();
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->exit_code, 0) << ended->err;
    EXPECT_THAT(ended->err, HasSubstr("access"));
    EXPECT_EQ(sent_.FoundIn(ended->err), "") << ended->err;
    EXPECT_EQ(sent_.FoundIn(ended->out), "") << ended->out;
  }

  // Commands that fail, each with a token, at a daemon and without one.
  void RunCommands(const std::string& open) {
    const std::string operators = "unix:" + (dir_ / "operators");
    test::WriteFile(dir_ / "rows.jsonl", "{\"label\":1,\"" + kValue + "\n");
    for (const char* token : {"query", "user", "operator", "server.key"})
      for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
               {"ledger", "verify", "--url", open},
               {"ledger", "show", "--url", open},
               {"ledger", "show", "--url", "http://localhost:1"},
               {"checkpoint", "create", "--url", open},
               {"versions", "list", "--url", operators},
               {"query", "score", "--url", open, "--learner", "ctr", "--rows", "{"},
               {"query", "score", "--url", open, "--learner", "ctr", "--input", dir_ / "rows.jsonl",
                "--output", dir_ / "out"},
               {"privacy", "report", "--url", operators},
               {"token", "new", "--role", "reader"}}) {
        std::vector<std::string> command = {TACIT};
        command.insert(command.end(), words.begin(), words.end());
        const Ended ended = test::Run(
            command, {"TACIT_TOKEN_FILE=" + (dir_ / token), "TACIT_CA_FILE=" + (dir_ / "ca.pem")});
        EXPECT_EQ(own_.FoundIn(ended.out + ended.err), "") << words[0] << ended.out << ended.err;
      }
  }

  void MakeCheckpoints() {
    for (const char* kind : {"full", "release"}) {
      const Ended made = test::Run(
          {TACIT, "checkpoint", "create", "--url", "unix:" + (dir_ / "operators"), "--kind", kind},
          {"TACIT_TOKEN_FILE=" + (dir_ / "operator")});
      ASSERT_EQ(made.exit_code, 0) << made.err;
    }
  }

  std::string Checkpoint(const std::string& kind) const {
    for (const auto& entry : fs::directory_iterator(dir_ / "store.checkpoints"))
      if (entry.path().filename().string().starts_with(kind)) return entry.path();
    ADD_FAILURE() << "there is no checkpoint of kind " << kind;
    return "";
  }
};

TEST(PlantedSecretsTest, ASecretIsSeenInEachOfItsForms) {
  PlantedSecrets secrets;
  const std::string token = "a planted token", other = "another one";
  secrets.Add("token", token);
  EXPECT_EQ(secrets.FoundIn("a log without it: " + other), "");
  EXPECT_EQ(secrets.FoundIn("said: " + token + "."), "token");
  EXPECT_EQ(secrets.FoundIn("6120706c616e74656420746f6b656e"), "token in hexadecimal");
  EXPECT_EQ(secrets.FoundIn("6120706C616E74656420746F6B656E"), "token in hexadecimal");
  // printf 'XXa planted tokenYY' | base64, with none, one and two bytes before it.
  for (const char* text :
       {"YSBwbGFudGVkIHRva2VuWVk=", "WGEgcGxhbnRlZCB0b2tlbllZ", "WFhhIHBsYW50ZWQgdG9rZW5ZWQ=="})
    EXPECT_EQ(secrets.FoundIn(text), "token in base64") << text;
}

TEST_F(SecretsTest, NothingThatLeavesTheProcessHasThem) {
  Drive({}, "text", /*makes_release=*/true);
  if (HasFatalFailure()) return;
  AddStoresKeys(Checkpoint("full"), {&own_, &kept_, &sent_});
  // A checkpoint that an operator keeps has both, so that this way of looking sees them.
  EXPECT_NE(own_.FoundIn(BytesBelow(Checkpoint("full"))), "");
  EXPECT_EQ(sent_.FoundIn(BytesBelow(Checkpoint("release"))), "");
  Drive({}, "json", false);
  Drive({"--serve-only", "--checkpoint", Checkpoint("release")}, "text", false);
}

}  // namespace
}  // namespace tacit::planted
