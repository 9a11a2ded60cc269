#include "event/csv_codec.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "event/json_shape.h"
#include "interactions.h"

namespace tacit::event {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvTest : public InteractionTest {
 protected:
  CsvTest() {
    shape_.columns = {"id", "who", "n1", "n2", "c1", "set", "sku", "label", "when"};
    shape_.user = "who";
    shape_.item = "sku";
    shape_.event_id = "id";
    shape_.timestamp = "when";
  }
  std::unique_ptr<Codec> MakeCodec(const InteractionOptions& options) const override {
    const Status status = CheckCsvShape(shape_, Schema());
    EXPECT_TRUE(status) << status.error().message;
    return MakeCsvCodec(transform_, shape_, options);
  }
  std::string Refusal(const CsvShape& shape) const {
    const Status status = CheckCsvShape(shape, Schema());
    return status ? std::string() : status.error().message;
  }
  std::string ReasonOf(const std::string& record) const {
    const Decoded decoded = Decode({record});
    return decoded.dead.size() == 1 ? decoded.dead[0].reason : "none";
  }

  CsvShape shape_;
};

std::vector<std::string> Split(const std::string& line, char separator = ',') {
  std::string text;
  std::vector<std::string_view> values;
  if (const MaybeBad bad = SplitCsvLine(line, separator, &text, &values)) return {bad->reason};
  return {values.begin(), values.end()};
}

TEST_F(CsvTest, ValuesAreInTheirColumns) {
  const Decoded decoded =
      Decode({"e,u,3,-2.5,abc,x|y|x,b,1,1500", "e,\"u\",\"3\",-2.5,\"abc\",\"x|y\",b,1,1500\r",
              ",,,,,,,0,", "e,\"a \"\"b\"\", c\",,,\"\",,,true,"},
             {.items = Items("a\nb\n")});
  ASSERT_EQ(decoded.batch.size(), 4u) << decoded.dead.at(0).reason;
  ExpectExample(decoded.batch, 0,
                {.event_id = "e",
                 .user = "u",
                 .timestamp_ms = 1500,
                 .label = 1,
                 .n1 = 3,
                 .n2 = -2.5,
                 .c1 = "abc",
                 .set = {"x", "y", "x"}});
  EXPECT_EQ(decoded.batch.item[0], 1u);
  ExpectSameExample(decoded.batch, 0, 1);
  ExpectExample(decoded.batch, 2, {});
  EXPECT_EQ(decoded.batch.item[2], kNoItem);
  ExpectExample(decoded.batch, 3, {.event_id = "e", .user = "a \"b\", c", .label = 1});
}

TEST(CsvLineTest, QuotesHoldSeparatorsAndQuotes) {
  EXPECT_THAT(Split("a,b,,c"), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(Split(""), ElementsAre(""));
  EXPECT_THAT(Split(","), ElementsAre("", ""));
  EXPECT_THAT(Split("a\tb", '\t'), ElementsAre("a", "b"));
  EXPECT_THAT(Split("\"a,b\",\"\",\"c\"\"\",d\"e\""), ElementsAre("a,b", "", "c\"", "d\"e\""));
  EXPECT_THAT(Split("\"\"\"\"\r"), ElementsAre("\""));
  EXPECT_THAT(Split("a,\"b"),
              ElementsAre("value 2: its quote is not closed (a record is one line)"));
  EXPECT_THAT(Split("\"a\"b,c"), ElementsAre("value 1: something follows its closing quote"));
}

// With any bytes, a line that is written as RFC 4180 says is read as what it was.
TEST(CsvLineTest, WhatIsWrittenIsRead) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> values(1 + random() % 5);
    std::string line;
    for (std::string& value : values) {
      for (size_t n = random() % 6; n > 0; --n) value += "ab\",;| \r"[random() % 8];
      const bool plain = value.find_first_of("\",\r") == value.npos && random() % 2 == 0;
      std::string quoted = "\"";
      for (const char c : value) quoted += c == '"' ? "\"\"" : std::string(1, c);
      if (&value != &values.front()) line += ',';
      line += plain ? value : quoted + '"';
    }
    ASSERT_EQ(Split(line), values) << line;
  }
}

