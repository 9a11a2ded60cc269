#include <fmt/format.h>
#include <gmock/gmock.h>

#include "event/avro/codec.h"
#include "event/json_shape.h"
#include "event/schema_books.h"
#include "interactions.h"

namespace tacit::event {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

constexpr char kAvroShop[] = R"({"type":"record","name":"Event","fields":[
  {"name":"id","type":"long"},
  {"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},
  {"name":"what","type":{"type":"enum","name":"What","symbols":["view","buy","look"]}},
  {"name":"who","type":["null",{"type":"record","name":"User","fields":[
    {"name":"id","type":"string"},{"name":"secret","type":{"type":"map","values":"bytes"}}]}]},
  {"name":"price","type":["null",
    {"type":"bytes","logicalType":"decimal","precision":9,"scale":2}]},
  {"name":"tags","type":{"type":"array","items":["null","string","int"]}},
  {"name":"more","type":{"type":"map","values":["null","double","string"]}}]})";

std::string AvroText(std::string_view text) {
  std::string bytes;
  PutAvroLong(static_cast<int64_t>(text.size()), &bytes);
  return bytes.append(text);
}
std::string AvroLong(int64_t value) {
  std::string bytes;
  PutAvroLong(value, &bytes);
  return bytes;
}
std::string AvroDouble(double value) {
  std::string bytes;
  PutAvroFixed(std::bit_cast<uint64_t>(value), &bytes);
  return bytes;
}

class AvroCodecTest : public InteractionTest {
 protected:
  AvroCodecTest() {
    shape_.label = "/what";
    shape_.label_rule.values = {{"buy", true}, {"view", false}};
    shape_.user = "/who/id";
    shape_.item = "";
    shape_.event_id = "/id";
    shape_.timestamp = "/at";
    shape_.features = {{"n1", "/price"}, {"c1", "/tags/1"}, {"n2", "/more/n2"}};
    shape_.features_at = "/more";
  }
  std::unique_ptr<Codec> MakeCodec(const InteractionOptions& options) const override {
    EXPECT_TRUE(CheckShape(shape_, Schema()));
    auto schemas = AvroSchemas::Make(reader_, AvroPlacesOf(shape_, Schema()));
    EXPECT_TRUE(schemas) << schemas.error().message;
    EXPECT_TRUE(!framed_ || (*schemas)->Add(SchemaKey(7), kAvroShop));
    return MakeAvroCodec(transform_, shape_, *schemas, framed_, options);
  }
  std::string ReasonOf(const std::string& record) const {
    const Decoded decoded = Decode({record});
    return decoded.dead.size() == 1 ? decoded.dead[0].reason : "none";
  }
  static std::string Event(int64_t what, const std::string& more = "\0"s,
                           const std::string& tags = "\0"s) {
    return AvroLong(12) + AvroLong(1'500'000) + AvroLong(what) + AvroLong(1) + AvroText("u") +
           AvroLong(1) + AvroText("k") + AvroText("s") + AvroLong(0) + AvroLong(1) +
           AvroText("\x01\x2d"s) + tags + more;
  }

  std::string reader_ = kAvroShop;
  bool framed_ = false;
  AvroShape shape_;
};

TEST_F(AvroCodecTest, PartsLieWhereThePointersSay) {
  const std::string tags = AvroLong(3) + AvroLong(1) + AvroText("x") + AvroLong(2) + AvroLong(-5) +
                           AvroLong(0) + AvroLong(0);
  const std::string more = AvroLong(2) + AvroText("n2") + AvroLong(1) + AvroDouble(-2.5) +
                           AvroText("other") + AvroLong(0) + AvroLong(1) + AvroText("set") +
                           AvroLong(2) + AvroText("y") + AvroLong(0);
  const Decoded decoded = Decode({Event(1, more, tags)});
  ASSERT_EQ(decoded.batch.size(), 1u) << decoded.dead.at(0).reason;
  ExpectExample(decoded.batch, 0,
                {.event_id = "12",
                 .user = "u",
                 .timestamp_ms = 1500,
                 .label = 1,
                 .n1 = 3.01,
                 .n2 = -2.5,
                 .c1 = "-5",
                 .set = {"y"}});
}

