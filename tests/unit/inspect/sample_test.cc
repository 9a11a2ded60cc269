// Tests how samples are read: the forms of files, and what is said of lines that are none.
#include "inspect/sample.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/inspect/logs.h"

namespace tacit::inspect {
namespace {

using testing::HasSubstr;

class SampleTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    test::WriteFile(dir_ / name, text);
    return dir_ / name;
  }
  static std::string Refusal(const std::vector<std::string>& files,
                             std::optional<Format> format = std::nullopt) {
    const auto sample = ReadSample(files, {.format = format});
    return sample ? "" : sample.error().message;
  }

  test::TempDir dir_;
};

TEST_F(SampleTest, FormsOfLinesAreKnown) {
  const auto shape = [&](const std::string& text) {
    const auto sample = ReadSample({Write("log", text)}, {});
    EXPECT_TRUE(sample) << sample.error().message;
    return sample ? sample->shape : Shape();
  };
  EXPECT_EQ(shape("{\"a\":1}\n{\"a\":2}\n").format, Format::kJson);
  const Shape csv = shape("a,b\n1,2\n3,4\n");
  EXPECT_EQ(csv.format, Format::kCsv);
  EXPECT_TRUE(csv.header);
  EXPECT_EQ(csv.columns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(shape("a\tb\n1\t2\n").separator, '\t');
  EXPECT_EQ(shape("\"a, of all\";b\n\"1,5\";2\n").separator, ';');
  // Commas of fractions divide the lines evenly, and not the names.
  EXPECT_EQ(shape("a;b;c;d\n20,2;9,4;37,1;0\n22,8;9,1;47,1;0\n23,8;9,2;22,4;1\n"
                  "20,2;9,4;37,1;0\n22,8;9,1;47,1;0\n23,8;9,2;22,4;1\n"
                  "20,2;9,4;37,1;0\n22,8;9,1;47,1;0\n23,8;9,2;22,4;1\n")
                .separator,
            ';');
  const Shape bare = shape("1,2\n3,4\n");
  EXPECT_FALSE(bare.header);
  EXPECT_EQ(bare.columns, (std::vector<std::string>{"c1", "c2"}));
}

// Records of texts alone begin like names.
TEST_F(SampleTest, AFirstRecordIsNoHeader) {
  const auto names = [&](const std::string& text) {
    const auto sample = ReadSample({Write("log", text)}, {});
    EXPECT_TRUE(sample) << sample.error().message;
    return sample && sample->shape.header ? sample->shape.columns : std::vector<std::string>();
  };
  const std::vector<std::string> none;
  EXPECT_EQ(names("u1,shoes,DE\nu2,hats,DE\nu3,coats,FR\n"), none) << "DE comes again";
  EXPECT_EQ(names("2024-03-01 06:00:15,a\n2024-03-01 06:00:29,b\n"), none) << "a time above times";
  EXPECT_EQ(names("2024-03-01T06:00:15Z,a\n2024-03-01T06:00:29Z,b\n"), none);
  EXPECT_EQ(names("who,2024-03-01\nu1,7\nu2,9\n"), (std::vector<std::string>{"who", "2024-03-01"}))
      << "a column for each day";
  EXPECT_EQ(names("who,what\nu1,x\nwho,what\nu2,y\n"), (std::vector<std::string>{"who", "what"}))
      << "files that were put together";
}

// Spreadsheets leave columns without a name, and name others by years.
TEST_F(SampleTest, AHeaderOfATableIsKnown) {
  const auto names = [&](const std::string& text) {
    const auto sample = ReadSample({Write("log", text)}, {});
    EXPECT_TRUE(sample) << sample.error().message;
    return sample && sample->shape.header ? sample->shape.columns : std::vector<std::string>();
  };
  const std::vector<std::string> none;
  EXPECT_EQ(names("who,what,,\nu1,x,,\nu2,y,,\n"),
            (std::vector<std::string>{"who", "what", "", ""}));
  EXPECT_EQ(names(",who,click\n1,u1,0\n2,u2,1\n"), (std::vector<std::string>{"", "who", "click"}))
      << "the numbers of a table's rows";
  EXPECT_EQ(names("u1,x,,\nu2,y,3,4\nu3,z,5,6\n"), none) << "a record that lacks two values";
  EXPECT_EQ(names("shop,2023,open\ns1,7,1\ns2,8,0\n"),
            (std::vector<std::string>{"shop", "2023", "open"}))
      << "a name above numbers";
  EXPECT_EQ(names("u1,17,n/a\nu2,8,0\nu3,9,1\n"), none) << "a number that is missing";
  // A header that is not the first line, or names a column twice, is refused: it would be a record.
  EXPECT_THAT(Refusal({Write("sep",
                             "sep=;\nwho;age;click\nu1;7;0\nu2;8;1\nu3;9;1\nu4;7;0\nu5;6;1"
                             "\nu6;8;0\nu7;9;1\nu8;7;0\nu9;6;1\n")}),
              HasSubstr("sep: its line 2 names the columns: remove the lines above it"));
  EXPECT_THAT(Refusal({Write("two", "who,kind,kind\nu1,a,x\nu2,b,y\n")}),
              HasSubstr("its first line names 'kind' twice"));
  std::string rows;
  for (int i = 0; i < 12; ++i) rows += fmt::format("{},u{},{}\n", i, i % 5, i % 2);
  EXPECT_THAT(Refusal({Write("r", "who,click\n" + rows)}),
              HasSubstr("r: its first line has 2 names, and the lines below have 3 values: name "
                        "each (in R: col.names = NA)"));
  EXPECT_EQ(names("u1,0\n" + rows), none) << "a record that lacks a value";
}

// Lines of a 0 or 1 between tabs are Criteo's where they have its columns: a flag may come first.
TEST_F(SampleTest, AFlagInFrontIsNoLabelOfCriteos) {
  const auto format = [&](const std::string& text, std::optional<Format> asked = {}) {
    const auto sample = ReadSample({Write("log", text)}, {.format = asked});
    EXPECT_TRUE(sample) << sample.error().message;
    return sample ? sample->shape.format : Format::kJson;
  };
  const std::string flag = "1\tx\t0\n0\ty\t1\n0\tx\t0\n";
  EXPECT_EQ(format(flag), Format::kCsv) << "the last column may be the label";
  EXPECT_EQ(format(flag, Format::kCriteoTsv), Format::kCriteoTsv) << "a person says so";
  EXPECT_EQ(format("1\t17\tview\n0\t18\tbuy\n1\t22\tview\n"), Format::kCsv);
  std::string criteos;
  for (int i = 0; i < 40; ++i) criteos += (i == 0 ? "" : "\t") + std::string(i == 12 ? "1" : "0");
  std::string other = criteos;
  other[24] = '0';
  EXPECT_EQ(format(criteos + '\n' + other + '\n'), Format::kCriteoTsv) << "its own 40 columns";
  std::string words = criteos;
  words.replace(10, 1, "mobile");  // where Criteo has a whole number
  EXPECT_EQ(format(words + '\n' + words + '\n'), Format::kCsv);
  for (int i = 0; i < 5; ++i) other += '\n' + other;
  EXPECT_EQ(format(other + '\n' + words + '\n'), Format::kCriteoTsv) << "a line may be damaged";
  EXPECT_EQ(format("damaged\n" + other + '\n'), Format::kCriteoTsv) << "the first one too";
  // With a header they are a table.
  std::string header = "label";
  for (int i = 1; i < 40; ++i) header += fmt::format("\tc{}", i);
  const std::string table = header + '\n' + other + '\n';
  EXPECT_EQ(format(table), Format::kCsv);
  const auto refused = ReadSample({Write("table", table)}, {.format = Format::kCriteoTsv});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("table: its first line names the columns, and Criteo's form has no such "
                        "line: remove it, or ask for --format csv"));
}

