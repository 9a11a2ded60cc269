// A daemon whose callers are known by tokens, and the commands that make and use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "service.h"
#include "unit/http/test_authority.h"

namespace tacit {
namespace {

using test::Ended;
using test::kPatience;
using test::SmallRun;
using testing::HasSubstr;
using testing::Not;

class GuardedTest : public testing::Test {
 protected:
  GuardedTest() {
    test::WriteFile(callers_, "");
    ::chmod(callers_.c_str(), 0600);
  }

  // Makes a token in a file of this name, and appends its line to the callers.
  std::string NewToken(const std::string& file, std::vector<std::string> words) {
    return NewToken(file, std::move(words), callers_);
  }
  std::string NewToken(const std::string& file, std::vector<std::string> words,
                       const std::string& callers) {
    std::vector<std::string> command = {TACIT, "token", "new", "--output", dir_ / file};
    command.insert(command.end(), words.begin(), words.end());
    const Ended ended = test::Run(command);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    std::ofstream(callers, std::ios::app) << ended.out;
    struct stat info {};
    EXPECT_EQ(::stat((dir_ / file).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    std::string token = test::ReadFile(dir_ / file);
    EXPECT_TRUE(token.ends_with('\n'));
    token.pop_back();
    EXPECT_THAT(ended.out + ended.err, Not(HasSubstr(token)));
    return token;
  }

  Ended Tacit(std::vector<std::string> words, const std::string& token_file) {
    words.insert(words.begin(), TACIT);
    return test::Run(words, {"TACIT_TOKEN_FILE=" + (token_file.empty() ? "" : dir_ / token_file)});
  }

  const test::TempDir dir_;
  const std::string callers_ = dir_ / "callers";
};

TEST_F(GuardedTest, TokensAreMadeUsedChangedAndNeverTold) {
  const std::string web = NewToken("web.token", {"--role", "query", "--name", "web"});
  const std::string night = NewToken("night.token", {"--role", "operator"});
  const std::string operators = "unix:" + (dir_ / "operators");
  SmallRun run;
  run.endless = true;
  test::Service daemon(
      dir_, run,
      {"--set", "serve.callers=" + callers_, "--set", "serve.operator_listen=" + operators, "--set",
       "serve.access_log=true", "--set", "log.level=info"});
  ASSERT_TRUE(daemon.WaitFor("/readyz"));
  EXPECT_THAT(daemon.process().Err(), HasSubstr("2 callers of " + callers_));
  const auto ask = [&](const std::string& token) {
    const auto answer = http::Fetch(daemon.url() + ":/v1/privacy", "GET", "", kPatience,
                                    {{"Authorization", "Bearer " + token}});
    return answer ? answer->status : 0;
  };
  EXPECT_EQ(daemon.Ask("GET", "/v1/privacy")->status, 401u);
  EXPECT_EQ(ask(web), 200u);
  // The commands take their token from the file that they are told of.
  EXPECT_EQ(Tacit({"ledger", "show", "--url", daemon.url()}, "web.token").exit_code, 0);
  const Ended without = Tacit({"ledger", "show", "--url", daemon.url()}, "");
  EXPECT_NE(without.exit_code, 0);
  EXPECT_THAT(without.err, HasSubstr("answered 401"));
  EXPECT_THAT(without.err, HasSubstr("a token is needed"));
  EXPECT_EQ(Tacit({"ledger", "verify", "--url", operators}, "night.token").exit_code, 0);
  const Ended other = Tacit({"ledger", "verify", "--url", operators}, "web.token");
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.err,
              HasSubstr("/v1/ledger is for operators: the token of 'web' has the role query"));
  EXPECT_THAT(Tacit({"ledger", "show", "--url", daemon.url()}, "callers").err,
              HasSubstr("is no token"));

  // A new line is seen without a word to the daemon; so is one that makes no sense.
  const std::string late =
      NewToken("late.token", {"--role", "user", "--user", "u 1", "--name", "phone"});
  ASSERT_TRUE(daemon.Until("the new token is known", [&] { return ask(late) == 200; }));
  std::ofstream(callers_, std::ios::app) << "query stray " << late << "\n";
  daemon.process().Signal(SIGHUP);
  ASSERT_TRUE(daemon.WaitForWord("the callers stay those that were read before"));
  EXPECT_EQ(ask(web), 200u);
  EXPECT_EQ(daemon.Stop()->exit_code, 0);
  const std::string told = daemon.process().Err() + daemon.process().Out();
  EXPECT_THAT(told, HasSubstr("access: operator GET /v1/ledger 200"));
  for (const std::string& token : {web, night, late}) EXPECT_THAT(told, Not(HasSubstr(token)));
}

// The whole road with TLS and tokens, by the commands; certificates change under the daemon.
TEST_F(GuardedTest, CommandsAskWithTls) {
  const http::TestAuthority authority("authority");
  authority.Write(dir_ / "ca.pem");
  authority.Sign(dir_, {.name = "server", .until_s = 86'400 * 3 + 3600});
  authority.Sign(dir_, {.name = "web"});
  NewToken("web.token", {"--role", "query"});
  SmallRun run;
  run.endless = true;
  run.listen = "127.0.0.1:0";
  test::Process daemon({TACITD, "--config", run.WriteConfig(dir_), "--set", "log.level=info",
                        "--set", "serve.callers=" + callers_, "--set",
                        "serve.tls.certificate=" + (dir_ / "server.pem"), "--set",
                        "serve.tls.key=" + (dir_ / "server.key"), "--set",
                        "serve.tls.client_ca=" + (dir_ / "ca.pem")});
  const std::string serving = "serving on 127.0.0.1:";
  ASSERT_TRUE(test::Eventually("it serves",
                               [&] { return daemon.Err().find(serving) != std::string::npos; }));
  const std::string told = daemon.Err().substr(daemon.Err().find(serving) + serving.size());
  const std::string port = told.substr(0, told.find_first_not_of("0123456789"));
  const auto show = [&](const std::string& certificate) {
    return test::Run(
        {TACIT, "ledger", "show", "--url", "https://localhost:" + port},
        {"TACIT_TOKEN_FILE=" + (dir_ / "web.token"), "TACIT_CA_FILE=" + (dir_ / "ca.pem"),
         "TACIT_CLIENT_CERTIFICATE=" + (certificate.empty() ? "" : dir_ / (certificate + ".pem")),
         "TACIT_CLIENT_KEY=" + (certificate.empty() ? "" : dir_ / (certificate + ".key"))});
  };
  ASSERT_TRUE(test::Eventually("the daemon answers", [&] { return show("web").exit_code == 0; }))
      << show("web").err << daemon.Err();
  EXPECT_NE(show("").exit_code, 0);
  EXPECT_THAT(daemon.Err(), HasSubstr("serve.tls.certificate expires in 3 days"));
  const auto has_said = [&](const std::string& words) {
    return test::Eventually(words, [&] { return daemon.Err().find(words) != std::string::npos; });
  };
  std::filesystem::copy_file(dir_ / "web.key", dir_ / "server.key",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(has_said("is not the key of the certificate in"));
  EXPECT_EQ(show("web").exit_code, 0);
  std::filesystem::copy_file(dir_ / "web.pem", dir_ / "server.pem",
                             std::filesystem::copy_options::overwrite_existing);
  daemon.Signal(SIGHUP);
  EXPECT_TRUE(has_said("certificate and key are read again"));
  EXPECT_EQ(show("web").exit_code, 0);
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait()->exit_code, 0);
}

// A daemon with TLS, whose configuration names its files and is read again.
class NamedFilesTest : public GuardedTest {
 protected:
  void SetUp() override {
    const http::TestAuthority authority("authority");
    authority.Write(dir_ / "ca.pem");
    authority.Sign(dir_, {.name = "first"});
    authority.Sign(dir_, {.name = "second"});
    NewToken("web.token", {"--role", "query"});
    SmallRun run;
    run.endless = true;
    run.listen = "127.0.0.1:0";
    yaml_ = test::ReadFile(run.WriteConfig(dir_));
    yaml_.insert(yaml_.find("serve: {") + 8, files_);
    test::WriteFile(dir_ / "store.yaml", yaml_);
    daemon_ = std::make_unique<test::Process>(std::vector<std::string>{
        TACITD, "--config", dir_ / "store.yaml", "--set", "log.level=info"});
    const std::string serving = "serving on 127.0.0.1:";
    ASSERT_TRUE(HasSaid(serving)) << daemon_->Err();
    const std::string told = daemon_->Err().substr(daemon_->Err().find(serving) + serving.size());
    port_ = told.substr(0, told.find_first_not_of("0123456789"));
    ASSERT_TRUE(test::Eventually("the daemon answers", [&] { return ExitCode("web.token") == 0; }));
  }

  // Waits for words after the first `from` bytes of what it has said.
  testing::AssertionResult HasSaid(const std::string& words, size_t from = 0) {
    return test::Eventually(words,
                            [&] { return daemon_->Err().find(words, from) != std::string::npos; });
  }
  int ExitCode(const std::string& token) {
    return test::Run({TACIT, "ledger", "show", "--url", "https://localhost:" + port_},
                     {"TACIT_TOKEN_FILE=" + (dir_ / token), "TACIT_CA_FILE=" + (dir_ / "ca.pem")})
        .exit_code;
  }
  // Has the daemon read its configuration with these texts in place of others.
  void Hup(const std::vector<std::pair<std::string, std::string>>& changes) {
    std::string yaml = yaml_;
    for (const auto& [from, to] : changes) {
      ASSERT_NE(yaml.find(from), yaml.npos) << from;
      yaml.replace(yaml.find(from), from.size(), to);
    }
    test::WriteFile(dir_ / "store.yaml", yaml);
    daemon_->Signal(SIGHUP);
  }
  void Stop() {
    daemon_->Signal(SIGTERM);
    EXPECT_EQ(daemon_->Wait()->exit_code, 0);
  }

  const std::string files_ = "callers: \"" + callers_ + "\", tls: {certificate: \"" +
                             (dir_ / "first.pem") + "\", key: \"" + (dir_ / "first.key") + "\"}, ";
  std::string yaml_, port_;
  std::unique_ptr<test::Process> daemon_;
};

// SIGHUP takes other files over, too; where there were none it names the key.
TEST_F(NamedFilesTest, OthersAreTakenOver) {
  // The daemon's file stays as it is, and knows nobody of the other one.
  test::WriteFile(dir_ / "others", "");
  ::chmod((dir_ / "others").c_str(), 0600);
  NewToken("late.token", {"--role", "query"}, dir_ / "others");
  EXPECT_NE(ExitCode("late.token"), 0);
  Hup({{callers_, dir_ / "others"}, {"first.pem", "second.pem"}, {"first.key", "second.key"}});
  ASSERT_TRUE(HasSaid("SIGHUP: serve.callers is " + (dir_ / "others") + " now, and was"));
  ASSERT_TRUE(HasSaid("SIGHUP: serve.tls.certificate is " + (dir_ / "second.pem") + " now"));
  ASSERT_TRUE(HasSaid("1 caller of " + (dir_ / "others")));
  ASSERT_TRUE(HasSaid("certificate and key are read again"));
  EXPECT_EQ(ExitCode("late.token"), 0);
  EXPECT_NE(ExitCode("web.token"), 0);
  // Callers that were there cannot be turned off.
  Hup({{files_, ""}});
  ASSERT_TRUE(HasSaid("SIGHUP: serve.callers is empty in the file, and stays"));
  EXPECT_EQ(ExitCode("late.token"), 0);
  EXPECT_NE(ExitCode("web.token"), 0);
  Stop();
}

// Each fault is planted beside changes that are good: none of them is taken, and the files of
// before go on being read.
TEST_F(NamedFilesTest, ABadOneChangesNothing) {
  NewToken("late.token", {"--role", "query", "--name", "late"});
  ASSERT_TRUE(
      test::Eventually("the new token is known", [&] { return ExitCode("late.token") == 0; }));
  test::WriteFile(dir_ / "others", "");
  ::chmod((dir_ / "others").c_str(), 0600);
  test::WriteFile(dir_ / "broken", "operator night planted-token\n");
  ::chmod((dir_ / "broken").c_str(), 0600);
  const std::pair<std::string, std::string> rates = {"serve: {", "serve: {rates: {query: 9}, "};
  const auto refused = [&](std::vector<std::pair<std::string, std::string>> changes,
                           const std::string& why) {
    changes.push_back(rates);
    const size_t before = daemon_->Err().size();
    Hup(changes);
    // The files of before are read again as at each SIGHUP, once the refusal is told.
    ASSERT_TRUE(HasSaid("certificate and key are read again", before)) << daemon_->Err();
    const std::string said = daemon_->Err().substr(before);
    EXPECT_THAT(said, HasSubstr("SIGHUP: " + why));
    EXPECT_THAT(said, HasSubstr("; the configuration stays as it was"));
    EXPECT_THAT(said, Not(HasSubstr(" now, and was ")));
    EXPECT_THAT(said, HasSubstr("2 callers of " + callers_ + " are known"));
  };
  refused({{callers_, dir_ / "typo"}},
          "serve.callers: " + (dir_ / "typo") + ": No such file or directory");
  refused({{callers_, dir_ / "broken"}, {"first.pem", "second.pem"}, {"first.key", "second.key"}},
          "serve.callers: " + (dir_ / "broken") + ":1: the third word must be sha256:");
  // A key that does not fit takes the good callers with it.
  refused({{callers_, dir_ / "others"}, {"first.key", "second.key"}},
          "serve.tls.key: " + (dir_ / "second.key") + ": is not the key of the certificate in");
  refused({{"first.pem", "none.pem"}}, "serve.tls.certificate: " + (dir_ / "none.pem"));
  // A caller who is taken out of the file is let in no more.
  const std::string all = test::ReadFile(callers_);
  test::WriteFile(callers_, all.substr(0, all.find('\n') + 1));
  EXPECT_TRUE(
      test::Eventually("the token is nobody's", [&] { return ExitCode("late.token") != 0; }));
  EXPECT_EQ(ExitCode("web.token"), 0);
  // Once it is mended, all of it is taken.
  Hup({rates, {"first.pem", "second.pem"}, {"first.key", "second.key"}});
  EXPECT_TRUE(HasSaid("SIGHUP: serve.rates.query is 9 now, and was 0"));
  EXPECT_TRUE(HasSaid("SIGHUP: serve.tls.key is " + (dir_ / "second.key") + " now"));
  EXPECT_EQ(ExitCode("web.token"), 0);
  Stop();
}

TEST_F(GuardedTest, ADaemonDoesNotStartWithABadFile) {
  SmallRun run;
  run.endless = true;
  const auto start = [&] {
    return test::Run({TACITD, "--config", run.WriteConfig(dir_), "--set",
                      "serve.callers=" + callers_, "--set",
                      "serve.listen=unix:" + (dir_ / "socket")});
  };
  test::WriteFile(callers_, "operator night planted-token\n");
  const Ended bad = start();
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err,
              HasSubstr("serve.callers: " + callers_ + ":1: the third word must be sha256:"));
  EXPECT_THAT(bad.err, Not(HasSubstr("planted-token")));
  ::chmod(callers_.c_str(), 0644);
  EXPECT_THAT(start().err, HasSubstr("has mode 0644"));
}

TEST_F(GuardedTest, ATokenIsRefusedWhereItsLineWouldBe) {
  const auto refusal = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {TACIT, "token", "new"});
    const Ended ended = test::Run(words);
    EXPECT_EQ(ended.exit_code, 2);
    return ended.err;
  };
  EXPECT_THAT(refusal({"--role", "user"}), HasSubstr("needs user=ID"));
  EXPECT_THAT(refusal({"--role", "query", "--user", "u1"}), HasSubstr("for the role user alone"));
  EXPECT_THAT(refusal({"--role", "query", "--name", "a b"}), HasSubstr("tacit: "));
  EXPECT_THAT(refusal({"--role", "reader"}), HasSubstr("--role"));
  test::WriteFile(dir_ / "there", "x");
  EXPECT_THAT(refusal({"--role", "query", "--output", dir_ / "there"}), HasSubstr("File exists"));
}

}  // namespace
}  // namespace tacit
