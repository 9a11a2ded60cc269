// Files that `tacit inspect` cannot make anything of, or not all: each has a clear message and a
// status, and nothing crashes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <random>

#include "support/json.h"
#include "support/process.h"
#include "unit/inspect/logs.h"

namespace tacit {
namespace {

using test::Ended;
using testing::HasSubstr;
using testing::IsEmpty;

class BadFiles : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    test::WriteFile(dir_ / name, text);
    return dir_ / name;
  }
  static Ended Inspect(std::vector<std::string> words) {
    words.insert(words.begin(), {TACIT, "inspect"});
    return test::Run(words);
  }
  // Expects a refusal that says this and prints no proposal.
  static void ExpectRefused(const std::vector<std::string>& words, const std::string& message) {
    const Ended ended = Inspect(words);
    EXPECT_EQ(ended.exit_code, 2) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(message));
    EXPECT_THAT(ended.out, IsEmpty());
  }
  static std::string Clicks(int records, const std::string& colour = "colour") {
    std::string text;
    for (int i = 0; i < records; ++i)
      text += fmt::format("{{\"click\":{},\"{}\":\"c{}\",\"size\":{}}}\n", i % 3 == 0 ? 1 : 0,
                          colour, i % 7, i % 50);
    return text;
  }

  test::TempDir dir_;
};

TEST_F(BadFiles, FilesThatAreNotThereOrAreNoLog) {
  ExpectRefused({dir_ / "nowhere.jsonl"}, "nowhere.jsonl: No such file or directory");
  ExpectRefused({dir_.path()}, "is a directory");
  ExpectRefused({Write("empty.jsonl", "")}, "empty.jsonl: is empty");
  std::mt19937_64 random(3);
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += static_cast<char>(random());
  ExpectRefused({Write("photo.jpg", bytes)}, "photo.jpg: is binary");
  ExpectRefused({Write("clicks.jsonl", Clicks(50)), dir_ / "nowhere"}, "nowhere: No such file");
  ExpectRefused({dir_ / "clicks.jsonl", "--format", "protobuf"}, "--format");
  ExpectRefused({}, "files");
}

TEST_F(BadFiles, AFieldOfJsonIsNamedWithOrWithoutItsSlash) {
  const std::string file = Write("clicks.jsonl", Clicks(500));
  for (const char* name : {"colour", "/colour"}) {
    const Ended ended = Inspect({file, "--user", name});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("user       '/colour': it is given"));
  }
  ExpectRefused({file, "--user", "shape"}, "no field of these records is called '/shape'");
}

// Users and items are there, and no model of them takes the label's place.
TEST_F(BadFiles, ALabelOfOneKindIsRefusedWithItsCounts) {
  std::string text = "user,item,click\n";
  for (int i = 0; i < 500; ++i) text += fmt::format("u{},i{},0\n", i % 97, i % 13);
  const std::string file = Write("clicks.csv", text);
  const Ended named = Inspect({file, "--label", "click", "--output", dir_ / "clicks.yaml"});
  EXPECT_EQ(named.exit_code, 1);
  EXPECT_THAT(named.err, HasSubstr("nothing is proposed: \"click\" cannot be the label: it is "
                                   "\"0\" in 500 records"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "clicks.yaml"));
  const Ended event = Inspect({file, "--unit", "event"});
  EXPECT_EQ(event.exit_code, 2);
  EXPECT_THAT(event.err, HasSubstr("no label is found"));
  EXPECT_THAT(event.out, HasSubstr("\"click\" is called as labels are, and is not taken for one"));
}

TEST_F(BadFiles, OneRecordIsTooFew) {
  for (const char* record :
       {"{\"click\":1,\"colour\":\"red\"}\n", "click,colour\n1,red\n", "1\t2\tred\n"}) {
    const Ended ended = Inspect({Write("one", record)});
    EXPECT_EQ(ended.exit_code, 1) << record;
    EXPECT_THAT(ended.err, HasSubstr("nothing is proposed: no field can be the label"));
    EXPECT_THAT(ended.out, HasSubstr("1, all of 1 file")) << "the report is printed all the same";
  }
  const Ended header = Inspect({Write("header.csv", "click,colour\n")});
  EXPECT_EQ(header.exit_code, 1) << header.err;
}

TEST_F(BadFiles, TwoFormatsAreNotOneSource) {
  const std::string json = Write("a.jsonl", Clicks(50));
  const std::string csv = Write("b.csv", "click,colour\n1,red\n0,blue\n");
  ExpectRefused({json, csv}, "b.csv: has 2 values between ',', and");
  ExpectRefused({csv, Write("c.csv", "click,shade\n1,red\n0,blue\n")},
                "c.csv: column 2 is called 'shade', and in");
}