TEST_F(CsvTest, AFilesFirstLineIsNoRecordAndNoOther) {
  const std::string header = "id,who,n1,n2,c1,set,sku,\"label\",when", record = "e,u,,,,,,1,";
  RawRecords records = Records({header, record, header});
  records.origin_line = 1;
  Batch batch;
  std::vector<DeadLetter> dead;
  const auto codec = MakeCodec({});
  transform_.StartBatch(&batch);
  codec->Decode(records, &batch, &dead);
  EXPECT_THAT(batch.offset, ElementsAre(kFirstOffset + 1));
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].line, 3u);
  // In the middle of a file, and in a topic, it is a bad record.
  for (const uint64_t line : {0u, 2u}) {
    records.origin_line = line;
    transform_.StartBatch(&batch);
    dead.clear();
    codec->Decode(records, &batch, &dead);
    EXPECT_EQ(batch.size(), 1u);
    EXPECT_EQ(dead.size(), 2u);
  }
  shape_.header = false;
  records.origin_line = 1;
  transform_.StartBatch(&batch);
  dead.clear();
  MakeCodec({})->Decode(records, &batch, &dead);
  EXPECT_EQ(dead.size(), 2u);
}

// Nothing of a header is a value, though texts would be taken for categories.
TEST_F(CsvTest, ALineToScoreThatNamesTheColumnsHasNoScore) {
  const std::string header = "id,who,n1,n2,c1,set,sku,\"label\",when", record = "e,u,,,,,,1,";
  RawRecords records = Records({header, record});
  const auto reasons = [&](uint64_t line) {
    records.origin_line = line;
    Batch batch;
    std::vector<DeadLetter> dead;
    transform_.StartBatch(&batch);
    MakeCodec({.label = LabelUse::kPassedOver})->Decode(records, &batch, &dead);
    EXPECT_EQ(batch.size(), 1u);
    return dead.size() == 1 ? dead[0].reason : "none";
  };
  for (const uint64_t line : {0u, 1u, 7u})
    EXPECT_EQ(reasons(line), "it names the columns, and is no record") << line;
  shape_.header = false;
  EXPECT_EQ(reasons(1), "timestamp (column 'when'): is no such time");
}

TEST_F(CsvTest, ReasonsNameTheColumn) {
  EXPECT_EQ(ReasonOf("e,u,,,,,,2,"), "label (column 'label'): is neither 0 nor 1");
  EXPECT_EQ(ReasonOf("e,u,,,,,,,"), "label (label) is missing");
  EXPECT_EQ(ReasonOf("e,u,x,,,,,1,"), "feature 'n1' (column 'n1'): is no number");
  EXPECT_EQ(ReasonOf("e,u,inf,,,,,1,"), "feature 'n1' (column 'n1'): is no number");
  EXPECT_EQ(ReasonOf("e,u,,,,,,1,noon"), "timestamp (column 'when'): is no such time");
  EXPECT_EQ(ReasonOf("e,u,,,,,,1,2026-11-25"),
            "timestamp (column 'when'): is no such time; timestamp_unit datetime reads it");
  EXPECT_EQ(ReasonOf("e,u,,,,,,1,2026-11-25T03:22:06Z"),
            "timestamp (column 'when'): is no such time; timestamp_unit rfc3339 reads it");
  EXPECT_EQ(ReasonOf("e,u,,,,,,1"), "8 values instead of 9");
  EXPECT_EQ(ReasonOf("e,u,,,,,,1,,"), "10 values instead of 9");
  EXPECT_EQ(ReasonOf(""), "the record is empty");
  shape_.label_rule.values = {{"buy", true}, {"view", false}};
  EXPECT_EQ(ReasonOf("e,u,,,,,,buy,"), "none");
  EXPECT_EQ(ReasonOf("e,u,,,,,,1,"), "label (column 'label'): is none of label_values");
  shape_.label_rule = {.values = {}, .at_least = 3.5};
  EXPECT_EQ(Decode({"e,u,,,,,,4,", "e,u,,,,,,3,"}).batch.label, (std::vector<float>{1, 0}));
}

// The files that name the columns may not be there, for who reads a checkpoint.
TEST_F(CsvTest, WithoutColumnsEveryRecordIsBad) {
  shape_.columns.clear();
  const auto codec = MakeCsvCodec(transform_, shape_, {});
  Decoded decoded;
  transform_.StartBatch(&decoded.batch);
  codec->Decode(Records({"e,u", ""}), &decoded.batch, &decoded.dead);
  EXPECT_EQ(decoded.batch.size(), 0u);
  ASSERT_EQ(decoded.dead.size(), 2u);
  EXPECT_THAT(decoded.dead[0].reason, HasSubstr("source.csv.columns"));
}