TEST_F(SampleTest, FilesThatAreNoLogAreRefusedByName) {
  EXPECT_THAT(Refusal({dir_ / "nowhere"}), HasSubstr("nowhere: No such file"));
  EXPECT_THAT(Refusal({dir_.path()}), HasSubstr("is a directory"));
  EXPECT_THAT(Refusal({Write("empty", "")}), HasSubstr("empty: is empty"));
  EXPECT_THAT(Refusal({Write("blank", "\n\n")}), HasSubstr("blank: is empty"));
  std::string bytes;
  for (int i = 0; i < 4000; ++i) bytes += static_cast<char>(i * 37);
  EXPECT_THAT(Refusal({Write("bytes", bytes)}), HasSubstr("is binary"));
  EXPECT_THAT(Refusal({Write("table", "PAR1 abc")}), HasSubstr("Parquet"));
  EXPECT_THAT(Refusal({Write("wide",
                             "\xff\xfe"
                             "a,b\n")}),
              HasSubstr("UTF-16"));
  EXPECT_THAT(Refusal({Write("latin", "abonn\xe9,click\nu1,0\nu2,1\n")}),
              HasSubstr("latin: its first line is not UTF-8"));
  EXPECT_THAT(Refusal({Write("mac", "a,b\r1,2\r3,4\r")}), HasSubstr("a carriage return alone"));
  EXPECT_THAT(Refusal({Write("array", "[{\"a\":1},\n{\"a\":2}]\n")}), HasSubstr("JSON array"));
  EXPECT_THAT(Refusal({Write("pretty", "{\n  \"a\": 1\n}\n")}), HasSubstr("several lines"));
  EXPECT_THAT(Refusal({Write("prose", "once upon\na time\n")}), HasSubstr("neither JSON"));
  EXPECT_THAT(Refusal({Write("csv", "a,b\n1,2\n")}, Format::kCriteoTsv), HasSubstr("Criteo"));
  EXPECT_THAT(Refusal({Write("twice", "a,b,a\nx,1,y\n")}), HasSubstr("names 'a' twice"));
  const std::string one = Write("one", "{\"a\":1}\n");
  EXPECT_THAT(Refusal({one, one}), HasSubstr("is the same file as"));
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += fmt::format("{{\"a\":{}}}\n", i);
  EXPECT_THAT(Refusal({Write("log", lines), Write("copy", lines)}), HasSubstr("has the lines of"));
  EXPECT_THAT(Refusal({one, Write("two", "a,b\n1,2\n")}), HasSubstr("a source has one format"));
  EXPECT_THAT(Refusal({Write("three", "a,b\n1,2\n"), Write("four", "a,c\n1,2\n")}),
              HasSubstr("column 2 is called 'c', and in"));
}