TEST_F(AvroCodecTest, AListIsASet) {
  shape_.features = {{"set", "/tags"}, {"c1", "/id"}};
  shape_.missing = {"guest"};
  const std::string tags = AvroLong(-2) + AvroLong(9) + AvroLong(1) + AvroText("x") + AvroLong(2) +
                           AvroLong(7) + AvroLong(1) + AvroLong(1) + AvroText("guest") +
                           AvroLong(0);
  const Decoded decoded = Decode({Event(0, "\0"s, tags)});
  ASSERT_EQ(decoded.batch.size(), 1u) << decoded.dead.at(0).reason;
  ExpectExample(
      decoded.batch, 0,
      {.event_id = "12", .user = "u", .timestamp_ms = 1500, .c1 = "12", .set = {"x", "7"}});
}

TEST_F(AvroCodecTest, WhatIsNotThereIsMissing) {
  const std::string record = AvroLong(12) + AvroLong(0) + AvroLong(0) + AvroLong(0) + AvroLong(0) +
                             AvroLong(0) + AvroLong(0);
  const Decoded decoded = Decode({record});
  ASSERT_EQ(decoded.batch.size(), 1u) << decoded.dead.at(0).reason;
  ExpectExample(decoded.batch, 0, {.event_id = "12"});
  EXPECT_THAT(Decode({record}, {.missing = MissingPolicy::kReject}).dead.at(0).reason,
              HasSubstr("is missing"));
}

TEST_F(AvroCodecTest, ReasonsNameThePlace) {
  EXPECT_EQ(ReasonOf(Event(2)), "label (/what): is none of label_values");
  EXPECT_EQ(ReasonOf(Event(0).substr(0, 9)), "no valid Avro: truncated or damaged");
  EXPECT_EQ(ReasonOf(Event(0) + "x"), "no valid Avro: bytes follow the record");
  const std::string twice =
      AvroLong(2) + AvroText("n2") + AvroLong(0) + AvroText("n2") + AvroLong(0) + AvroLong(0);
  EXPECT_EQ(ReasonOf(Event(0, twice)), "feature 'n2' (/more/n2): is there twice");
  const std::string text =
      AvroLong(1) + AvroText("n2") + AvroLong(2) + AvroText("secret") + AvroLong(0);
  EXPECT_EQ(ReasonOf(Event(0, text)), "feature 'n2' (/more/n2): is no number");
  const std::string infinite =
      AvroLong(1) + AvroText("n2") + AvroLong(1) + AvroDouble(INFINITY) + AvroLong(0);
  EXPECT_EQ(ReasonOf(Event(0, infinite)), "feature 'n2' (/more/n2): is not finite");
  shape_.features = {{"c1", "/tags"}};
  EXPECT_EQ(ReasonOf(Event(0)), "feature 'c1' (/tags): is a list or an object");
  shape_.features = {{"set", "/who"}};
  shape_.user = "";
  EXPECT_EQ(ReasonOf(Event(0)), "feature 'set' (/who): is an object");
}

