// Records that come through a pipe: `source.files: ["-"]`.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <sstream>

#include "base/files/unique_fd.h"
#include "http/client.h"
#include "support/json.h"
#include "support/small_run.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
using test::Ended;
using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kRows = 8000, kSteps = 32;
const std::string kFromPipe = R"(source.files=["-"])";

class PipeTest : public testing::Test {
 protected:
  PipeTest() {
    test::WriteSmallLog(dir_, 1, kRows, 1);
    text_ = test::ReadFile(dir_ / "day-0.tsv");
  }

  std::vector<std::string> Daemon(std::vector<std::string> more = {}) {
    std::vector<std::string> command{TACITD, "--config", run_.WriteConfig(dir_), "--set",
                                     kFromPipe};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  // A shell's line in front of the daemon: "cat FILE |".
  Ended Learn(const std::string& before, std::vector<std::string> more = {}) {
    std::vector<std::string> command{"/bin/bash", "-c", before + " \"$0\" \"$@\""};
    for (std::string& word : Daemon(std::move(more))) command.push_back(std::move(word));
    return test::Run(command);
  }
  std::string Cat(const std::string& file) const { return "cat " + (dir_ / file) + " |"; }

  uint64_t Steps() {
    const Ended shown =
        test::Run({TACIT, "ledger", "show", "--store", dir_ / run_.store, "--json"});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    const auto ledger = test::ParseJson(shown.out);
    return ledger.at("learners").at(0).at("steps").to_number<uint64_t>();
  }
  std::string Letters() { return test::ReadFile(dir_ / (run_.store + ".dead-letters.jsonl")); }

  const test::TempDir dir_;
  test::SmallRun run_;
  std::string text_;
};

TEST_F(PipeTest, PackedOrNotItIsLearntFromToItsEnd) {
  std::string zstd(ZSTD_compressBound(text_.size()), '\0');
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), text_.data(), text_.size(), 1));
  test::WriteFile(dir_ / "zstd", zstd);
  ASSERT_EQ(test::Run({"/bin/gzip", "-1k", dir_ / "day-0.tsv"}).exit_code, 0);
  for (const char* const file : {"day-0.tsv", "day-0.tsv.gz", "zstd"}) {
    run_.store = fmt::format("store-of-{}", file);
    const Ended ended = Learn(Cat(file));
    EXPECT_EQ(ended.exit_code, 0) << file << ": " << ended.err;
    EXPECT_EQ(Steps(), kSteps) << file;
    EXPECT_EQ(Letters(), "") << file;
    // The same bytes once more: all of them are skipped.
    EXPECT_EQ(Learn(Cat(file)).exit_code, 0);
    EXPECT_EQ(Steps(), kSteps) << file;
  }
}

TEST_F(PipeTest, OtherOrMoreBytesAreRefusedAndNothingIsCharged) {
  ASSERT_EQ(Learn(Cat("day-0.tsv")).exit_code, 0);
  const Ended other = Learn("tail -n +2 " + (dir_ / "day-0.tsv") + " |");
  EXPECT_EQ(other.exit_code, 3) << other.err;
  EXPECT_THAT(other.err, HasSubstr("standard input: has changed since it was read"));
  const Ended more = Learn(fmt::format("cat {0} {0} |", dir_ / "day-0.tsv"));
  EXPECT_EQ(more.exit_code, 3) << more.err;
  EXPECT_THAT(more.err, HasSubstr(fmt::format("has more than {} records", kRows)));
  const Ended fewer = Learn("head -n 4000 " + (dir_ / "day-0.tsv") + " |");
  EXPECT_EQ(fewer.exit_code, 3) << fewer.err;
  EXPECT_EQ(Steps(), kSteps);
}

TEST_F(PipeTest, APackedStreamThatIsCutEndsWithOneAndTheWholeOneIsGoneOnFrom) {
  ASSERT_EQ(test::Run({"/bin/gzip", "-1k", dir_ / "day-0.tsv"}).exit_code, 0);
  const uint64_t half = fs::file_size(dir_ / "day-0.tsv.gz") / 2;
  const Ended cut = Learn(fmt::format("head -c {} {} |", half, dir_ / "day-0.tsv.gz"));
  EXPECT_EQ(cut.exit_code, 1) << cut.err;
  EXPECT_THAT(cut.err,
              HasSubstr(fmt::format("truncated gzip data at byte {} of standard input", half)));
  const uint64_t before = Steps();
  EXPECT_GE(before, kSteps / 4);
  EXPECT_LT(before, kSteps);
  const Ended whole = Learn(Cat("day-0.tsv.gz"));
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(Steps(), kSteps);
  EXPECT_EQ(Letters(), "");
}

