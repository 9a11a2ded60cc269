// `tacit inspect --private` by the real programs: it is charged before it tells anything, and the
// daemon that learns by its proposal goes on with that account.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "store/store.h"
#include "support/process.h"

namespace tacit {
namespace {

using test::Ended;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class PrivateE2e : public testing::Test {
 protected:
  PrivateE2e() {
    std::mt19937_64 random(3);
    std::string text;
    for (int i = 0; i < 12'000; ++i) {
      const uint64_t shelf = random() % 9;
      text += fmt::format("{{\"click\":{},\"colour\":\"secret{}\",\"size\":{}}}\n",
                          random() % 10 < (shelf < 4 ? 6 : 1) ? 1 : 0, shelf, random() % 50);
    }
    test::WriteFile(dir_ / "log.jsonl", text + "{\"anna\":1}\n");
  }
  std::vector<std::string> Command(const std::string& epsilon) const {
    return {"inspect",   dir_ / "log.jsonl",
            "--private", epsilon,
            "--store",   dir_ / "data/store",
            "--format",  "json",
            "--unit",    "event",
            "--delta",   "1e-6",
            "--epsilon", "4",
            "--mode",    "once",
            "--output",  dir_ / "clicks.yaml"};
  }
  static Ended Tacit(std::vector<std::string> words) {
    words.insert(words.begin(), TACIT);
    return test::Run(words);
  }
  privacy::LedgerTotal Total(size_t entries) const {
    const auto read =
        store::OpenReadOnly(dir_ / "data/store", dir_ / "data-witness/store.witness", {});
    EXPECT_TRUE(read) << read.error().message;
    if (!read) return {};
    EXPECT_EQ(read->entries.size(), entries);
    EXPECT_TRUE(privacy::VerifyChain(read->entries));
    return read->snapshot->total();
  }

  const test::TempDir dir_;
};

TEST_F(PrivateE2e, TheStoreThatLearnsGoesOnWithTheAccount) {
  const Ended one = Tacit(Command("1"));
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_TRUE(one.out.starts_with("tacit inspect --private tells noised counts alone")) << one.out;
  EXPECT_THAT(one.out, HasSubstr("epsilon 1 at delta 1e-06 per event, charged to"));
  EXPECT_THAT(one.out, HasSubstr("\nlabel      '/click', GUESSED: by its name; it is 0 or 1"));
  EXPECT_THAT(one.out,
              HasSubstr("\nGUESSED: the label. Right? This says so, and is charged again; "));
  EXPECT_TRUE(one.out.ends_with("clicks.yaml --label /click\n")) << one.out;
  EXPECT_THAT(one.out, HasSubstr("\nleaks      not looked for: leave out fields"));
  const std::string yaml = test::ReadFile(dir_ / "clicks.yaml");
  for (const std::string& text : {one.out, yaml}) {
    EXPECT_THAT(text, Not(HasSubstr("secret"))) << "no value of a record is told";
    EXPECT_THAT(text, Not(HasSubstr("anna"))) << "nor a field of one record";
    EXPECT_THAT(text, Not(HasSubstr("RAW")));
  }
  EXPECT_THAT(yaml, HasSubstr("colour"));
  EXPECT_NEAR(Total(1).epsilon, 1, 1e-6);

  EXPECT_EQ(Tacit(Command("1")).exit_code, 2) << "its proposal would be written over the first one";
  EXPECT_NEAR(Total(1).epsilon, 1, 1e-6);
  std::filesystem::remove(dir_ / "clicks.yaml");
  const Ended two = Tacit(Command("1"));
  ASSERT_EQ(two.exit_code, 0) << two.err;
  const double twice = Total(2).epsilon;
  EXPECT_GT(twice, 1.3) << "the second composes with the first";
  EXPECT_LT(twice, 2);

  const Ended learnt = test::Run({TACITD, "--config", dir_ / "clicks.yaml", "--until-end", "--set",
                                  "serve.listen=unix:" + (dir_ / "socket"), "--set",
                                  "training.idle_priority=false"});
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  const double all = Total(3).epsilon;
  EXPECT_GT(all, 4) << "the learner's 4 and the inspections'";
  EXPECT_LT(all, 4 + twice);
  const Ended list = Tacit({"ledger", "list", "--store", dir_ / "data/store"});
  EXPECT_THAT(list.out, HasSubstr("step of inspection"));
  const Ended report = Tacit({"privacy", "report", "--store", dir_ / "data/store"});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("tacit.inspect.event"));

  std::vector<std::string> other = Command("1");
  other[11] = "1e-7";
  other.back() = dir_ / "other.yaml";
  const Ended refused = Tacit(other);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("delta was 1e-06 and is 1e-07"));
  EXPECT_THAT(refused.out, IsEmpty()) << "nothing is told that is not charged";
}

