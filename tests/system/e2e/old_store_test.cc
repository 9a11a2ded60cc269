// A store of each older format, made by the program that wrote that format (tests/fixtures), as
// this program reads it, brings it up and continues with it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <sstream>

#include "store/store.h"
#include "store/witness/witness.h"
#include "support/json.h"
#include "support/process.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using test::Ended;
using test::TempDir;
using testing::HasSubstr;

constexpr const char* kFixture = TACIT_SOURCE_DIR "/tests/fixtures/store-format-2";
constexpr const char* kFormat3 = TACIT_SOURCE_DIR "/tests/fixtures/store-format-3";
constexpr const char* kFormat5 = TACIT_SOURCE_DIR "/tests/fixtures/store-format-5";
constexpr uint64_t kCommits = 15;

class OldStoreTest : public testing::Test {
 protected:
  OldStoreTest() {
    for (const char* file : {"config.yaml", "items.dat", "day-0.jsonl"})
      fs::copy_file(fs::path(kFixture) / file, dir_ / file);
    PutBack();
  }
  // Store and witness as the old program left them.
  void PutBack(const std::string& witness = "witness", const std::string& fixture = kFixture) {
    fs::remove_all(dir_ / "store");
    fs::copy(fs::path(fixture) / "store", dir_ / "store", fs::copy_options::recursive);
    fs::copy_file(fs::path(fixture) / witness, dir_ / "store.witness",
                  fs::copy_options::overwrite_existing);
  }
  // Adds a feature to the configuration, and returns what it was before.
  std::string AddFeature() {
    const std::string before = test::ReadFile(dir_ / "config.yaml");
    const std::string feature = "{name: c, kind: categorical, buckets: 16, dim: 4}";
    const size_t at = before.find(feature);
    EXPECT_NE(at, std::string::npos);
    std::string after = before;
    after.insert(at + feature.size(), ", {name: hour, kind: categorical, buckets: 24, dim: 4}");
    test::WriteFile(dir_ / "config.yaml", after);
    return before;
  }
  void AddDay() { fs::copy_file(fs::path(kFixture) / "day-1.jsonl", dir_ / "day-1.jsonl"); }

  std::vector<std::string> Sets() const {
    return {"--set", "store.path=" + dir_ / "store",
            "--set", "source.files=" + dir_ / "day-*.jsonl",
            "--set", "catalogue.file=" + dir_ / "items.dat"};
  }
  Ended Learn(std::vector<std::string> more = {}) {
    std::vector<std::string> command{TACITD, "--config", dir_ / "config.yaml", "--until-end"};
    for (const auto& words : {Sets(), more})
      command.insert(command.end(), words.begin(), words.end());
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
  // The answer with its scores as the floats that they are, because the old program wrote more
  // digits, and without what it did not say.
  static json::object AsTold(json::object answer) {
    if (json::value* const learners = answer.if_contains("learners"))
      for (json::value& learner : learners->as_array()) learner.as_object().erase("at_most");
    if (json::value* const total = answer.if_contains("total")) total->as_object().erase("at_most");
    if (json::value* const scores = answer.if_contains("scores"))
      for (json::value& score : scores->as_array())
        score = static_cast<float>(score.to_number<double>());
    return answer;
  }
  // Returns what the old program answered, and what this one does, in the old one's order.
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
  void ExpectAnswersOf(const std::string& fixture) {
    const std::vector<json::object> answers = Answers();
    std::istringstream told(test::ReadFile(fixture + "/told.jsonl"));
    size_t lines = 0;
    for (std::string line; std::getline(told, line);) {
      if (line.empty()) continue;
      ASSERT_LT(lines, answers.size());
      EXPECT_EQ(AsTold(answers[lines]), AsTold(json::parse(line).as_object())) << line;
      ++lines;
    }
    EXPECT_EQ(lines, answers.size());
  }
  // The model of the counts as the ledger's newest entry of it names it.
  Digest CountsFingerprint() const {
    const auto store = store::OpenReadOnly(dir_ / "store", dir_ / "store.witness", {});
    TACIT_CHECK(store.has_value());
    Digest fingerprint{};
    for (const privacy::LedgerEntry& entry : store->entries)
      if (entry.learner == "counts") fingerprint = entry.model_fingerprint;
    return fingerprint;
  }
  store::WitnessSight Witness() const {
    const auto read = store::WitnessFile::Read(dir_ / "store.witness");
    TACIT_CHECK(read && *read);
    return **read;
  }

  const TempDir dir_;
};

TEST_F(OldStoreTest, AnswersAsItsOwnProgramDid) { ExpectAnswersOf(kFixture); }

// A store from before models could grow: its inputs are noted at its first start, and not before; a
// change of its features is taken over after that.
TEST_F(OldStoreTest, OneOfFormat3AnswersAndItsModelsGrowAfterOneStart) {
  PutBack("witness", kFormat3);
  ExpectAnswersOf(kFormat3);
  const std::string as_it_was = AddFeature();
  const std::string yaml = test::ReadFile(dir_ / "config.yaml");
  const Ended refused = Learn();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("start tacitd once with the configuration of then"));

  test::WriteFile(dir_ / "config.yaml", as_it_was);
  AddDay();
  ASSERT_EQ(Learn().exit_code, 0);
  const json::object before = Ledger();
  test::WriteFile(dir_ / "config.yaml", yaml);
  const Ended grown = Learn();
  ASSERT_EQ(grown.exit_code, 0) << grown.err;
  const json::object after = Ledger();
  EXPECT_EQ(after.at("version").to_number<uint64_t>(),
            before.at("version").to_number<uint64_t>() + 1);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(after.at("learners").at(i).at("epsilon"), before.at("learners").at(i).at("epsilon"));
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"}).exit_code,
            0);
}

