// Avro's schemas and records. The bytes are those of the specification's examples, or written by
// hand after it; tests/system/avro holds whole records against fastavro.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event/avro/codec.h"
#include "event/avro/program.h"

namespace tacit::event {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

std::string Field(std::string_view name, std::string_view type, std::string_view more = "") {
  return fmt::format(R"({{"name":"{}","type":{}{}}})", name, type, more);
}
std::string Record(std::string_view fields, std::string_view more = "") {
  return fmt::format(R"({{"type":"record","name":"R","fields":[{}]{}}})", fields, more);
}

std::string SchemaError(std::string_view schema) {
  const auto parsed = AvroSchema::Parse(schema);
  return parsed ? "" : parsed.error().message;
}

Result<std::shared_ptr<const AvroProgram>> Program(std::string_view writer,
                                                   std::string_view reader = "") {
  TACIT_ASSIGN(auto written, AvroSchema::Parse(writer));
  std::shared_ptr<const AvroSchema> read;
  if (!reader.empty()) {
    TACIT_ASSIGN(read, AvroSchema::Parse(reader));
  }
  return AvroProgram::Compile(std::move(written), std::move(read), nullptr);
}

// The record as JSON, or why there is none.
std::string Json(const std::string& bytes, std::string_view writer, std::string_view reader = "") {
  const auto program = Program(writer, reader);
  if (!program) return program.error().message;
  std::string json;
  const MaybeBad bad = WriteAsJson(**program, bytes, &json);
  return bad ? bad->reason : json;
}
// A record with one field `a`.
std::string OfField(const std::string& bytes, std::string_view writer,
                    std::string_view reader = "") {
  const std::string read = reader.empty() ? "" : Record(Field("a", reader));
  const std::string json = Json(bytes, Record(Field("a", writer)), read);
  return json.starts_with("{\"a\":") ? json.substr(5, json.size() - 6) : json;
}

TEST(AvroProgram, ReadsTheExamplesOfTheSpecification) {
  EXPECT_EQ(
      Json("\x36\x06\x66\x6f\x6f", Record(Field("a", "\"long\"") + "," + Field("b", "\"string\""))),
      R"({"a":27,"b":"foo"})");
  EXPECT_EQ(OfField("\x04\x06\x36\x00"s, R"({"type":"array","items":"long"})"), "[3,27]");
  EXPECT_EQ(OfField("\x02\x02\x61", R"(["null","string"])"), R"("a")");
  EXPECT_EQ(OfField("\0"s, R"(["null","string"])"), "null");
  for (const auto& [bytes, number] :
       std::vector<std::pair<std::string, std::string>>{{"\0"s, "0"},
                                                        {"\1", "-1"},
                                                        {"\2", "1"},
                                                        {"\3", "-2"},
                                                        {"\x7f", "-64"},
                                                        {"\x80\x01", "64"}})
    EXPECT_EQ(OfField(bytes, "\"long\""), number);
}

TEST(AvroProgram, ReadsEachKindOfValue) {
  EXPECT_EQ(OfField("\1", "\"boolean\""), "true");
  EXPECT_EQ(OfField("\0\0\xc0\x3f"s, "\"float\""), "1.5");
  EXPECT_EQ(OfField("\0\0\0\0\0\0\xf8\xbf"s, "\"double\""), "-1.5");
  EXPECT_EQ(OfField("\x04\xe9\n", "\"bytes\""), R"("\u00e9\u000a")");
  EXPECT_EQ(OfField("\x04\xc3\xa9", "\"string\""), "\"\xc3\xa9\"");
  EXPECT_EQ(OfField("ab", R"({"type":"fixed","name":"F","size":2})"), R"("ab")");
  EXPECT_EQ(OfField("\2", R"({"type":"enum","name":"E","symbols":["x","y"]})"), R"("y")");
  EXPECT_EQ(OfField("\2\2k\6\0"s, R"({"type":"map","values":"int"})"), R"({"k":3})");
  // Blocks that say their size, and several of them.
  EXPECT_EQ(OfField("\3\4\2\4\2\6\0"s, R"({"type":"array","items":"int"})"), "[1,2,3]");
  EXPECT_EQ(OfField("\x13\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\"long\""),
            "no valid Avro: bytes follow the record");
  EXPECT_EQ(OfField("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\"long\""),
            "-9223372036854775808");
}

TEST(AvroProgram, ReadsDecimalsAndDates) {
  const auto decimal = [](std::string_view scale) {
    return fmt::format(R"({{"type":"bytes","logicalType":"decimal","precision":38,"scale":{}}})",
                       scale);
  };
  EXPECT_EQ(OfField("\4\4\xd2", decimal("2")), "12.34");
  EXPECT_EQ(OfField("\4\xfb\x2e", decimal("2")), "-12.34");
  EXPECT_EQ(OfField("\2\xff", decimal("3")), "-0.001");
  EXPECT_EQ(OfField("\0"s, decimal("0")), "0");
  EXPECT_EQ(OfField("\x22\xff\x80" + std::string(15, '\0'), decimal("0")),
            "-170141183460469231731687303715884105728");
  EXPECT_EQ(OfField("\x22\1" + std::string(16, '\0'), decimal("0")),
            "is a decimal of more than 16 bytes");
  EXPECT_EQ(OfField("\xf2\xb9\x02", R"({"type":"int","logicalType":"date"})"), R"("2025-01-01")")
      << "20,089 days";
  EXPECT_EQ(OfField("\1", R"({"type":"int","logicalType":"date"})"), R"("1969-12-31")");
}

TEST(AvroProgram, ReadsByAnotherSchema) {
  // Promotions.
  EXPECT_EQ(OfField("\6", "\"int\"", "\"double\""), "3");
  EXPECT_EQ(OfField("\0\0\xc0\x3f"s, "\"float\"", "\"double\""), "1.5");
  EXPECT_EQ(OfField("\2a", "\"bytes\"", "\"string\""), R"("a")");
  EXPECT_EQ(OfField("\2a", "\"string\"", "\"bytes\""), R"("a")");
  EXPECT_THAT(OfField("\6", "\"long\"", "\"int\""), HasSubstr("field 'a' is of a type"));
  // Unions: the first branch that fits.
  EXPECT_EQ(OfField("\6", "\"int\"", R"(["null","long"])"), "3");
  EXPECT_EQ(OfField("\2\6", R"(["null","int"])", "\"int\""), "3");
  EXPECT_EQ(OfField("\0"s, R"(["null","int"])", "\"int\""),
            "a type that the reader's schema has no place for");
  // Enums.
  constexpr std::string_view kWriter = R"({"type":"enum","name":"E","symbols":["x","y","z"]})";
  constexpr std::string_view kReader =
      R"({"type":"enum","name":"E","symbols":["other","z"],"default":"other"})";
  EXPECT_EQ(OfField("\4", kWriter, kReader), R"("z")");
  EXPECT_EQ(OfField("\0"s, kWriter, kReader), R"("other")");
  EXPECT_THAT(OfField("\0"s, kWriter, R"({"type":"enum","name":"E","symbols":["z"]})"),
              HasSubstr("a symbol that the reader's schema does not know"));
}

TEST(AvroProgram, FieldsComeByNameAliasAndDefault) {
  const std::string writer = Record(Field("old", "\"int\"") + "," + Field("gone", "\"string\"") +
                                    "," + Field("same", "\"int\""));
  const std::string reader =
      Record(Field("same", "\"int\"") + "," + Field("new", "\"long\"", R"(,"aliases":["old"])") +
             "," + Field("set", R"({"type":"array","items":"string"})", R"(,"default":["p","q"])") +
             "," + Field("maybe", R"(["null","int"])", R"(,"default":null)") + "," +
             Field("raw", "\"bytes\"", R"(,"default":"\u00ff")") + "," +
             Field("in", Record(Field("x", "\"double\"", ",\"default\":2.5")).replace(25, 1, "I"),
                   ",\"default\":{}"));
  EXPECT_EQ(Json("\2\4ab\6", writer, reader),
            R"({"new":1,"same":3,"set":["p","q"],"maybe":null,"raw":"\u00ff","in":{"x":2.5}})");
  EXPECT_EQ(Json("\2\4ab\6", writer, Record(Field("more", "\"int\""))),
            "field 'more' is not in the writer's schema, and has no default");
  EXPECT_THAT(SchemaError(Record(Field("a", "\"int\"", ",\"default\":\"x\""))),
              HasSubstr("the default of field 'a' is no value of its type"));
}

TEST(AvroProgram, NamesAreThoseOfTheirNamespace) {
  const std::string schema =
      R"({"type":"record","name":"a.b.R","fields":[{"name":"x","type":{"type":"enum","name":"E",
          "symbols":["s"]}},{"name":"y","type":"E"},{"name":"z","type":"a.b.E"}]})";
  EXPECT_EQ(Json("\0\0\0"s, schema), R"({"x":"s","y":"s","z":"s"})");
  EXPECT_THAT(SchemaError(R"({"type":"record","name":"R","fields":[{"name":"x","type":"E"}]})"),
              HasSubstr("there is no type 'E'"));
}