// Within a file the minority cannot be read, and the status says so where it is large.
TEST_F(BadFiles, AFileOfTwoFormatsIsReadAsOneAndTheRestIsCounted) {
  std::string mixed = Clicks(400);
  for (int i = 0; i < 100; ++i) mixed += "1,red,3\n";
  const Ended many = Inspect({Write("mixed.jsonl", mixed)});
  EXPECT_EQ(many.exit_code, 1);
  EXPECT_THAT(many.err, HasSubstr("100 of 500 records could not be learnt from"));
  EXPECT_THAT(many.err, HasSubstr("mixed.jsonl:401: "));
  const Ended few = Inspect({Write("few.jsonl", Clicks(400) + "1,red,3\n")});
  EXPECT_EQ(few.exit_code, 0) << few.err;
  EXPECT_THAT(few.out, HasSubstr("1 not, first "));
  EXPECT_THAT(few.out, HasSubstr("few.jsonl:401: no JSON object"));
}

TEST_F(BadFiles, AFieldThatIsRenamedHalfWayIsNamedWithItsPlace) {
  const Ended ended = Inspect({Write("renamed.jsonl", Clicks(300) + Clicks(300, "color"))});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("a field goes half way: '/colour' is there last at"));
  EXPECT_THAT(ended.out, HasSubstr("renamed.jsonl:300"));
  EXPECT_THAT(ended.out, HasSubstr("'/color' is there first at"));
  EXPECT_THAT(ended.out, HasSubstr("renamed.jsonl:301"));
  EXPECT_THAT(ended.out, HasSubstr("was it renamed?"));
  // A label that is renamed leaves half of the records without one.
  std::string half = Clicks(300);
  for (const std::string& line : test::LinesOf(Clicks(200)))
    half += "{\"clicked_on\"" + line.substr(line.find(':')) + '\n';
  const Ended label = Inspect({Write("label.jsonl", half)});
  EXPECT_EQ(label.exit_code, 1);
  EXPECT_THAT(label.out + label.err, HasSubstr("'/click' is there last at"));
}

TEST_F(BadFiles, ADamagedArchiveIsReadAsFarAsItGoes) {
  const std::string text = Clicks(20'000), whole = dir_ / "clicks.jsonl.gz";
  gzFile file = gzopen(whole.c_str(), "wb1");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  const std::string packed = test::ReadFile(whole);
  const Ended ended = Inspect({Write("cut.jsonl.gz", packed.substr(0, packed.size() / 2))});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("truncated gzip data"));
}

// A word of a label may be in any encoding, and the report is JSON all the same.
TEST_F(BadFiles, AReportOfWordsInAnotherEncodingIsJson) {
  std::string text = "shelf,action\n";
  for (int i = 0; i < 500; ++i)
    text += fmt::format("s{},{}\n", i % 7, i % 3 == 0 ? "achet\xe9" : "vu");
  const Ended ended = Inspect({Write("words.csv", text), "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(test::ParseJson(ended.out).at("proposal").as_string().c_str(),
              HasSubstr("achet\xef\xbf\xbd"));
}

// For any bytes in a file there is a report or a message.
TEST_F(BadFiles, MutatedFilesAreReadOrRefused) {
  std::mt19937_64 random(9);
  const std::string seeds[] = {Clicks(40), test::ShopAsCsv(1, 40), "1\t2\tx\n0\t3\ty\n1\t\tx\n"};
  for (int round = 0; round < 60; ++round) {
    std::string text = seeds[round % 3];
    for (size_t i = 1 + random() % 30; i > 0; --i) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0)
        text.erase(at, random() % 20);
      else
        text[at] = static_cast<char>(random());
      if (text.empty()) text = "\n";
    }
    const Ended ended = Inspect({Write("mutated", text), "--json"});
    EXPECT_EQ(ended.signal, 0) << "round " << round;
    EXPECT_GE(ended.exit_code, 0) << "round " << round;
    EXPECT_LE(ended.exit_code, 2) << "round " << round << ": " << ended.err;
    if (ended.exit_code == 0) {
      EXPECT_TRUE(test::ParseJson(ended.out).contains("proposal"));
    }
    if (ended.exit_code == 2) {
      EXPECT_THAT(ended.err, HasSubstr("mutated"));
    }
  }
}

}  // namespace
}  // namespace tacit
