// Packed log files that are still being written, or that were not copied to their end: the daemon
// learns what is there, says which file is cut and where, and goes on from there.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>

#include "service.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
using test::Ended;
using test::Service;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kRows = 2000;  // of each of three days

std::string Gzip(const std::string& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb1");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return test::ReadFile(path);
}

std::string Zstd(const std::string&, const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  return packed;
}

class CutLogTest : public testing::Test {
 protected:
  CutLogTest() {
    test::WriteSmallLog(dir_, 3, kRows, 1);
    run_.files = "day-*";
  }

  // Puts the first bytes of the packed second day, at most that many, in its place.
  void CutSecondDay(size_t bytes) {
    fs::remove(dir_ / "day-1.tsv");
    test::WriteFile(day_, packed_.substr(0, bytes));
  }
  void PackSecondDay(const char* name,
                     std::string (*pack)(const std::string&, const std::string&)) {
    day_ = dir_ / name;
    packed_ = pack(dir_ / "packed", test::ReadFile(dir_ / "day-1.tsv"));
    fs::remove(dir_ / "packed");
  }

  Ended Learn(std::vector<std::string> more = {}) {
    std::vector<std::string> command{TACITD, "--config", run_.WriteConfig(dir_), "--until-end"};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }

  // Steps charged in the store.
  uint64_t Steps() {
    const Ended shown =
        test::Run({TACIT, "ledger", "show", "--store", dir_ / run_.store, "--json"});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    const auto ledger = test::ParseJson(shown.out);
    return ledger.at("learners").at(0).at("steps").to_number<uint64_t>();
  }
  std::string Letters() { return test::ReadFile(dir_ / (run_.store + ".dead-letters.jsonl")); }

  std::string CutAt(size_t bytes) const {
    return fmt::format(" at byte {} of {}: the file is not whole", bytes, day_);
  }

  const test::TempDir dir_;
  test::SmallRun run_;
  std::string day_, packed_;
};

TEST_F(CutLogTest, TheEndIsNotReachedAndTheCompletedFileIsGoneOnFrom) {
  run_.store = "whole";
  ASSERT_EQ(Learn().exit_code, 0);
  const uint64_t all = Steps();
  ASSERT_EQ(all, 3 * 8u);
  const std::string text = test::ReadFile(dir_ / "day-1.tsv");
  for (const bool zstd : {false, true}) {
    test::WriteFile(dir_ / "day-1.tsv", text);
    run_.store = zstd ? "zstd" : "gzip";
    PackSecondDay("day-1.tsv.packed", zstd ? Zstd : Gzip);
    // The last eight bytes of a gzip file are its checksum and length.
    for (const size_t cut : {packed_.size() / 2, packed_.size() - 4}) {
      CutSecondDay(cut);
      const Ended ended = Learn();
      EXPECT_EQ(ended.exit_code, 1) << ended.err;
      EXPECT_THAT(ended.err, AllOf(HasSubstr("truncated "), HasSubstr(CutAt(cut))));
      EXPECT_THAT(ended.out, Not(HasSubstr("day-2.tsv")));
      EXPECT_GE(Steps(), 8u);
      EXPECT_LT(Steps(), 16u) << "the second day is not over";
    }
    EXPECT_GE(Steps(), zstd ? 12u : 15u) << "its whole lines are learnt";
    CutSecondDay(packed_.size());
    const Ended ended = Learn();
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("day-2.tsv"));
    EXPECT_EQ(Steps(), all);
    EXPECT_EQ(Letters(), "");
    fs::remove(day_);
  }
}

TEST_F(CutLogTest, ADaemonThatStaysSaysWhereItWaitsAndGoesOnByItself) {
  PackSecondDay("day-1.tsv.gz", Gzip);
  const size_t cut = packed_.size() / 2;
  CutSecondDay(cut);
  Service service(dir_, run_, {"--set", "serve.operator_listen=unix:" + (dir_ / "operators")});
  const auto ready = [&] {
    const auto answer =
        http::Fetch("unix:" + (dir_ / "operators") + ":/readyz", "GET", "", test::kPatience);
    return answer ? answer->body : answer.error().message;
  };
  ASSERT_TRUE(service.WaitForWord("truncated gzip data"));
  ASSERT_TRUE(service.WaitForSteps(8));
  EXPECT_THAT(ready(), AllOf(HasSubstr("ready, degraded"), HasSubstr(CutAt(cut))));
  EXPECT_EQ(service.Ask("GET", "/readyz")->body, "ready\n") << "a file's name is the operator's";
  EXPECT_THAT(service.process().Err(), HasSubstr(CutAt(cut)));
  std::ofstream(day_, std::ios::app | std::ios::binary) << packed_.substr(cut);
  ASSERT_TRUE(service.WaitForSteps(3 * 8));
  EXPECT_TRUE(service.Until("it is ready", [&] { return ready() == "ready\n"; })) << ready();
  const auto ended = service.Stop();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
  EXPECT_EQ(Letters(), "");
}

TEST_F(CutLogTest, ADaemonThatWaitsStopsAtOnceWhenAsked) {
  PackSecondDay("day-1.tsv.gz", Gzip);
  CutSecondDay(packed_.size() / 2);
  Service service(dir_, run_);
  ASSERT_TRUE(service.WaitForWord("truncated gzip data"));
  const auto ended = service.Stop();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
}

// A period is a file: none of its steps are taken before the file is whole.
TEST_F(CutLogTest, ACutFileClosesNoPeriod) {
  run_.participation =
      "{mode: poisson, batch: 200, sampling_rate: 0.1, steps_per_period: 10, period_files: 1}";
  PackSecondDay("day-1.tsv.gz", Gzip);
  CutSecondDay(packed_.size() - 1);
  EXPECT_EQ(Learn().exit_code, 1);
  EXPECT_EQ(Steps(), 10u);
  CutSecondDay(packed_.size());
  EXPECT_EQ(Learn().exit_code, 0);
  EXPECT_EQ(Steps(), 30u);
}

TEST_F(CutLogTest, ACutThatTheOperatorPassesIsADeadLetterAndTheRestIsLearnt) {
  PackSecondDay("day-1.tsv.gz", Gzip);
  CutSecondDay(packed_.size() / 2);
  const Ended refused = Learn({"--past-cut", dir_ / "day-2.tsv"});
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("tacitd --past-cut " + day_));
  const Ended unknown = Learn({"--past-cut", "day-1.tsv.gz"});
  EXPECT_EQ(unknown.exit_code, 2) << unknown.err;
  EXPECT_THAT(unknown.err, HasSubstr("--past-cut day-1.tsv.gz: is none of the log's files"));
  const Ended passed = Learn({"--past-cut", day_});
  EXPECT_EQ(passed.exit_code, 0) << passed.err;
  EXPECT_THAT(passed.out, HasSubstr("day-2.tsv"));
  const std::string letters = Letters();
  EXPECT_EQ(std::ranges::count(letters, '\n'), 1) << letters;
  EXPECT_THAT(letters,
              HasSubstr(fmt::format("truncated gzip data at byte {}", packed_.size() / 2)));
  EXPECT_EQ(Learn().exit_code, 0) << "its end is known now";
}

}  // namespace
}  // namespace tacit
