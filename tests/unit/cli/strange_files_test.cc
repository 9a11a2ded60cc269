// Files that are cut short, marked, pipes, or there already: commands say which file it is, and
// leave nothing half done.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>

#include "base/files/byte_order_mark.h"
#include "support/files_below.h"
#include "support/small_run.h"
#include "system/e2e/service.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
using test::Ended;
using test::Service;
using test::SmallRun;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class StrangeFilesTest : public testing::Test {
 protected:
  static Ended Tacit(std::vector<std::string> words) {
    words.insert(words.begin(), TACIT);
    return test::Run(words);
  }
  // Runs it where no file may be longer than this many KiB, as on a disk without room.
  static Ended TacitWithRoom(int kib, const std::string& words) {
    return test::Run(
        {"/bin/bash", "-c", fmt::format("ulimit -c 0 -f {}; exec {} {}", kib, TACIT, words)});
  }
  std::string Write(const std::string& name, const std::string& text) const {
    test::WriteFile(dir_ / name, text);
    return dir_ / name;
  }
  // The first half of the text's bytes as gzip has them.
  std::string WriteHalfOfGzip(const std::string& name, const std::string& text) const {
    const std::string path = dir_ / name;
    gzFile file = gzopen(path.c_str(), "wb1");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    fs::resize_file(path, fs::file_size(path) / 2);
    return path;
  }
  // A log of one day, and a store that has learnt from it.
  std::string Learn() const {
    test::WriteSmallLog(dir_, 1, 600, 1);
    const std::string config = SmallRun().WriteConfig(dir_);
    const Ended ended = test::Run({TACITD, "--config", config, "--until-end"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return config;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const fs::path& file : test::FilesBelow(dir_.path()))
      names.push_back(file.filename().string());
    return names;
  }

  const test::TempDir dir_;
};

// An experiment on a log that ends in the middle would measure a part and say nothing.
TEST_F(StrangeFilesTest, AnExperimentOnAPartOfALogIsRefused) {
  test::WriteSmallLog(dir_, 2, 1500, 4);
  const std::string config = SmallRun().WriteConfig(dir_), day = test::ReadFile(dir_ / "day-0.tsv");
  const auto evaluate = [&](const std::string& file) {
    return Tacit({"evaluate", "ctr", "--config", config, "--data", dir_ / "day-1.tsv", file});
  };
  const std::string cut = WriteHalfOfGzip("cut.tsv.gz", day);
  const Ended truncated = evaluate(cut);
  EXPECT_EQ(truncated.exit_code, 1) << truncated.err;
  EXPECT_THAT(truncated.err, HasSubstr(fmt::format("truncated gzip data at byte {} of {}",
                                                   fs::file_size(cut), cut)));
  EXPECT_EQ(truncated.out, "");

  const size_t second = day.find('\n') + 1;
  const std::string big = Write(
      "big.tsv", day.substr(0, second) + std::string(30 << 20, 'x') + "\n" + day.substr(second));
  const Ended too_long = evaluate(big);
  EXPECT_EQ(too_long.exit_code, 2) << too_long.err;
  EXPECT_THAT(too_long.err, HasSubstr(big + ":2: the record is longer than 1048576 bytes"));
  EXPECT_EQ(too_long.out, "");
}

// A record that is bad by itself is left out, as by the daemon, and is told.
TEST_F(StrangeFilesTest, AnExperimentTellsOfRecordsThatItCouldNotRead) {
  test::WriteSmallLog(dir_, 1, 1500, 4);
  const std::string file =
      Write("day.tsv", test::ReadFile(dir_ / "day-0.tsv") + "maybe\t1\nno\t2\n");
  const Ended ended = Tacit(
      {"evaluate", "ctr", "--config", SmallRun().WriteConfig(dir_), "--data", file, "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err,
              HasSubstr("tacit: warning: 2 of 1,502 records could not be read, the first "
                        "at " +
                        file + ":1501: "));
}

TEST_F(StrangeFilesTest, ABadLineThatIsToBeScoredIsNamedByFileAndLine) {
  const std::string config = Learn(), day = test::ReadFile(dir_ / "day-0.tsv");
  std::vector<size_t> ends;
  for (size_t at = day.find('\n'); at != day.npos; at = day.find('\n', at + 1)) ends.push_back(at);
  const std::string bad = Write("bad.tsv", day.substr(0, ends[4] + 1) + "0\tabc\n" + day),
                    cut = WriteHalfOfGzip("cut.tsv.gz", day),
                    big = Write("big.tsv", day.substr(0, ends[1] + 1) + std::string(3 << 20, 'x'));
  SmallRun served;
  served.store = "served";
  Service daemon(dir_, served);
  ASSERT_TRUE(daemon.WaitForSteps(1));
  for (const std::vector<std::string>& whom :
       {std::vector<std::string>{"--checkpoint", dir_ / "store", "--config", config},
        std::vector<std::string>{"--url", daemon.url()}}) {
    const auto score = [&](const std::string& file, const std::string& first,
                           const std::string& count) {
      std::vector<std::string> words = {"query", "score",   "--learner", "ctr",     "--tsv",
                                        file,    "--first", first,       "--count", count};
      words.insert(words.end(), whom.begin(), whom.end());
      return Tacit(words);
    };
    EXPECT_EQ(score(bad, "0", "5").exit_code, 0);
    for (const char* first : {"0", "3"}) {
      const Ended ended = score(bad, first, "10");
      EXPECT_EQ(ended.exit_code, 2) << ended.err;
      EXPECT_THAT(ended.err, HasSubstr(bad + ":6: ")) << whom[0];
    }
    const Ended truncated = score(cut, "0", "600");
    EXPECT_EQ(truncated.exit_code, 1) << truncated.err;
    EXPECT_THAT(truncated.err,
                AllOf(HasSubstr(cut + ":"), HasSubstr("truncated gzip data at byte")));
    const Ended too_long = score(big, "1", "3");
    EXPECT_EQ(too_long.exit_code, 2) << too_long.err;
    EXPECT_THAT(too_long.err, HasSubstr(big + ":3: the record is longer than"));
    const Ended beyond = score(bad, "100000", "1");
    EXPECT_EQ(beyond.exit_code, 2) << beyond.err;
    EXPECT_THAT(beyond.err, HasSubstr(bad + ": "));
    std::vector<std::string> row = {"query", "score", "--learner", "ctr", "--row", "0\tabc"};
    row.insert(row.end(), whom.begin(), whom.end());
    EXPECT_THAT(Tacit(row).err, HasSubstr("tacit: row 1 (a record as the stream has it): "));
  }
}

// Editors put such a mark before a text. A reader finds the same records.
TEST_F(StrangeFilesTest, AByteOrderMarkHidesNoFieldOfTheFirstLine) {
  std::string json, csv = "click,colour,size\n";
  for (int i = 0; i < 2000; ++i) {
    const int click = i % 10 < 3 ? 1 : 0, size = i % 50;
    json += fmt::format("{{\"click\":{},\"colour\":\"c{}\",\"size\":{}}}\n", click, i % 7, size);
    csv += fmt::format("{},c{},{}\n", click, i % 7, size);
  }
  for (const auto& [name, text] : {std::pair("plain.jsonl", json), std::pair("plain.csv", csv)}) {
    const std::string plain = Write(name, text),
                      marked = Write("marked", std::string(kByteOrderMark) + text);
    const Ended usual = Tacit({"inspect", plain, "--json"}),
                found = Tacit({"inspect", marked, "--json"});
    ASSERT_EQ(usual.exit_code, 0) << usual.err;
    EXPECT_EQ(found.exit_code, 0) << found.err;
    std::string same = found.out;
    for (size_t at = same.find(marked); at != same.npos; at = same.find(marked))
      same.replace(at, marked.size(), plain);
    EXPECT_EQ(same, usual.out) << name;
  }
}

TEST_F(StrangeFilesTest, AWitnessThatIsAPipeIsNotWaitedFor) {
  Learn();
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--witness", dir_ / "pipe"},
        std::vector<std::string>{"--anchors", dir_ / "pipe"}}) {
    std::vector<std::string> command = {TACIT, "ledger", "verify", "--store", dir_ / "store"};
    command.insert(command.end(), words.begin(), words.end());
    test::Process process(command);
    const auto ended = process.Wait();
    ASSERT_TRUE(ended) << words[0] << ": it waits";
    EXPECT_EQ(ended->exit_code, 2) << ended->err;
    EXPECT_THAT(ended->err, HasSubstr((dir_ / "pipe") + ": is not a regular file"));
  }
}

