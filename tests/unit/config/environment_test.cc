#include "config/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "config/config.h"
#include "sample.h"
#include "support/scoped_variable.h"

namespace tacit::config {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::vector<std::string>& overrides) {
  const Result<Config> config = Parse(kSample, "c.yaml", overrides);
  return config ? "valid" : config.error().message;
}

TEST(Overrides, SetWhatTheFileSaysAndWhatItLeavesOut) {
  const Result<Config> config =
      Parse(kSample, "c.yaml",
            {"learners.0.model.compute=bf16", "learners.0.model.hidden=[8, 4]",
             "learners.0.privacy.epsilon=2", "serve.listen=[::1]:80", "log.level=debug"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->learners[0].model.compute, "bf16");
  EXPECT_EQ(config->learners[0].model.hidden, (std::vector<uint32_t>{8, 4}));
  EXPECT_EQ(config->learners[0].privacy.epsilon, 2);
  EXPECT_EQ(config->serve.listen, "[::1]:80");
  EXPECT_EQ(config->log.level, "debug");
}

TEST(Overrides, TheLastOneCounts) {
  const Result<Config> config = Parse(kSample, "c.yaml", {"store.shards=4", "store.shards=8"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->store.shards, 8u);
}

TEST(Overrides, AreTextUnlessTheyReadAsAList) {
  const Result<Config> config = Parse(kSample, "c.yaml", {"store.path=/a: b # c"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->store.path, "/a: b # c");
}

TEST(Overrides, ThatNameNothingAreRefused) {
  EXPECT_EQ(ErrorOf({"training.wrokers=3"}),
            "override 'training.wrokers=3': training.wrokers: unknown key (did you mean "
            "'workers'?)");
  EXPECT_EQ(ErrorOf({"trainig.workers=3"}),
            "override 'trainig.workers=3': trainig: unknown key (did you mean 'training'?)");
  EXPECT_EQ(ErrorOf({"learners.1.id=x"}),
            "override 'learners.1.id=x': learners has 1 item, there is no learners.1");
  EXPECT_EQ(ErrorOf({"learners.ctr.id=x"}),
            "override 'learners.ctr.id=x': learners is a list: its items are named by number, not "
            "'ctr'");
  EXPECT_EQ(ErrorOf({"store.path.x=1"}),
            "override 'store.path.x=1': store.path is a value and has nothing below it");
  EXPECT_EQ(ErrorOf({"store.path"}), "override 'store.path': must be key=value");
  EXPECT_EQ(ErrorOf({"store..path=1"}),
            "override 'store..path=1': not a path of keys with a dot between them");
  EXPECT_EQ(ErrorOf({"=1"}), "override '=1': not a path of keys with a dot between them");
  EXPECT_EQ(ErrorOf({"store=/tmp"}), "override 'store=/tmp': store: must be a section of keys");
}

TEST(Overrides, AreNamedWhenTheirValueIsBad) {
  EXPECT_EQ(ErrorOf({"learners.0.privacy.delta=1"}),
            "override 'learners.0.privacy.delta=1': learners[0].privacy.delta: must be above 0 and "
            "below 1, is 1");
  EXPECT_EQ(ErrorOf({"learners.0.model.hidden=[8, x]"}),
            "override 'learners.0.model.hidden=[8, x]': learners[0].model.hidden[1]: must be a "
            "whole number of at least 1, is 'x'");
}

TEST(Environment, StandsAboveTheFileAndBelowTheCommandLine) {
  const test::ScopedVariable batch("TACIT_LEARNERS_0_PARTICIPATION_BATCH", "512");
  const test::ScopedVariable interval("TACIT_STORE_COMMIT_INTERVAL_MS", "20");
  const Result<Config> config = Parse(kSample, "c.yaml", {"store.commit_interval_ms=30"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->learners[0].participation.batch, 512u);
  EXPECT_EQ(config->store.commit_interval_ms, 30u);
}

TEST(Environment, IsNamedWhenItsValueIsBad) {
  const test::ScopedVariable batch("TACIT_LEARNERS_0_PARTICIPATION_BATCH", "0");
  EXPECT_EQ(ErrorOf({}),
            "environment TACIT_LEARNERS_0_PARTICIPATION_BATCH: learners[0].participation.batch: "
            "must be between 1 and 16777216, is 0");
}

TEST(Environment, UnknownVariableIsRefused) {
  {
    const test::ScopedVariable epsilon("TACIT_LEARNERS_0_PRIVACY_EPSILN", "1");
    EXPECT_EQ(ErrorOf({}),
              "environment TACIT_LEARNERS_0_PRIVACY_EPSILN: no key has this name (did you mean "
              "'TACIT_LEARNERS_#_PRIVACY_EPSILON'?)");
  }
  const test::ScopedVariable learner("TACIT_LEARNERS_7_ID", "x");
  EXPECT_EQ(ErrorOf({}),
            "environment TACIT_LEARNERS_7_ID: learners has 1 item, there is no learners.7");
}

TEST(Environment, OthersAndReservedOnesArePassedOver) {
  const Result<std::vector<Setting>> settings =
      ReadEnvironment({"PATH=/bin", "TACITLY=1", "TACIT_REQUIRE=data", "TACIT_CACHE_DIR=/x",
                       "TACIT_TEST_SEED=1", "TACIT_LOG_LEVEL=a=b"});
  ASSERT_TRUE(settings) << settings.error().message;
  ASSERT_EQ(settings->size(), 1u);
  EXPECT_EQ((*settings)[0].path, "log.level");
  EXPECT_EQ((*settings)[0].value, "a=b");
}

// All that kubelet sets for a Service `tacit` of two ports, and for one `tacit-kafka`.
const std::vector<std::string> kOfServices = {"TACIT_SERVICE_HOST=10.96.0.7",
                                              "TACIT_SERVICE_PORT=8980",
                                              "TACIT_SERVICE_PORT_HTTP=8980",
                                              "TACIT_PORT=tcp://10.96.0.7:8980",
                                              "TACIT_PORT_8980_TCP=tcp://10.96.0.7:8980",
                                              "TACIT_PORT_8980_TCP_PROTO=tcp",
                                              "TACIT_PORT_8980_TCP_PORT=8980",
                                              "TACIT_PORT_8980_TCP_ADDR=10.96.0.7",
                                              "TACIT_PORT_53_UDP_ADDR=10.96.0.7",
                                              "TACIT_KAFKA_SERVICE_HOST=fd00::9",
                                              "TACIT_KAFKA_PORT=tcp://[fd00::9]:9092",
                                              "TACIT_KAFKA_PORT_9092_TCP_ADDR=fd00::9"};

TEST(Environment, WhatKubeletSaysOfServicesIsPassedOver) {
  std::vector<std::string> variables = kOfServices;
  variables.push_back("TACIT_LOG_LEVEL=debug");
  const Result<std::vector<Setting>> settings = ReadEnvironment(variables);
  ASSERT_TRUE(settings) << settings.error().message;
  ASSERT_EQ(settings->size(), 1u);
  EXPECT_EQ((*settings)[0].path, "log.level");
}

TEST(Environment, AServiceHidesNoOtherVariable) {
  for (const std::string wrong :
       {"TACIT_SERVICE_LISTEN=:1", "TACIT_SERVICE_HOSTS=a", "TACIT_SERVICE_PORT=http",
        "TACIT_PORT=8980", "TACIT_PORT_HTTP=8980", "TACIT_PORT_8980=1", "TACIT_PORT_8980_TCPS=1",
        "TACIT_PORT_8980_TCP_NAME=1", "TACIT_SERVE_PORT=8980", "TACIT_PORTS=tcp://a",
        "TACIT_OTHER_SERVICE_PORT=8980", "TACIT_LEARNERS_0_PRIVACY_EPSILN=1"}) {
    std::vector<std::string> variables = kOfServices;
    variables.push_back(wrong);
    const Result<std::vector<Setting>> settings = ReadEnvironment(variables);
    ASSERT_FALSE(settings) << wrong;
    EXPECT_THAT(settings.error().message, HasSubstr(wrong.substr(0, wrong.find('='))));
  }
  // Nothing is passed over for a Service that is not there, or whose address is none.
  for (const std::string host : {"PATH=/bin", "TACIT_SERVICE_HOST=tacit.example"}) {
    const auto settings = ReadEnvironment({host, "TACIT_PORT=tcp://10.96.0.7:8980"});
    EXPECT_FALSE(settings) << host;
  }
}

TEST(Environment, AListMayHaveCommas) {
  const auto hosts = [](const std::string& value) {
    const test::ScopedVariable variable("TACIT_SERVE_HOSTS", value);
    const Result<Config> config = Parse(kSample, "c.yaml", {});
    return config ? config->serve.hosts : std::vector<std::string>{config.error().message};
  };
  using testing::ElementsAre;
  EXPECT_THAT(hosts("a"), ElementsAre("a"));
  EXPECT_THAT(hosts("a,.b, c"), ElementsAre("a", ".b", "c"));
  EXPECT_THAT(hosts("[a, .b]"), ElementsAre("a", ".b"));
  EXPECT_THAT(hosts("a,,b"), ElementsAre("environment TACIT_SERVE_HOSTS: serve.hosts[1]: is empty "
                                         "or holds a zero byte"));
  EXPECT_THAT(hosts("a,"), ElementsAre(HasSubstr("serve.hosts[1]: is empty")));
  const test::ScopedVariable hidden("TACIT_LEARNERS_0_MODEL_HIDDEN", "8, 4");
  const test::ScopedVariable paths("TACIT_STORE_PATHS", R"(["/a,b", /c])");
  const Result<Config> config = Parse(kSample, "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->learners[0].model.hidden, (std::vector<uint32_t>{8, 4}));
  EXPECT_THAT(config->store.paths, ElementsAre("/a,b", "/c"));
}

TEST(Environment, EveryKeyHasANameOfItsOwnThatLeadsToIt) {
  std::set<std::string> names;
  for (const std::string& pattern : KeyPatterns()) {
    std::string path = pattern, name = EnvironmentName(pattern);
    EXPECT_TRUE(names.insert(name).second) << name;
    if (const size_t at = path.find('#'); at != std::string::npos) {
      path.replace(at, 1, "0");
      name.replace(name.find('#'), 1, "0");
    }
    // A Service of any name in front of it takes no key away.
    std::vector<std::string> variables = {name + "=1"};
    for (size_t end = name.find('_'); end != name.npos; end = name.find('_', end + 1))
      variables.push_back(name.substr(0, end) + "_SERVICE_HOST=10.96.0.7");
    const Result<std::vector<Setting>> settings = ReadEnvironment(variables);
    ASSERT_TRUE(settings) << settings.error().message;
    ASSERT_EQ(settings->size(), 1u) << name;
    EXPECT_EQ(settings->at(0).path, path);
  }
  EXPECT_GT(names.size(), 40u);
}

// Every key that can be named is one that is read: none is refused as unknown.
TEST(Environment, EveryKeyIsRead) {
  for (std::string path : KeyPatterns()) {
    if (const size_t at = path.find('#'); at != std::string::npos) path.replace(at, 1, "0");
    EXPECT_THAT(ErrorOf({path + "=@"}), testing::Not(HasSubstr("unknown key"))) << path;
  }
}

}  // namespace
}  // namespace tacit::config
