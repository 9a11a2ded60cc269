// The keys that a running daemon takes over from its file, and those that stay.
#include "config/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "config/lister.h"
#include "sample.h"

namespace tacit::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Config Read(const std::vector<std::string>& overrides = {}, std::string_view yaml = kSample) {
  auto config = Parse(yaml, "c.yaml", overrides, LogFiles::kUnread);
  EXPECT_TRUE(config) << (config ? "" : config.error().message);
  return config ? *config : Config();
}

std::vector<std::string> KeysOf(const std::vector<Change>& changes) {
  std::vector<std::string> keys;
  for (const Change& change : changes) keys.push_back(change.key);
  return keys;
}

// A value that differs from the default, for each key that is taken.
const std::vector<std::string> kTakenNow = {
    "store.on_failure=exit",
    "store.checkpoints.every=1h",
    "store.checkpoints.keep=7",
    "serve.drain_ms=5000",
    "serve.access_log=true",
    "store.checkpoints.kinds=[release]",
    "serve.callers=/b",
    "serve.tls.certificate=/b",
    "serve.tls.key=/b",
    "serve.tls.client_ca=/b",
    "serve.rates.query=9",
    "serve.rates.user=8",
    "serve.rates.operator=7",
    "log.level=debug",
    "about.name=n",
    "about.curators=[c]",
    "about.description=d",
    "about.intended_use=u",
    "about.region=r",
    "about.sector=Finance",
    "about.contact=a",
    "about.epsilon_reason=e",
    "about.retention=t",
};

TEST(ChangesTest, EveryKeyHasAReasonToStay) {
  for (const Row& row : RowsOf(Read()))
    if (row.is_key() && row.reload == AtReload::kStays) {
      EXPECT_NE(WhyItStays(row.path), "") << row.path;
    }
  EXPECT_EQ(WhyItStays("logs.level"), "");
}

TEST(ChangesTest, EachKeyThatIsTakenIsCopiedAndNoOther) {
  std::set<std::string> seen, taken;
  const std::vector<std::string> files = {"serve.callers=/a", "serve.tls.certificate=/a",
                                          "serve.tls.key=/a"};
  const Config before = Read(files);
  for (const std::string& text : kTakenNow) {
    Config running = before;
    std::vector<std::string> overrides = files;
    overrides.push_back(text);
    const Config now = Read(overrides);
    const std::string key = text.substr(0, text.find('='));
    const auto changes = ChangesOf(running, now);
    EXPECT_THAT(KeysOf(changes), ElementsAre(key));
    EXPECT_EQ(changes.at(0).reload, AtReload::kTaken) << key;
    TakeReloaded(now, &running);
    EXPECT_THAT(KeysOf(ChangesOf(running, now)), IsEmpty()) << key;
    EXPECT_EQ(Dump(running), Dump(now));
    seen.insert(key);
  }
  for (const Row& row : RowsOf(before))
    if (row.reload == AtReload::kTaken) taken.insert(row.path);
  EXPECT_EQ(seen, taken);
}

// Listeners have TLS or not, and ask for tokens or not, as they were made.
TEST(ChangesTest, WhatIsTurnedOnOrOffStays) {
  const Config with = Read({"serve.callers=/a", "serve.tls.certificate=/a", "serve.tls.key=/a"});
  for (const bool on : {true, false}) {
    Config running = on ? Read() : with;
    const Config now = on ? with : Read();
    TakeReloaded(now, &running);
    EXPECT_THAT(KeysOf(ChangesOf(running, now)),
                ElementsAre("serve.tls.certificate", "serve.tls.key", "serve.callers"));
  }
}

TEST(ChangesTest, WhatStaysIsNamedAndNotCopied) {
  Config running = Read();
  const Config now = Read({"learners.0.privacy.epsilon=9", "memory.total_bytes=1GiB",
                           "store.path=/tmp/tacit/other", "log.level=debug"});
  const auto changes = ChangesOf(running, now);
  // Paths that follow from store.path go with it.
  EXPECT_THAT(KeysOf(changes), ElementsAre("learners.0.privacy.epsilon", "store.path",
                                           "store.witness", "store.checkpoints.path",
                                           "memory.total_bytes", "log.level", "dead_letters.path"));
  EXPECT_EQ(changes[0].before, "8");
  EXPECT_EQ(changes[0].now, "9");
  const std::string path = running.store.path;
  TakeReloaded(now, &running);
  EXPECT_EQ(running.learners[0].privacy.epsilon, 8);
  EXPECT_EQ(running.store.path, path);
  for (const auto& change : ChangesOf(running, now))
    EXPECT_EQ(change.reload, AtReload::kStays) << change.key;
}

TEST(ChangesTest, ALearnerMoreOrLessIsAChange) {
  const Config one = Read();
  Config two = one;
  two.learners.push_back(one.learners[0]);
  two.learners[1].id = "late";
  const auto more = ChangesOf(one, two), less = ChangesOf(two, one);
  ASSERT_THAT(KeysOf(more), testing::Contains("learners.1.id"));
  EXPECT_EQ(KeysOf(more), KeysOf(less));
  EXPECT_EQ(more[0].before, "nothing");
  EXPECT_EQ(less[0].now, "nothing");
}

TEST(ChangesTest, AListThatWasEmptyIsOneChange) {
  const auto changes = ChangesOf(Read(), Read({"store.paths=[/a, /b]"}));
  EXPECT_THAT(KeysOf(changes), ElementsAre("store.paths"));
  EXPECT_EQ(changes.at(0).before, "nothing");
  EXPECT_EQ(changes.at(0).now, "[/a, /b]");
}

TEST(ChangesTest, AChangedSecretIsNamedAndNotShown) {
  const auto with = [](const std::string& password) {
    return Read({"source.kind=kafka", "source.topic=clicks", "kafka.bootstrap.servers=here:9092",
                 "kafka.group.id=tacit", "kafka.sasl.password=" + password});
  };
  const Config before = with("open-sesame-1"), now = with("open-sesame-2");
  const auto changes = ChangesOf(before, now);
  ASSERT_THAT(KeysOf(changes), ElementsAre("kafka.sasl.password"));
  EXPECT_THAT(changes[0].before + changes[0].now, Not(HasSubstr("sesame")));
}

}  // namespace
}  // namespace tacit::config