TEST_F(PrivateE2e, AnEpsilonThatNoLearnerCanPromiseIsRefusedBeforeTheCharge) {
  for (const char* epsilon : {"1e-6", "1e6"}) {  // too much noise, and too little
    std::vector<std::string> words = Command("1");
    words[11] = "1e-12";  // delta
    words[13] = epsilon;
    const Ended refused = Tacit(words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("calls for a noise multiplier"));
    EXPECT_FALSE(std::filesystem::exists(dir_ / "data"));
  }
}

TEST_F(PrivateE2e, AKillBehindTheChargeLeavesItAndTellsNothing) {
  std::vector<std::string> command = Command("1");
  command.insert(command.begin(),
                 {"/usr/bin/env", "TACIT_TEST_CRASH_AT=inspect.charged:1", TACIT_CRASH});
  const Ended killed = test::Run(command);
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_THAT(killed.out, IsEmpty());
  EXPECT_EQ(test::ReadFile(dir_ / "clicks.yaml"), "");
  EXPECT_NEAR(Total(1).epsilon, 1, 1e-6);
  // Killed before its charge is on disk, it has told nothing either; the next one is charged.
  command[1] = "TACIT_TEST_CRASH_AT=commit.begin:1";
  const Ended before = test::Run(command);
  EXPECT_EQ(before.signal, SIGKILL);
  EXPECT_THAT(before.out, IsEmpty());
  const Ended whole = Tacit(Command("1"));
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_GT(Total(2).epsilon, 1.3);
}

TEST_F(PrivateE2e, WhatAPersonHasToSayIsAskedFor) {
  const auto without = [&](const std::string& option) {
    std::vector<std::string> words = Command("1");
    const auto at = std::ranges::find(words, option);
    words.erase(at, at + 2);
    return Tacit(words);
  };
  for (const char* option : {"--store", "--unit", "--delta", "--format"}) {
    const Ended refused = without(option);
    EXPECT_EQ(refused.exit_code, 2) << option;
    EXPECT_THAT(refused.err, HasSubstr(option));
    EXPECT_THAT(refused.out, IsEmpty());
  }
  std::vector<std::string> users = Command("1");
  users[9] = "user";
  EXPECT_THAT(Tacit(users).err, HasSubstr("--user FIELD is missing"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "data")) << "nothing was charged";
}

// Changes of the command by which nothing could be shown.
TEST_F(PrivateE2e, WhatCannotBeDoneIsRefusedBeforeItIsPaid) {
  std::filesystem::create_symlink(dir_ / "log.jsonl", dir_ / "again.jsonl");
  std::string many = "/f0";
  for (int i = 1; i < 4096; ++i) many += fmt::format(",/f{}", i);
  const std::vector<std::pair<std::vector<std::string>, std::string>> impossible = {
      {{dir_ / "missing.jsonl"}, "missing.jsonl"},
      {{dir_ / "again.jsonl"}, "is the same file as"},
      {{dir_.path()}, dir_.path()},
      {{"--items", dir_ / "no-items"}, "no-items"},
      {{"--fields", many}, "--fields: 4096 are too many"}};
  for (const auto& [words, why] : impossible) {
    std::vector<std::string> command = Command("1");
    command.insert(command.begin() + 2, words.begin(), words.end());
    const Ended refused = Tacit(command);
    EXPECT_NE(refused.exit_code, 0) << why;
    EXPECT_NE(refused.exit_code, -1) << why;
    EXPECT_THAT(refused.err, HasSubstr(why));
    EXPECT_THAT(refused.out, IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(dir_ / "data")) << "nothing was charged: " << why;
  }
}

// Noise is planned for as many records of a user as the option allows.
TEST_F(PrivateE2e, TheMostRecordsOfAUserAreShown) {
  std::vector<std::string> users = Command("1");
  users[9] = "user";
  users.insert(users.end(), {"--user", "colour", "--user-records", "4096"});
  const Ended shown = Tacit(users);
  EXPECT_NE(shown.exit_code, -1) << shown.signal;
  EXPECT_THAT(shown.out, HasSubstr("epsilon 1 at delta 1e-06 per user, of whom the first 4,096"));
  EXPECT_NEAR(Total(1).epsilon, 1, 1e-6);
}

// Records without a label cannot be learnt from with unit event, and that is seen by looking alone.
TEST_F(PrivateE2e, WhatWasPaidForIsShownWhereNothingCanBeProposed) {
  std::string meetings;
  for (int i = 0; i < 2000; ++i)
    meetings += fmt::format("{{\"who\":\"u{}\",\"film\":\"f{}\"}}\n", i % 90, i % 37);
  test::WriteFile(dir_ / "log.jsonl", meetings);
  std::vector<std::string> words = Command("100");
  words.insert(words.end(), {"--user", "who", "--item", "film"});
  const Ended shown = Tacit(words);
  EXPECT_EQ(shown.exit_code, 2);
  EXPECT_THAT(shown.err, HasSubstr("their unit is the user"));
  EXPECT_THAT(shown.out, HasSubstr("epsilon 100 at delta 1e-06 per event"));
  EXPECT_NEAR(Total(1).epsilon, 100, 1e-4);
}

}  // namespace
}  // namespace tacit