// A pipe whose other end the test holds.
class HeldPipe {
 public:
  HeldPipe(const test::TempDir& dir, const std::vector<std::string>& daemon) {
    const std::string path = dir / "pipe";
    fs::remove(path);
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    std::vector<std::string> command{"/bin/bash", "-c", "exec \"$0\" \"$@\" <" + path};
    command.insert(command.end(), daemon.begin(), daemon.end());
    process_.emplace(command);
    end_ = UniqueFd(::open(path.c_str(), O_RDWR | O_NONBLOCK));
  }
  void Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(end_.get(), bytes.data(), bytes.size());
      if (done < 0 && errno == EAGAIN) {
        ASSERT_FALSE(process_->WaitFor(std::chrono::milliseconds(5)))
            << "it ended: " << process_->Err();
        continue;
      }
      ASSERT_GT(done, 0);
      bytes.remove_prefix(static_cast<size_t>(done));
    }
  }
  void Close() { end_ = UniqueFd(); }
  test::Process& process() { return *process_; }

 private:
  std::optional<test::Process> process_;
  UniqueFd end_;
};

TEST_F(PipeTest, ItStopsWhileItWaitsAndGoesOnAfterAKill) {
  run_.listen = "unix:" + (dir_ / "socket");
  const auto steps = [&]() -> uint64_t {
    const auto answer = http::Fetch(run_.listen + ":/v1/privacy", "GET", "", test::kPatience);
    if (!answer || answer->status != 200) return 0;
    const auto privacy = test::ParseJson(answer->body);
    const auto& learners = privacy.at("learners").as_array();
    return learners.empty() ? 0 : learners[0].at("steps").to_number<uint64_t>();
  };
  const std::string_view part = std::string_view(text_).substr(0, text_.size() * 3 / 4);
  ASSERT_GT(part.size(), size_t{1} << 20) << "reading begins with the first MiB";
  for (const int signal : {SIGTERM, SIGKILL}) {
    HeldPipe pipe(dir_, Daemon());
    pipe.Write(part);
    ASSERT_TRUE(test::Eventually("most is learnt", [&] { return steps() >= kSteps / 2; }))
        << pipe.process().Err();
    pipe.process().Signal(signal);
    const auto ended = pipe.process().Wait();
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->exit_code, signal == SIGTERM ? 1 : -1) << ended->err;
    EXPECT_LT(Steps(), kSteps);
  }
  HeldPipe pipe(dir_, Daemon());
  pipe.Write(text_);
  pipe.Close();
  const auto ended = pipe.process().Wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
  EXPECT_EQ(Steps(), kSteps);
  EXPECT_EQ(Letters(), "");
}

TEST_F(PipeTest, TheLookAtTheFirstRecordsRefusesWhatCannotBeRead) {
  const Ended refused = Learn("yes not,a,record | head -n 5000 |");
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("nothing is charged"));
  EXPECT_EQ(Letters(), "");
}

TEST_F(PipeTest, AMisuseIsRefusedByItsKey) {
  const auto refusal = [&](std::vector<std::string> sets) {
    std::vector<std::string> more;
    for (std::string& set : sets) {
      more.emplace_back("--set");
      more.push_back(std::move(set));
    }
    const Ended ended = Learn(Cat("day-0.tsv"), more);
    EXPECT_EQ(ended.exit_code, 2) << ended.err;
    return ended.err;
  };
  EXPECT_THAT(refusal({fmt::format(R"(source.files=["-","{}"])", dir_ / "day-0.tsv")}),
              AllOf(HasSubstr("source.files"), HasSubstr("stands alone")));
  EXPECT_THAT(refusal({"source.passes=2"}), HasSubstr("source.passes"));
  EXPECT_THAT(refusal({"source.mark=" + (dir_ / "mark")}), HasSubstr("source.mark"));
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY));
  ASSERT_TRUE(::grantpt(terminal.get()) == 0 && ::unlockpt(terminal.get()) == 0);
  const Ended asked = Learn(fmt::format("<{}", ::ptsname(terminal.get())));
  EXPECT_EQ(asked.exit_code, 2) << asked.err;
  EXPECT_THAT(asked.err, HasSubstr("standard input is a terminal"));
}

// inspect proposes the same from a pipe as from a file, also where it looks at the first records.
TEST_F(PipeTest, InspectProposesTheSameAsOfAFile) {
  const auto propose = [&](const std::string& before, const std::string& file,
                           const std::string& rows) {
    const Ended ended =
        test::Run({"/bin/bash", "-c", before + " \"$0\" \"$@\"", TACIT, "inspect", file, "--rows",
                   rows, "--unit", "event", "--epsilon", "8", "--delta", "1e-6"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    std::string yaml;  // without comments, which name what was looked at
    std::istringstream lines(ended.out);
    for (std::string line; std::getline(lines, line);)
      if (const size_t end = line.find('#'); end != 0) yaml += line.substr(0, end) + '\n';
    const size_t at = yaml.find('"' + file + '"');
    EXPECT_NE(at, std::string::npos) << ended.out;
    return std::pair(yaml.replace(at, file.size() + 2, "FILE"), ended.out);
  };
  const std::string path = dir_ / "day-0.tsv";
  for (const char* const rows : {"8000", "3000"}) {
    const auto [from_file, told_of_file] = propose("", path, rows);
    const auto [from_pipe, told_of_pipe] = propose(Cat("day-0.tsv"), "-", rows);
    EXPECT_EQ(from_pipe, from_file);
    EXPECT_THAT(told_of_pipe, HasSubstr("standard input"));
  }
}

}  // namespace
}  // namespace tacit