TEST_F(AvroCodecTest, TimesAreThoseOfTheirLogicalType) {
  shape_ = {};
  shape_.label = "";
  shape_.event_id = "";
  shape_.timestamp = "/at";
  shape_.features = {{"n2", "/at"}};
  const auto time_of = [&](std::string_view type, int64_t written) -> int64_t {
    reader_ =
        fmt::format(R"({{"type":"record","name":"R","fields":[{{"name":"at","type":{}}}]}})", type);
    const Decoded decoded = Decode({AvroLong(written)});
    if (decoded.batch.size() == 0) return -1;
    EXPECT_EQ(decoded.batch.dense[1], static_cast<float>(written)) << "a number is what is stored";
    return decoded.batch.timestamp_ms[0];
  };
  const auto logical = [](std::string_view type, std::string_view name) {
    return fmt::format(R"({{"type":"{}","logicalType":"{}"}})", type, name);
  };
  EXPECT_EQ(time_of("\"long\"", 1500), 1500) << "by timestamp_unit";
  EXPECT_EQ(time_of(logical("int", "date"), 2), 2 * 86'400'000);
  EXPECT_EQ(time_of(logical("long", "timestamp-millis"), 1500), 1500);
  EXPECT_EQ(time_of(logical("long", "timestamp-micros"), 1'500'999), 1500);
  EXPECT_EQ(time_of(logical("long", "timestamp-nanos"), 1'500'999'999), 1500);
  EXPECT_EQ(time_of(logical("int", "time-millis"), 5), -1) << "no date";
  EXPECT_EQ(time_of(logical("int", "timestamp-millis"), 1500), 1500)
      << "passed over: it is no long";
  shape_.timestamp_unit = TimeUnit::kDatetime;
  shape_.timestamp_zone_minutes = 60;
  EXPECT_EQ(time_of(logical("long", "local-timestamp-millis"), 3'600'000), 0);
  EXPECT_EQ(time_of(logical("long", "local-timestamp-micros"), 3'600'000'000), 0);
  EXPECT_EQ(time_of(logical("long", "timestamp-millis"), 3'600'000), 3'600'000);
  EXPECT_EQ(time_of(logical("long", "local-timestamp-millis"), INT64_MIN), -1);
}

TEST_F(AvroCodecTest, FramesNameTheSchema) {
  framed_ = true;
  reader_ = "";
  const std::string known("\0\0\0\0\7", 5), unknown("\0\0\0\0\x08", 5);
  const Decoded decoded =
      Decode({known + Event(1), unknown + Event(1), known + Event(0), "", "\0\0"s, "\1abc"});
  EXPECT_EQ(decoded.batch.size(), 2u);
  ASSERT_EQ(decoded.dead.size(), 4u);
  EXPECT_EQ(decoded.dead[0].reason, "its schema is not known");
  EXPECT_THAT(decoded.dead[1].reason, HasSubstr("the value is empty"));
  for (const DeadLetter& letter : decoded.dead) EXPECT_EQ(letter.part, BadPart::kSchema);
  // A schema that is accepted and not looked up is the reader's.
  reader_ = kAvroShop;
  EXPECT_EQ(Decode({unknown + Event(1)}).batch.size(), 1u);
}

TEST_F(AvroCodecTest, ARegistrysSchemaIsReadOrRejected) {
  const auto schemas =
      AvroSchemas::Make(R"({"type":"record","name":"R","fields":[{"name":"label","type":"int"}]})",
                        AvroPlacesOf(AvroShape(), Schema()));
  ASSERT_TRUE(schemas);
  const auto judge = [&](std::string_view answer) {
    return JudgeSchema(answer, PayloadKind::kAvro, SchemaKey(3), schemas->get());
  };
  constexpr std::string_view kGood =
      R"({"schema":"{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"label\",\"type\":\"int\"}]}"})";
  EXPECT_EQ((*schemas)->Find(SchemaKey(3)), nullptr);
  EXPECT_EQ(judge(R"({"schema":"{}","schemaType":"JSON"})").reason,
            "is of type 'JSON', AVRO expected");
  EXPECT_THAT(judge(R"({"schema":"{}"})").reason, HasSubstr("no valid Avro schema"));
  EXPECT_THAT(judge(R"({"schema":"\"int\"","references":[{"name":"Other"}]})").reason,
              HasSubstr("refers to another schema ('Other')"));
  EXPECT_THAT(
      judge(
          R"({"schema":"{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"x\",\"type\":\"int\"}]}"})")
          .reason,
      HasSubstr("field 'label' is not in the writer's schema"));
  EXPECT_EQ((*schemas)->Find(SchemaKey(3)), nullptr);
  EXPECT_EQ(judge(kGood).kind, SchemaVerdict::Kind::kAccept);
  EXPECT_NE((*schemas)->Find(SchemaKey(3)), nullptr);
}

}  // namespace
}  // namespace tacit::event
