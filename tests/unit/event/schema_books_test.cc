#include "event/schema_books.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace tacit::event {
namespace {

using ::testing::HasSubstr;
using Kind = SchemaVerdict::Kind;

constexpr auto kJsonSchema = PayloadKind::kJson;
constexpr auto kProtobufSchema = PayloadKind::kProtobuf;

// A text as it stands in JSON.
std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return quoted + '"';
}

std::string Answer(const std::string& type, const std::string& schema) {
  const std::string told = type.empty() ? "" : fmt::format(R"("schemaType":"{}",)", type);
  return fmt::format(R"({{{}"schema":{}}})", told, Quote(schema));
}

std::string Shipped(const std::string& name) {
  std::ifstream file(std::string(TACIT_SOURCE_DIR) + "/schemas/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

SchemaVerdict JudgeProto(const std::string& body) {
  return JudgeSchema(Answer("PROTOBUF", "syntax = \"proto3\";\nmessage M {\n" + body + "\n}"),
                     kProtobufSchema);
}

TEST(JudgeSchema, OursAreAccepted) {
  EXPECT_EQ(JudgeSchema(Answer("JSON", Shipped("interaction.schema.json")), kJsonSchema).kind,
            Kind::kAccept);
  EXPECT_EQ(JudgeSchema(Answer("PROTOBUF", Shipped("interaction.proto")), kProtobufSchema).kind,
            Kind::kAccept);
}

TEST(JudgeSchema, AnotherTypeIsRejected) {
  const std::string proto = Shipped("interaction.proto");
  EXPECT_EQ(JudgeSchema(Answer("PROTOBUF", proto), kJsonSchema).reason,
            "is of type 'PROTOBUF', JSON expected");
  // A registry does not name its first type.
  const SchemaVerdict avro = JudgeSchema(Answer("", "\"string\""), kJsonSchema);
  EXPECT_EQ(avro.kind, Kind::kReject);
  EXPECT_EQ(avro.reason, "is of type 'AVRO', JSON expected; source.format avro reads it");
}

TEST(JudgeSchema, EvolvedSchemasAreAccepted) {
  EXPECT_EQ(JudgeProto("import1.Outcome outcome = 5; map<string, string> more = 20; oneof a { "
                       "int32 b = 21; } reserved 1 to 4; message Inner { int32 user = 2; }")
                .kind,
            Kind::kAccept);
  // A map from names to numbers comes as our named features do.
  EXPECT_EQ(JudgeProto("int32 outcome = 5; map<string, double> features = 6;").kind, Kind::kAccept);
  EXPECT_EQ(JudgeProto("int32 result = 5; repeated float dense = 7 [packed = false];").kind,
            Kind::kAccept);
  EXPECT_EQ(JudgeSchema(Answer("JSON", R"({"properties":{"label":{},"new":{"type":"null"}}})"),
                        kJsonSchema)
                .kind,
            Kind::kAccept);
  EXPECT_EQ(JudgeSchema(Answer("JSON", "true"), kJsonSchema).kind, Kind::kAccept);
}

TEST(JudgeSchema, OurNumbersWithOtherTypesAreRejected) {
  const std::string outcome = "int32 outcome = 5; ";
  EXPECT_EQ(JudgeProto(outcome + "int64 uid = 2;").reason,
            "its field 2 ('uid') is of another type than our user");
  EXPECT_EQ(JudgeProto(outcome + "string when = 4;").reason,
            "its field 4 ('when') is of another type than our timestamp_ms");
  EXPECT_EQ(JudgeProto(outcome + "repeated double dense = 7;").reason,
            "its field 7 ('dense') is of another type than our dense");
  EXPECT_EQ(JudgeProto(outcome + "repeated uint32 buckets = 8;").reason,
            "its field 8 ('buckets') is of another type than our buckets");
  EXPECT_EQ(JudgeProto(outcome + "float dense = 7;").reason,
            "its field 7 ('dense') is of another type than our dense");
  EXPECT_EQ(JudgeProto(outcome + "string features = 6;").kind, Kind::kReject);
  EXPECT_EQ(JudgeProto("string user = 2;").reason, "it has no outcome (5)");
  EXPECT_EQ(JudgeSchema(Answer("PROTOBUF", "syntax = \"proto3\";"), kProtobufSchema).reason,
            "it has no message");
}

TEST(JudgeSchema, JsonTypesThatCannotBeOursAreRejected) {
  const auto reason = [](const std::string& schema) {
    return JudgeSchema(Answer("JSON", schema), kJsonSchema).reason;
  };
  EXPECT_EQ(reason(R"({"type":"array"})"), "it is no object's");
  EXPECT_EQ(reason(R"({"properties":{"label":{"type":"string"}}})"),
            "its label is of another type than ours");
  EXPECT_EQ(reason(R"({"properties":{"features":{"type":["array","null"]}}})"),
            "its features is of another type than ours");
}

// Something else than a registry has answered.
TEST(JudgeSchema, WhatIsNoAnswerIsNoVerdict) {
  for (const char* answer : {"", "<html>", "[]", "{}"})
    EXPECT_EQ(JudgeSchema(answer, kJsonSchema).kind, Kind::kWait) << answer;
}

// Schemas never change, so that waiting would not help; an operator may decide.
TEST(JudgeSchema, ASchemaThatCannotBeReadIsRejected) {
  for (const std::string& answer :
       {Answer("JSON", "{"), std::string(R"({"schema":7,"schemaType":"JSON"})")}) {
    const SchemaVerdict verdict = JudgeSchema(answer, kJsonSchema);
    EXPECT_EQ(verdict.kind, Kind::kReject) << answer;
    EXPECT_THAT(verdict.reason, HasSubstr("source.registry.schemas"));
  }
  EXPECT_THAT(JudgeProto("int32 x = ;").reason, HasSubstr("cannot be read: line 3;"));
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// Anybody may register a schema, and the parser of Protobuf's calls itself for each level.
TEST(JudgeSchema, DeepSchemasAreRefusedBeforeTheyAreParsed) {
  const auto nested = [](int levels, const std::string& between) {
    return JudgeProto("int32 outcome = 5; " + Repeated("message A{" + between, levels) +
                      Repeated("}", levels));
  };
  EXPECT_EQ(nested(62, "").kind, Kind::kAccept);
  EXPECT_THAT(nested(64, "").reason, HasSubstr("line 3: more than 64 levels"));
  for (const char* opened : {"message A{", "group g = 1 {", "optional group G = 1 {", "oneof o {",
                             "extend E {", "option (o) = {", "message A{ } message B{"}) {
    const std::string text = Repeated(opened, 30'000);
    EXPECT_EQ(JudgeProto(text).kind, Kind::kReject) << opened;
    EXPECT_EQ(JudgeProto(text + Repeated("}", 30'000)).kind, Kind::kReject) << opened;
  }
  // Braces that close nothing, or stand in comments and texts, lend no levels.
  EXPECT_THAT(nested(30'000, " // }\n").reason, HasSubstr("more than 64 levels"));
  EXPECT_THAT(nested(30'000, "option o = \"}\";").reason, HasSubstr("more than 64 levels"));
  EXPECT_THAT(JudgeProto(Repeated("}", 30'000) + Repeated("message A{", 30'000)).reason,
              HasSubstr("more than 64 levels"));
  const std::string arrays = Repeated("[", 100'000), objects = Repeated("{\"a\":", 100'000);
  for (const std::string& text : {arrays, objects})
    EXPECT_EQ(JudgeSchema(Answer("JSON", text), kJsonSchema).kind, Kind::kReject);
  EXPECT_EQ(JudgeSchema(arrays, kJsonSchema).kind, Kind::kWait);
}

TEST(JudgeSchema, LongSchemasAreRefusedBeforeTheyAreParsed) {
  const std::string fields = Repeated("int32 a = 9;", 2000);
  EXPECT_THAT(JudgeProto(fields).reason, HasSubstr("line 3: more than 2000 statements"));
  EXPECT_THAT(JudgeProto("int32 outcome = 5; reserved 9" + Repeated(",9", 25'000) + ";").reason,
              HasSubstr("line 3: more than 50000 tokens"));
  const std::string long_name(900'000, 'n');
  const std::string reason = JudgeProto("int32 outcome = 5; int64 " + long_name + " = 2;").reason;
  EXPECT_THAT(reason, HasSubstr("is of another type than our user"));
  EXPECT_LT(reason.size(), 200u);
  EXPECT_LT(JudgeProto("syntax = \"" + long_name + "\";").reason.size(), 200u);
  EXPECT_LT(
      JudgeSchema(R"({"schema":"","schemaType":")" + long_name + "\"}", kJsonSchema).reason.size(),
      200u);
  EXPECT_THAT(JudgeSchema(Answer("JSON", std::string(1 << 20, ' ')), kJsonSchema).reason,
              HasSubstr("has 1048576 bytes or more"));
}

// The parser took seconds for 2,000 of them, of one name.
TEST(JudgeSchema, ManyOptionalFieldsOfProto3AreRefusedBeforeTheyAreParsed) {
  const auto of = [](const std::string& before, int fields) {
    return JudgeSchema(Answer("PROTOBUF", before + " message M { int32 outcome = 5; " +
                                              Repeated("optional int32 a = 9;", fields) + "}"),
                       kProtobufSchema);
  };
  for (const char* before :
       {"syntax = \"proto3\";", "syntax = 'proto3';", "/* */syntax = \"pro\" \"to3\";",
        "\xEF\xBB\xBFsyntax = \"proto3\";"}) {
    EXPECT_EQ(of(before, 400).kind, Kind::kAccept) << before;
    EXPECT_THAT(of(before, 401).reason, HasSubstr("line 1: more than 400 optional fields"))
        << before;
  }
  EXPECT_THAT(of("syntax = \"proto2\";", 1900).reason, Not(HasSubstr("optional")));
  EXPECT_THAT(of("", 1900).reason, Not(HasSubstr("optional")));
}

// The parser copies what stands in the brackets for each range: 10 kB of schema took 4 GB.
TEST(JudgeSchema, OptionsThatRangesShareAreRefusedBeforeTheyAreParsed) {
  const std::string outcome = "int32 outcome = 5; ";
  const std::string bomb =
      "extensions 9" + Repeated(",9", 10'000) + "[a=1" + Repeated(",a=1", 10'000) + "];";
  for (const std::string& text :
       {bomb, std::string("extensions 9 to 11, 20 to max /* */ [(o) = 1];"),
        std::string("extensions 0x9,\n9[a=1];")})
    EXPECT_THAT(JudgeProto(outcome + text).reason, HasSubstr("ranges of extensions share options"));
  for (const char* text :
       {"extensions 9, 20 to max;", "extensions 9 to 11 [(o) = 1, (p) = 2];",
        "extensions 9, 10; int32 extensions = 12 [deprecated = true, json_name = \"x\"];"})
    EXPECT_EQ(JudgeProto(outcome + text).kind, Kind::kAccept) << text;
}

TEST(PinnedSchemas, AreKnownWithoutAsking) {
  std::map<SchemaKey, bool> pinned;
  pinned[*ParseSchemaKey("7")] = true;
  pinned[*ParseSchemaKey("5F0c9e00-1111-2222-3333-0123456789ab")] = false;
  const auto book = MakePinnedSchemas(std::move(pinned), nullptr);
  EXPECT_EQ(book->Look(7).kind, Kind::kAccept);
  EXPECT_EQ(book->Look(8).kind, Kind::kReject);
  EXPECT_THAT(book->Look(8).reason, HasSubstr("not among the configured ones"));
  const SchemaKey guid = *ParseSchemaKey("5f0c9e00-1111-2222-3333-0123456789ab");
  EXPECT_EQ(book->Look(guid).reason, "rejected by the configuration");
  EXPECT_EQ(Text(guid), "guid 5f0c9e00-1111-2222-3333-0123456789ab");

  // Schemas that are not pinned are left to the next book.
  std::map<SchemaKey, bool> other;
  other[SchemaKey(8)] = true;
  const auto both =
      MakePinnedSchemas({{SchemaKey(7), false}}, MakePinnedSchemas(std::move(other), nullptr));
  EXPECT_EQ(both->Look(7).kind, Kind::kReject);
  EXPECT_EQ(both->Look(8).kind, Kind::kAccept);
}

TEST(PinnedSchemas, OtherNamesAreNone) {
  for (const char* text :
       {"", "x", "7x", "99999999999", "5f0c9e00-1111-2222-3333-0123456789a",
        "5f0c9e00-1111-2222-3333-0123456789ag", "5f0c9e0011112222333301234567890123456"})
    EXPECT_FALSE(ParseSchemaKey(text)) << text;
}

}  // namespace
}  // namespace tacit::event