// A store with all rows in one family stays so, and is cut into shards when it is asked for; either
// way its answers are the same, and it learns.
TEST_F(OldStoreTest, OneOfFormat5LearnsAndIsCutIntoShards) {
  PutBack("witness", kFormat5);
  AddFeature();
  ExpectAnswersOf(kFormat5);
  for (const uint64_t shards : {3u, 1u}) {
    std::vector<std::string> words{"store",    "reshard",
                                   "--config", dir_ / "config.yaml",
                                   "--set",    "store.shards=" + std::to_string(shards)};
    for (const std::string& word : Sets()) words.push_back(word);
    const json::object done = Tool(words);
    EXPECT_EQ(done.at("done"), true);
    EXPECT_EQ(done.at("after").to_number<uint64_t>(), shards);
    EXPECT_GT(done.at("rows").to_number<uint64_t>(), 8u);
    EXPECT_EQ(Tool(words).at("done"), false) << "it is so already";
    ExpectAnswersOf(kFormat5);
  }
  const json::object before = Ledger();
  AddDay();
  const Ended learnt = Learn({"--set", "store.shards=1"});
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  EXPECT_GT(Ledger().at("version").to_number<uint64_t>(),
            before.at("version").to_number<uint64_t>());
  const Ended refused = Learn({"--set", "store.shards=2"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("tacit store reshard makes it so"));
  const Ended verified = test::Run({TACIT, "store", "verify", "--store", dir_ / "store"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;

  PutBack("witness", kFormat5);
  ASSERT_EQ(Learn().exit_code, 0);
  EXPECT_FALSE(fs::exists(fs::path(dir_ / "store") / "rows"));
}

TEST_F(OldStoreTest, ItsFirstCommitBringsItUp) {
  const json::object before = Ledger();
  ASSERT_EQ(before.at("version"), kCommits);
  EXPECT_EQ(Witness().record.term, kNoTerm);
  AddDay();
  const Ended learnt = Learn();
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  const json::object after = Ledger();
  EXPECT_GT(after.at("version").to_number<uint64_t>(), kCommits);
  EXPECT_EQ(after.at("lineage"), before.at("lineage"));
  for (int i : {1, 2}) {
    EXPECT_EQ(before.at("learners").at(i).at("steps"), 10);
    EXPECT_EQ(after.at("learners").at(i).at("steps"), 20) << "each click of the new day once";
  }
  const Ended verified =
      test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;

  const store::WitnessSight witness = Witness();
  EXPECT_TRUE(witness.whole);
  EXPECT_NE(witness.record.term, kNoTerm);
  EXPECT_EQ(witness.record.seq.value, after.at("version").to_number<uint64_t>());
  ASSERT_EQ(witness.record.learners.size(), 3u);
  EXPECT_EQ(witness.record.learners[1].name, "ctr");
  EXPECT_EQ(witness.record.learners[1].steps, 20u);

  const Ended again = Learn();  // and it is opened again, with nothing left to learn
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Ledger(), after);

  // The old program would leave wrong what it does not know.
  PutBack();
  EXPECT_EQ(Ledger(), before);
}

TEST_F(OldStoreTest, AnOlderCopyIsRefusedByAWitnessOfEitherFormat) {
  PutBack("witness-later");  // that the old program then wrote
  const Ended old = Learn();
  EXPECT_EQ(old.exit_code, 3);
  EXPECT_THAT(old.err, HasSubstr("the witness has seen commit"));
  PutBack();
  AddDay();
  ASSERT_EQ(Learn().exit_code, 0);
  fs::copy_file(dir_ / "store.witness", dir_ / "kept");
  PutBack();
  fs::copy_file(dir_ / "kept", dir_ / "store.witness", fs::copy_options::overwrite_existing);
  const Ended refused = Learn();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("the witness has seen commit"));
}

// Both continued from the same commit, one with the old program and one with this, however many
// commits each made of the day.
TEST_F(OldStoreTest, AForkIsRefusedAcrossFormats) {
  AddDay();
  ASSERT_EQ(Learn().exit_code, 0);
  fs::copy_file(fs::path(kFixture) / "witness-later", dir_ / "store.witness",
                fs::copy_options::overwrite_existing);
  const Ended refused = Learn();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("is not the one its witness"));
}

// Counts keep the rules that they were made with, also when items are added; a new store has the
// newest.
TEST_F(OldStoreTest, ItsCountsKeepTheirRules) {
  PutBack("witness", kFormat3);
  const Digest before = CountsFingerprint();
  AddDay();
  ASSERT_EQ(Learn().exit_code, 0);
  EXPECT_EQ(CountsFingerprint(), before);
  const json::object version = Ledger();
  test::WriteFile(dir_ / "items.dat", test::ReadFile(dir_ / "items.dat") + "item-new\n");
  const Ended grown = Learn();
  ASSERT_EQ(grown.exit_code, 0) << grown.err;
  EXPECT_EQ(Ledger().at("version").to_number<uint64_t>(),
            version.at("version").to_number<uint64_t>() + 1);
  const Digest more_items = CountsFingerprint();
  EXPECT_NE(more_items, before);
  const Ended again = Learn();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_FALSE(Answers().at(2).at("items").as_array().empty());

  fs::remove_all(dir_ / "store");
  fs::remove(dir_ / "store.witness");
  ASSERT_EQ(Learn().exit_code, 0);
  EXPECT_NE(CountsFingerprint(), more_items);
  EXPECT_FALSE(Answers().at(2).at("items").as_array().empty());
}

}  // namespace
}  // namespace tacit