TEST_F(SampleTest, LinesThatAreNoneAreCountedByTheirReason) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += fmt::format("{{\"a\":{}}}\n", i % 17);
  const auto sample =
      ReadSample({Write("log", text + "{\"a\":\n\n[1]\n{\"a\":\n{\"a\":3}\n{\"a\":3}\n")}, {});
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_EQ(sample->lines, 306u);
  EXPECT_EQ(sample->rows, 302u);
  EXPECT_EQ(sample->complaints.total(), 4u);
  const std::vector<Complaint> list = sample->complaints.List();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].count, 2u);
  EXPECT_EQ(list[0].line, 301u);
  EXPECT_THAT(list[0].reason, HasSubstr("no valid JSON"));
  EXPECT_EQ(sample->repeats, 306u - 17 - 3) << "17 values, and three broken lines, are new once";
  EXPECT_TRUE(sample->whole);
  EXPECT_EQ(sample->lines_in_all, 306);
}

TEST_F(SampleTest, ReasonsThatDifferInAValueAreOne) {
  Complaints complaints;
  complaints.Add("f", 3, "label: '7' is neither 0 nor 1");
  complaints.Add("f", 9, "label: 'many' is neither 0 nor 1");
  complaints.Add("f", 10, "12 values instead of 13");
  complaints.Add("g", 11, "9 values instead of 13");
  ASSERT_EQ(complaints.List().size(), 2u);
  EXPECT_EQ(complaints.List()[0].count, 2u);
  EXPECT_EQ(complaints.total(), 4u);
}

// A part of the files tells how many records there are in all of them.
TEST_F(SampleTest, WhatIsNotReadIsEstimated) {
  const auto sample = ReadSample(
      {Write("a.csv", test::ShopAsCsv(1, 40'000)), Write("b.csv", test::ShopAsCsv(2, 40'000))},
      {.format = {}, .rows_most = 10'000});
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_EQ(sample->lines, 10'000u);
  EXPECT_FALSE(sample->whole);
  EXPECT_NEAR(sample->lines_in_all, 80'000, 4'000);
}

}  // namespace
}  // namespace tacit::inspect