TEST(AvroProgram, ATypeMayHoldItselfWithinBounds) {
  const std::string list = Record(Field("v", "\"int\"") + "," + Field("next", R"(["null","R"])"));
  EXPECT_EQ(Json("\2\2\4\0"s, list), R"({"v":1,"next":{"v":2,"next":null}})");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "\2\2";
  EXPECT_THAT(Json(deep, list), HasSubstr("more than 64 levels"));
  EXPECT_THAT(Json("", Record(Field("me", "\"R\""))), HasSubstr("more than 64 levels"));
}

TEST(AvroProgram, DamageIsFound) {
  constexpr std::string_view kList = R"({"type":"array","items":"long"})";
  const std::string damaged = "no valid Avro: truncated or damaged";
  EXPECT_EQ(OfField("", "\"int\""), damaged);
  EXPECT_EQ(OfField("\x80", "\"int\""), damaged);
  EXPECT_EQ(OfField("\x80\x80\x80\x80\x10", "\"int\""), damaged) << "an int of 33 bits";
  EXPECT_EQ(OfField("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "\"long\""), damaged);
  EXPECT_EQ(OfField("\2", "\"boolean\""), damaged);
  EXPECT_EQ(OfField("\1x", "\"string\""), damaged) << "a length of -1";
  EXPECT_EQ(OfField("\4x", "\"string\""), damaged);
  EXPECT_EQ(OfField("\4", R"(["null","int"])"), damaged);
  EXPECT_EQ(OfField("\1", R"(["null","int"])"), damaged);
  EXPECT_EQ(OfField("\2", R"({"type":"enum","name":"E","symbols":["x"]})"), damaged);
  EXPECT_EQ(OfField("\x0a\2", kList), damaged) << "five elements in a byte";
  EXPECT_EQ(OfField("\1\x10\2\0"s, kList), damaged) << "a block of eight bytes";
  EXPECT_EQ(OfField("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\2\2", kList), damaged);
}