TEST_F(CsvTest, WeightsAndConstantsAreThoseOfJson) {
  shape_.columns = {"n2", "label", "price"};
  shape_.user = shape_.item = shape_.event_id = shape_.timestamp = "";
  shape_.weight = "price";
  shape_.constants = {{"c1", "shop 7"}, {"n1", "3.5"}, {"set", "x"}};
  const Decoded decoded =
      Decode({"-2,1,2", "-2,0,", "-2,1,9", "-2,1,-9", "-2,1,much", "-2,,1"}, {.weight_most = 4});
  EXPECT_THAT(decoded.batch.weight, ElementsAre(0.5f, 0.25f, 1.0f));
  ASSERT_EQ(decoded.dead.size(), 3u);
  EXPECT_EQ(decoded.dead[0].reason, "weight (column 'price'): is no number of at least 0");

  JsonShape json;
  json.weight = "/price";
  json.features_at = "";
  json.constants = shape_.constants;
  ASSERT_TRUE(CheckShape(json, Schema()));
  const std::string line = R"({"n2":-2,"label":1,"price":2})";
  Batch other;
  transform_.StartBatch(&other);
  std::vector<DeadLetter> dead;
  MakeShapedJsonCodec(transform_, json, {.weight_most = 4})->Decode(Records({line}), &other, &dead);
  ASSERT_TRUE(dead.empty());
  EXPECT_EQ(other.weight[0], decoded.batch.weight[0]);
  EXPECT_EQ(other.dense, (std::vector<float>{decoded.batch.dense[0], decoded.batch.dense[1]}));
  EXPECT_EQ(other.Slot(0, 0)[0], decoded.batch.Slot(0, 0)[0]);
  EXPECT_EQ(other.Slot(0, 1)[0], decoded.batch.Slot(0, 1)[0]);
  CsvShape wrong = shape_;
  wrong.constants = {{"n1", "dear"}};
  EXPECT_EQ(Refusal(wrong), "source.csv.constants: 'n1' is a number, and 'dear' is none");
}

// Texts that stand for no value count where names stand, and neither in numbers nor in times.
TEST_F(CsvTest, MissingTextsAreNoValues) {
  shape_.missing = {"guest", "7"};
  const std::string guest = "guest,7,7,7,guest,guest|a|7,guest,1,7";
  const Decoded decoded = Decode({guest, ",,7,7,,a,,1,7"}, {.items = Items("guest\n")});
  ASSERT_EQ(decoded.batch.size(), 2u) << decoded.dead.at(0).reason;
  ExpectExample(decoded.batch, 0, {.timestamp_ms = 7, .label = 1, .n1 = 7, .n2 = 7, .set = {"a"}});
  ExpectSameExample(decoded.batch, 0, 1);
  EXPECT_EQ(decoded.batch.item[0], kNoItem);
  EXPECT_EQ(Decode({guest}, {.missing = MissingPolicy::kReject}).dead.size(), 1u);
  EXPECT_THAT(ReasonOf("e,u,,,,,,guest,"), HasSubstr("is missing"));
}

TEST_F(CsvTest, RecordsToScoreNeedNoLabel) {
  EXPECT_EQ(Decode({"e,u,,,,,,,", "e,u,,,,,,what,"}, {.label = LabelUse::kPassedOver}).batch.size(),
            2u);
}

TEST_F(CsvTest, ColumnsThatCannotBeAreRefusedByName) {
  EXPECT_EQ(Refusal(shape_), "");
  const auto with = [&](auto change) {
    CsvShape shape = shape_;
    change(shape);
    return Refusal(shape);
  };
  EXPECT_THAT(with([](CsvShape& s) { s.columns[2] = "n2"; }), HasSubstr("'n2' is there twice"));
  EXPECT_THAT(with([](CsvShape& s) { s.columns[2] = "n_1"; }),
              AllOf(HasSubstr("feature 'n1': there is no column 'n1'"), HasSubstr("'n_1'?")));
  EXPECT_EQ(with([](CsvShape& s) {
              s.columns[2] = "price";
              s.features = {{"n1", "price"}};
            }),
            "");
  EXPECT_THAT(with([](CsvShape& s) { s.features = {{"n9", "id"}}; }), HasSubstr("no feature 'n9'"));
  EXPECT_THAT(with([](CsvShape& s) { s.user = "user"; }), HasSubstr("user: there is no column"));
  EXPECT_EQ(with([](CsvShape& s) { s.label = ""; }), "");
  EXPECT_THAT(with([](CsvShape& s) {
                s.label = "";
                s.label_rule = {{}, 1.0};
              }),
              HasSubstr("without a label"));
  EXPECT_THAT(with([](CsvShape& s) {
                s.label_rule = {{{"a", true}}, 1.0};
              }),
              HasSubstr("two rules"));
}

