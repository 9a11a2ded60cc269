// The store of tests/fixtures that an earlier program of this format made, as this program reads it
// and continues with it; and what programs before 0.1.0 left, which is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <sstream>

#include "support/json.h"
#include "support/process.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using test::Ended;
using test::TempDir;
using testing::HasSubstr;

constexpr const char* kFixture = TACIT_SOURCE_DIR "/tests/fixtures/store-format-1";
constexpr const char* kBeforeFirst = TACIT_SOURCE_DIR "/tests/fixtures/before-0.1.0";

class StoreFormatTest : public testing::Test {
 protected:
  StoreFormatTest() {
    for (const char* file : {"config.yaml", "items.dat", "day-0.jsonl"})
      fs::copy_file(fs::path(kFixture) / file, dir_ / file);
  }
  void PutStore(const std::string& fixture) {
    fs::copy(fs::path(fixture) / "store", dir_ / "store", fs::copy_options::recursive);
  }
  void PutWitness(const std::string& fixture) {
    fs::copy_file(fs::path(fixture) / "witness", dir_ / "store.witness");
  }
  std::vector<std::string> Sets() const {
    return {"--set", "store.path=" + dir_ / "store",
            "--set", "source.files=" + dir_ / "day-*.jsonl",
            "--set", "catalogue.file=" + dir_ / "items.dat"};
  }
  Ended Learn() {
    std::vector<std::string> command{TACITD, "--config", dir_ / "config.yaml", "--until-end"};
    for (const std::string& word : Sets()) command.push_back(word);
    return test::Run(command);
  }
  json::object Tool(std::vector<std::string> words) const {
    words.insert(words.begin(), TACIT);
    words.push_back("--json");
    return test::Json(test::Run(words));
  }
  json::object Ledger() const { return Tool({"ledger", "show", "--store", dir_ / "store"}); }
  static std::string Row(int x, const char* c) {
    return fmt::format(R"({{"label":0,"features":{{"x":{},"c":"{}"}}}})", x, c);
  }
  // Answers to the questions of told.jsonl, in its order.
  std::vector<json::object> Answers() {
    // `tacit query` takes no overrides: the catalogue is named by its place.
    std::string yaml = test::ReadFile(dir_ / "config.yaml");
    const std::string name = "catalogue: {file: items.dat}";
    const size_t at = yaml.find(name);
    EXPECT_NE(at, std::string::npos);
    yaml.replace(at, name.size(), fmt::format("catalogue: {{file: \"{}\"}}", dir_ / "items.dat"));
    yaml.replace(yaml.find("day-*"), 5, dir_ / "day-*");
    test::WriteFile(dir_ / "query.yaml", yaml);
    const std::vector<std::string> where{"--checkpoint", dir_ / "store", "--config",
                                         dir_ / "query.yaml"};
    std::vector<json::object> answers;
    const auto ask = [&](std::vector<std::string> words) {
      words.insert(words.end(), where.begin(), where.end());
      answers.push_back(Tool(words));
    };
    for (const char* learner : {"ctr", "events"})
      ask({"query", "score", "--learner", learner, "--row", Row(1, "1"), "--row", Row(7, "0"),
           "--row", Row(3, "never seen")});
    ask({"query", "recommend", "--learner", "counts", "--sequence", "item-1,item-5"});
    answers.push_back(Ledger());
    return answers;
  }
  void ExpectRefused(const Ended& ended, const std::string& what) const {
    EXPECT_EQ(ended.exit_code, 3) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(what + " was written before 0.1.0"));
  }

  const TempDir dir_;
};

TEST_F(StoreFormatTest, AnswersAsItsOwnProgramDid) {
  PutStore(kFixture);
  PutWitness(kFixture);
  const std::vector<json::object> answers = Answers();
  std::istringstream told(test::ReadFile(std::string(kFixture) + "/told.jsonl"));
  size_t lines = 0;
  for (std::string line; std::getline(told, line); ++lines) {
    ASSERT_LT(lines, answers.size());
    const json::object told_then = json::parse(line).as_object();
    // Later programs may tell more.
    for (const auto& [key, value] : told_then) {
      const json::value* told_now = answers[lines].if_contains(key);
      ASSERT_NE(told_now, nullptr) << key;
      EXPECT_EQ(*told_now, value) << line;
    }
  }
  EXPECT_EQ(lines, answers.size());
}

TEST_F(StoreFormatTest, GoesOn) {
  PutStore(kFixture);
  PutWitness(kFixture);
  const json::object before = Ledger();
  fs::copy_file(fs::path(kFixture) / "day-1.jsonl", dir_ / "day-1.jsonl");
  const Ended learnt = Learn();
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  const json::object after = Ledger();
  EXPECT_EQ(after.at("lineage"), before.at("lineage"));
  for (int i : {1, 2}) {
    EXPECT_EQ(before.at("learners").at(i).at("steps"), 10);
    EXPECT_EQ(after.at("learners").at(i).at("steps"), 20) << "each click of the new day once";
  }
  const Ended verified =
      test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
}

TEST_F(StoreFormatTest, OneFromBeforeTheFirstIsRefused) {
  PutStore(kBeforeFirst);
  const std::string store = "store " + (dir_ / "store");
  ExpectRefused(Learn(), store);
  ExpectRefused(test::Run({TACIT, "ledger", "show", "--store", dir_ / "store"}), store);
  ExpectRefused(test::Run({TACIT, "store", "verify", "--store", dir_ / "store"}), store);
}

TEST_F(StoreFormatTest, AWitnessFromBeforeTheFirstIsRefused) {
  PutWitness(kBeforeFirst);
  ExpectRefused(Learn(), "witness " + (dir_ / "store.witness"));
}

TEST_F(StoreFormatTest, ACheckpointFromBeforeTheFirstIsRefused) {
  const std::string folder = std::string(kBeforeFirst) + "/checkpoint";
  ExpectRefused(test::Run({TACIT, "checkpoint", "verify", folder}),
                folder + "/checkpoint.manifest: the checkpoint");
}

}  // namespace
}  // namespace tacit