// A record may say that a billion elements follow that take no bytes, or be made of types that
// double with each name.
TEST(AvroProgram, WhatTakesNoBytesTakesNoTime) {
  const std::string nulls = "\x80\x80\x80\x80\x80\x80\x80\x80\x40\0"s;
  EXPECT_EQ(OfField(nulls, R"({"type":"array","items":"null"})"), "[]");
  std::string fields = Field("a0", R"({"type":"record","name":"T0","fields":[]})");
  for (int i = 1; i < 60; ++i)
    fields +=
        "," + Field(fmt::format("a{}", i), fmt::format(R"({{"type":"record","name":"T{0}","fields":[
                              {{"name":"x","type":"T{1}"}},{{"name":"y","type":"T{1}"}}]}})",
                                                       i, i - 1));
  const auto writer = AvroSchema::Parse(Record(fields + "," + Field("n", "\"int\"")));
  ASSERT_TRUE(writer) << writer.error().message;
  std::vector<PlaceNode> wanted(2);
  wanted[0].children = {{"n", 1}};
  wanted[1].parts = {0};
  const auto program = AvroProgram::Compile(
      *writer, nullptr, std::make_shared<const std::vector<PlaceNode>>(std::move(wanted)));
  ASSERT_TRUE(program) << program.error().message;
  struct {
    MaybeBad Value(const AvroStep&, const AvroValue& value) {
      sum += value.integer;
      return std::nullopt;
    }
    MaybeBad Open(const AvroStep&) { return std::nullopt; }
    void Key(std::string_view) {}
    void Close(const AvroStep&) {}
    int64_t sum = 0;
  } sink;
  AvroProgram::Stack stack;
  AvroBytes bytes("\x0e");
  EXPECT_FALSE((*program)->Read(&bytes, &stack, &sink));
  EXPECT_EQ(sink.sum, 7);
}