// A run that has ended keeps its table, and one that cannot begin says why.
TEST_F(StrangeFilesTest, AFolderWhereAFileIsLookedForEndsNoRun) {
  fs::create_directory(dir_ / "ground-truth.json");
  const std::string config = Learn();
  test::Process process({TACIT, "evaluate", "--config", config}, {"TMPDIR=" + (dir_ / "none")});
  const auto ended = process.Wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 1) << ended->err;
  EXPECT_THAT(ended->err, AllOf(HasSubstr(dir_ / "none"), HasSubstr("TMPDIR")));
}

// A proposal that stands in the file may have been filled in.
TEST_F(StrangeFilesTest, AProposalIsWrittenOverNothing) {
  std::string text;
  for (int i = 0; i < 500; ++i)
    text += fmt::format("{{\"click\":{},\"colour\":\"c{}\"}}\n", i % 3 == 0 ? 1 : 0, i % 7);
  const std::string log = Write("log.jsonl", text), own = Write("own.yaml", "# mine\n");
  const Ended refused = Tacit({"inspect", log, "--output", own});
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr(own + ": is there already"));
  EXPECT_EQ(test::ReadFile(own), "# mine\n");
  // It is refused before anything is charged.
  const Ended unpaid =
      Tacit({"inspect", log, "--private", "1", "--store", dir_ / "data/store", "--format", "json",
             "--unit", "event", "--delta", "1e-6", "--output", own});
  EXPECT_EQ(unpaid.exit_code, 2) << unpaid.err;
  EXPECT_FALSE(fs::exists(dir_ / "data"));

  const Ended written = Tacit({"inspect", log, "--output", dir_ / "new.yaml"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(test::ReadFile(dir_ / "new.yaml"), HasSubstr("colour"));
  EXPECT_EQ(Tacit({"inspect", log, "--output", "/dev/null"}).exit_code, 0);
  const Ended full =
      TacitWithRoom(1, fmt::format("inspect {} --output {}", log, dir_ / "full.yaml"));
  EXPECT_EQ(full.exit_code, 1) << full.err;
  EXPECT_THAT(full.err, HasSubstr(dir_ / "full.yaml"));
  EXPECT_THAT(Names(), testing::UnorderedElementsAre("log.jsonl", "own.yaml", "new.yaml"));
}

TEST_F(StrangeFilesTest, AGeneratedLogIsThereWholeOrNotAtAll) {
  for (const char* words : {"criteo --days 2 --rows 5000", "criteo --days 2 --rows 5000 --plain",
                            "interactions --days 2 --rows 50000"}) {
    const Ended ended =
        TacitWithRoom(100, fmt::format("generate {} --output {}", words, dir_ / "log"));
    EXPECT_EQ(ended.exit_code, 1) << words << ": " << ended.err;
    EXPECT_THAT(ended.err, HasSubstr((dir_ / "log") + "/day-0"));
    for (const std::string& name : Names())
      EXPECT_THAT(name, Not(HasSubstr("day-"))) << words << " left it";
  }
}

TEST_F(StrangeFilesTest, APackedCheckpointIsThereWholeOrNotAtAll) {
  test::WriteSmallLog(dir_, 1, 600, 1);
  const std::string operators = "unix:" + (dir_ / "operators");
  Service daemon(dir_, SmallRun(), {"--set", "serve.operator_listen=" + operators});
  ASSERT_TRUE(daemon.WaitForSteps(2));
  const Ended made = Tacit({"checkpoint", "create", "--url", operators});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::string folder;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir_ / "store.checkpoints"))
    if (entry.is_directory()) folder = entry.path();
  const std::string place = dir_ / "packed";
  fs::create_directory(place);
  const Ended ended =
      TacitWithRoom(1, fmt::format("checkpoint pack {} --output {}/one.tar.zst", folder, place));
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr(place + "/one.tar.zst"));
  EXPECT_TRUE(fs::is_empty(place)) << test::FilesBelow(place).front();
  // Nothing can be called so, which shows when it is packed.
  const Ended nameless = test::Run(
      {"/bin/bash", "-c",
       fmt::format("cd {} && exec {} checkpoint pack {} --output ''", place, TACIT, folder)});
  EXPECT_NE(nameless.exit_code, 0);
  EXPECT_TRUE(fs::is_empty(place)) << test::FilesBelow(place).front();
}

}  // namespace
}  // namespace tacit