TEST(CsvOwnTest, LinesMayHaveNoLabel) {
  const FeatureTransform transform(
      {.dense = {}, .categorical = {{.name = "item", .buckets = 1000, .dim = 2}}});
  CsvShape shape;
  shape.columns = {"user", "item"};
  shape.header = false;
  shape.label = "";
  const Status checked = CheckCsvShape(shape, transform.schema());
  ASSERT_TRUE(checked) << checked.error().message;
  Batch batch;
  transform.StartBatch(&batch);
  RawRecords records;
  records.bytes = "u,a";
  records.end.push_back(3);
  std::vector<DeadLetter> dead;
  MakeCsvCodec(transform, shape, {})->Decode(records, &batch, &dead);
  ASSERT_TRUE(dead.empty()) << dead[0].reason;
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(batch.label[0], 1);
}

// JSON with the same parts is the oracle: all that can be said in both is the same example.
TEST_F(CsvTest, ALineIsTheSameExampleAsJson) {
  std::mt19937_64 random(9);
  const auto one_of = [&random](std::initializer_list<const char*> choices) {
    return std::string(choices.begin()[random() % choices.size()]);
  };
  const InteractionOptions options{.items = Items("a\nb\n")};
  const auto csv = MakeCodec(options);
  const auto json = MakeShapedJsonCodec(transform_, {}, options);
  size_t good = 0;
  for (int i = 0; i < 5'000; ++i) {
    const std::string label = one_of({"0", "1", "", "2"}), user = one_of({"u", "", "7"}),
                      item = one_of({"a", "c", ""}), id = one_of({"e", "", "5"}),
                      time = one_of({"12", "-5", "", "now"}), n1 = one_of({"1", "-2.5", "", "x"}),
                      c1 = one_of({"v", "4", ""}), set = one_of({"", "x|7", "y", "|y||x|", "|"});
    const RawRecords line = Records(
        {fmt::format("{},{},{},,{},{},{},{},{}", id, user, n1, c1, set, item, label, time)});
    std::string values;
    for (size_t begin = 0; begin <= set.size();) {
      const size_t end = std::min(set.find('|', begin), set.size());
      if (end > begin)
        values += (values.empty() ? "\"" : ",\"") + set.substr(begin, end - begin) + '"';
      begin = end + 1;
    }
    const auto text = [](const std::string& value) {
      return value.empty() ? "null" : '"' + value + '"';
    };
    const RawRecords object = Records({fmt::format(
        R"({{"label":{},"user":{},"item":{},"event_id":{},"timestamp_ms":{},"features":{{"n1":{},"set":[{}],"c1":{}}}}})",
        label.empty() ? "null" : label, text(user), text(item), text(id), text(time), text(n1),
        values, text(c1))});
    Decoded a, b;
    transform_.StartBatch(&a.batch);
    transform_.StartBatch(&b.batch);
    csv->Decode(line, &a.batch, &a.dead);
    json->Decode(object, &b.batch, &b.dead);
    ASSERT_EQ(a.batch.size(), b.batch.size()) << line.bytes << " and " << object.bytes;
    if (a.batch.size() == 0) {
      EXPECT_EQ(a.dead[0].part, b.dead[0].part) << line.bytes;
      continue;
    }
    ++good;
    EXPECT_EQ(a.batch.label, b.batch.label);
    EXPECT_EQ(a.batch.timestamp_ms, b.batch.timestamp_ms);
    EXPECT_EQ(a.batch.dense, b.batch.dense);
    EXPECT_EQ(a.batch.row, b.batch.row);
    EXPECT_EQ(a.batch.item, b.batch.item);
    EXPECT_EQ(a.batch.user[0], b.batch.user[0]);
    EXPECT_EQ(a.batch.event_id[0], b.batch.event_id[0]);
  }
  EXPECT_GT(good, 1000u);
}

TEST_F(CsvTest, NoBytesBreakIt) {
  std::mt19937_64 random(11);
  const auto codec = MakeCodec({.items = Items("a\nb\n")});
  for (int i = 0; i < 20'000; ++i) {
    std::string record = "e,u,3,-2.5,\"abc\",x|y,b,1,1500";
    for (size_t n = random() % 4; n > 0; --n)
      record[random() % record.size()] = static_cast<char>(random() % 256);
    if (random() % 4 == 0) record.resize(random() % record.size());
    const Decoded decoded = Decode({record}, {.items = Items("a\nb\n")});
    EXPECT_EQ(decoded.batch.size() + decoded.dead.size(), 1u);
  }
}

}  // namespace
}  // namespace tacit::event