TEST(AvroProgram, SchemasAreBounded) {
  EXPECT_THAT(SchemaError("{\"type\":"), HasSubstr("byte 8: "));
  EXPECT_THAT(SchemaError("\"int\" x"), HasSubstr("no valid Avro schema: byte "));
  EXPECT_THAT(SchemaError(std::string(5000, '[')), HasSubstr("byte "));
  EXPECT_THAT(SchemaError(std::string(AvroSchema::kBytesMost + 1, ' ')), HasSubstr("bytes"));
  std::string types;
  for (size_t i = 0; i <= AvroSchema::kTypesMost; ++i)
    types += (i == 0 ? "" : ",") + Field(fmt::format("f{}", i), "\"int\"");
  EXPECT_THAT(SchemaError(Record(types)), HasSubstr("more than 5000 types"));
  // Defaults that double with each name.
  std::string fields =
      Field("a0", Record(Field("x", "\"int\"", ",\"default\":1")).replace(25, 1, "T0"),
            ",\"default\":{}");
  for (int i = 1; i < 60; ++i)
    fields +=
        "," + Field(fmt::format("a{}", i), fmt::format(R"({{"type":"record","name":"T{0}","fields":[
                              {{"name":"x","type":"T{1}","default":{{}}}},
                              {{"name":"y","type":"T{1}","default":{{}}}}]}})",
                                                       i, i - 1));
  EXPECT_THAT(SchemaError(Record(fields)), HasSubstr("defaults take more than 1048576 bytes"));
  EXPECT_THAT(SchemaError(R"({"type":"record","name":"R"})"),
              HasSubstr("'R' has no list of fields"));
  EXPECT_THAT(SchemaError("7"), HasSubstr("neither a name, a list nor an object"));
  EXPECT_THAT(SchemaError(R"([["int"]])"), HasSubstr("a union is right within another"));
  EXPECT_THAT(Program("\"int\"").error().message, HasSubstr("no record with fields"));
  EXPECT_THAT(SchemaError(fmt::format("\"{}\"", std::string(1000, 'x'))).size(), testing::Lt(100));
}

// Each pair of types at a place is a step, and there may be too many of them.
TEST(AvroProgram, ProgramsAreBounded) {
  std::string branches;
  for (int i = 0; i < 400; ++i)
    branches += fmt::format(R"({}{{"type":"record","name":"T{}","fields":[{{"name":"x","type":"R"}},
                                {{"name":"n","type":"int"}}]}})",
                            i == 0 ? "" : ",", i);
  const std::string schema = Record(Field("a", "[" + branches + "]"));
  std::vector<PlaceNode> wanted(1000);
  for (uint32_t i = 0; i + 1 < wanted.size(); ++i)
    wanted[i].children = {{i % 2 == 0 ? "a" : "x", i + 1}};
  wanted.back().parts = {0};
  const auto program =
      AvroProgram::Compile(*AvroSchema::Parse(schema), nullptr,
                           std::make_shared<const std::vector<PlaceNode>>(std::move(wanted)));
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message, HasSubstr("more than 50000 steps"));
}

}  // namespace
}  // namespace tacit::event
