// Records of a topic that cannot be learnt from: each kind becomes a dead letter that says why, or
// is waited for, and the messages around it are learnt from.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "event/codec.h"
#include "event/csv_codec.h"
#include "event/envelope.h"
#include "event/json_shape.h"
#include "event/schema_books.h"
#include "interaction.pb.h"

namespace tacit::event {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using v1::Interaction;

constexpr int64_t kNow = 1'763'640'000'000, kYear = 365ll * 24 * 3'600'000;

class BadRecordsTest : public ::testing::Test {
 protected:
  static FeatureSchema Schema() {
    return {.dense = {{"n1", DenseTransform::kIdentity}},
            .categorical = {{.name = "c1", .buckets = 100, .dim = 2}}};
  }

  // The fate of a message between two good ones: "learnt", "waits: ..." or its dead letter.
  std::string FateOf(Envelope& envelope, const Codec& codec, const Message& message,
                     const std::string& good) const {
    RawRecords records;
    records.origin = "clicks";
    const auto add = [&](std::string_view payload) {
      records.bytes.append(payload);
      records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
      records.timestamp_ms.push_back(kNow);
    };
    add(good);
    std::string_view payload;
    std::string reason;
    switch (envelope.Open(message, &payload, &reason)) {
      case Envelope::Outcome::kWait:
        return "waits: " + reason;
      case Envelope::Outcome::kFault:
        records.faults.push_back({1, reason});
        payload = {};
        break;
      case Envelope::Outcome::kPayload:
        break;
    }
    add(payload);
    add(good);
    Batch batch;
    std::vector<DeadLetter> dead;
    transform_.StartBatch(&batch);
    codec.Decode(records, &batch, &dead);
    EXPECT_EQ(batch.size() + dead.size(), 3u);
    if (dead.empty()) return "learnt";
    EXPECT_EQ(batch.offset, (std::vector<uint64_t>{0, 2}));
    EXPECT_EQ(dead[0].offset, 1u);
    EXPECT_LT(dead[0].reason.size(), 200u);
    return dead[0].reason;
  }

  std::string Json(const std::string& value) const {
    return FateOf(*json_, *json_codec_, {.value = value, .headers = {}}, R"({"label":1})");
  }
  std::string Protobuf(const Interaction& message) const {
    return ProtobufBytes(message.SerializeAsString());
  }
  std::string ProtobufBytes(const std::string& value) const {
    return FateOf(*protobuf_, *protobuf_codec_, {.value = value, .headers = {}}, Good());
  }
  // With a frame around it.
  std::string Framed(const std::string& value) const {
    return FateOf(*framed_, *protobuf_codec_, {.value = value, .headers = {}}, Good());
  }

  static Interaction Message() {
    Interaction message;
    message.set_outcome(Interaction::POSITIVE);
    return message;
  }
  static std::string Good() { return Message().SerializeAsString(); }
  static std::string Frame(char id, const std::string& payload) {
    return std::string("\0\0\0\0", 4) + id + '\0' + payload;
  }

  const FeatureTransform transform_{Schema()};
  const std::unique_ptr<Codec> json_codec_ = MakeJsonCodec(transform_, {});
  const std::unique_ptr<Codec> protobuf_codec_ = MakeProtobufCodec(transform_, {});
  const std::unique_ptr<Envelope> json_ = std::make_unique<Envelope>(EnvelopeOptions{}, nullptr);
  const std::unique_ptr<Envelope> protobuf_ = std::make_unique<Envelope>(
      EnvelopeOptions{.framed = false, .kind = PayloadKind::kProtobuf}, nullptr);
  const std::unique_ptr<Envelope> framed_ = std::make_unique<Envelope>(
      EnvelopeOptions{.framed = true, .kind = PayloadKind::kProtobuf},
      MakePinnedSchemas({{SchemaKey(7), true}, {SchemaKey(8), false}}, nullptr));
};

TEST_F(BadRecordsTest, GoodOnesAreLearnt) {
  EXPECT_EQ(Json(R"({"label":0,"features":{"n1":1,"c1":"a"}})"), "learnt");
  EXPECT_EQ(Protobuf(Message()), "learnt");
  EXPECT_EQ(Framed(Frame(7, Good())), "learnt");
}

TEST_F(BadRecordsTest, NullValue) {
  EXPECT_EQ(
      FateOf(*json_, *json_codec_, {.value = {}, .null = true, .headers = {}}, "{\"label\":1}"),
      "null value");
  EXPECT_EQ(FateOf(*framed_, *protobuf_codec_, {.value = {}, .null = true, .headers = {}}, Good()),
            "null value");
}

TEST_F(BadRecordsTest, EmptyValue) {
  EXPECT_EQ(Json(""), "the record is empty");
  EXPECT_EQ(ProtobufBytes(""), "outcome is missing");
  EXPECT_EQ(Framed(""), "schema frame: the value is empty");
}

TEST_F(BadRecordsTest, WrongMagic) {
  EXPECT_EQ(Framed('\5' + Frame(7, Good()).substr(1)), "schema frame: the first byte is not 0x00");
  EXPECT_THAT(Framed(Good()), HasSubstr("the first byte is not 0x00"));
  EXPECT_THAT(ProtobufBytes(Frame(7, Good())), HasSubstr("as a schema frame does"));
}

TEST_F(BadRecordsTest, UnknownSchema) {
  EXPECT_THAT(Framed(Frame(9, Good())), HasSubstr("schema id 9: not among"));
  EXPECT_EQ(Framed(Frame(8, Good())), "schema id 8: rejected by the configuration");
}

TEST_F(BadRecordsTest, TruncatedProtobuf) {
  Interaction message = Message();
  message.set_user("somebody");
  const std::string whole = message.SerializeAsString();
  EXPECT_THAT(ProtobufBytes(whole.substr(0, 5)), HasSubstr("truncated"));
  EXPECT_THAT(Framed(Frame(7, whole.substr(0, 5))), HasSubstr("truncated"));
}

TEST_F(BadRecordsTest, NotANumber) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Interaction named = Message(), packed = Message();
    v1::Feature* feature = named.add_features();
    feature->set_name("n1");
    feature->set_number(bad);
    EXPECT_EQ(Protobuf(named), "n1: is not finite");
    packed.add_dense(static_cast<float>(bad));
    // Packed, NaN is how a missing number is sent.
    EXPECT_EQ(Protobuf(packed), std::isnan(bad) ? "learnt" : "dense 0 (n1): is infinite");
  }
  EXPECT_EQ(Json(R"({"label":1,"features":{"n1":NaN}})"), "n1: is no number");
  EXPECT_EQ(Json(R"({"label":1,"features":{"n1":1e999}})"), "n1: is no number");
}

// The codec decodes every record that a source lets through, of any size; the source keeps
// larger ones out.
TEST_F(BadRecordsTest, TenMegabytes) {
  const std::string filler(10 << 20, 'x');
  EXPECT_EQ(Json(filler), "no JSON object");
  EXPECT_EQ(ProtobufBytes(filler), "outcome is missing");  // millions of unknown fields
  EXPECT_EQ(Json(R"({"label":1,"other":")" + filler + "\"}"), "learnt");
  EXPECT_THAT(Json(R"({"label":")" + filler + "\"}"), HasSubstr("is neither 0 nor 1"));
}

TEST_F(BadRecordsTest, TimestampAYearAhead) {
  const std::string reason =
      "timestamp_ms: lies more than 86400 s ahead of when the record was taken";
  Interaction message = Message();
  message.set_timestamp_ms(kNow + kYear);
  EXPECT_EQ(Protobuf(message), reason);
  EXPECT_EQ(Json(fmt::format(R"({{"label":1,"timestamp_ms":{}}})", kNow + kYear)), reason);
  // The past is history, however far back.
  message.set_timestamp_ms(1);
  EXPECT_EQ(Protobuf(message), "learnt");
}

TEST_F(BadRecordsTest, UnknownOutcome) {
  Interaction message = Message();
  message.set_outcome(static_cast<Interaction::Outcome>(3));
  EXPECT_EQ(Protobuf(message), "outcome: is none of those there are");
  EXPECT_EQ(Json(R"({"label":3})"), "label: is neither 0 nor 1");
}

// Dead letters are kept longer than records, and outlast a user who is forgotten.
TEST_F(BadRecordsTest, AReasonQuotesNothingOfARecord) {
  constexpr int64_t kSecret = 411111111;
  const std::string secret = std::to_string(kSecret);
  std::vector<std::string> reasons;
  for (const char* json :
       {R"({{"label":{0}}})", R"({{"label":"{0}"}})", R"({{"label":1,"features":{{"n1":"{0}"}}}})",
        R"({{"label":1,"features":{{"c1":[{0}]}}}})", R"({{"label":1,"timestamp_ms":"{0}"}})",
        R"({{"label":1,"timestamp_ms":{0}00000}})", R"({{"label":1,"user":[{0}]}})",
        R"({{"label":1,"event_id":{{"{0}":1}}}})", R"({{"label":1,"{0})", "{0}",
        R"({{"label":1}}{0})", R"({{"label":1,"features":{0}}})"})
    reasons.push_back(Json(fmt::format(fmt::runtime(json), secret)));
  Interaction message = Message();
  message.set_outcome(static_cast<Interaction::Outcome>(kSecret));
  reasons.push_back(Protobuf(message));
  message = Message();
  message.set_timestamp_ms(kSecret * 100'000);
  reasons.push_back(Protobuf(message));
  message = Message();
  message.add_buckets(kSecret);
  reasons.push_back(Protobuf(message));
  message = Message();
  v1::Feature* feature = message.add_features();
  feature->set_name("n1");
  feature->set_text(secret);
  reasons.push_back(Protobuf(message));
  reasons.push_back(ProtobufBytes(secret));
  reasons.push_back(Framed(secret));
  for (const char* header : {"content-type", "ce_specversion", "__value_schema_id"}) {
    const std::string value = header[1] == 'o' ? "application/cloudevents+" + secret : secret;
    const MessageHeader headers[] = {{header, value}};
    reasons.push_back(
        FateOf(*framed_, *protobuf_codec_, {.value = Good(), .headers = headers}, Good()));
  }

  CsvShape lines;
  lines.columns = {"label", "n1", "c1", "at", "paid"};
  lines.header = false;
  lines.timestamp = "at";
  lines.weight = "paid";
  const auto csv = MakeCsvCodec(transform_, lines, {.weight_most = 2});
  for (const char* line : {"{0},1,c,1,1", "1,x{0},c,1,1", "1,1,c,x{0},1", "1,1,c,1,x{0}",
                           "1,1,c,1,{0},2", "1,1,\"{0}", "1,1,\"{0}\"x", "1,1,c,{0}00000,1"})
    reasons.push_back(FateOf(*json_, *csv,
                             {.value = fmt::format(fmt::runtime(line), secret), .headers = {}},
                             "1,1,c,1,1"));
  JsonShape shape;
  shape.label = "/l";
  shape.timestamp = "/t";
  shape.weight = "/w";
  shape.features = {{"n1", "/n"}};
  const auto shaped = MakeShapedJsonCodec(transform_, shape, {.weight_most = 2});
  for (const char* json :
       {R"({{"l":{0}}})", R"({{"l":"{0}"}})", R"({{"l":1,"t":"x{0}"}})", R"({{"l":1,"w":"x{0}"}})",
        R"({{"l":1,"n":"x{0}"}})", R"({{"l":1,"n":[{0}]}})"})
    reasons.push_back(FateOf(*json_, *shaped,
                             {.value = fmt::format(fmt::runtime(json), secret), .headers = {}},
                             R"({"l":1})"));
  const auto criteo = MakeCriteoTsvCodec(transform_);
  for (const char* line : {"{0}\t1\tc", "1\tx{0}\tc", "1\t1\t{0}\tc", "1\t{0}"})
    reasons.push_back(FateOf(*json_, *criteo,
                             {.value = fmt::format(fmt::runtime(line), secret), .headers = {}},
                             "1\t1\tc"));

  for (const std::string& reason : reasons) {
    EXPECT_NE(reason, "learnt");
    // Its beginning is enough, and so are its first bytes as numbers.
    EXPECT_THAT(reason, Not(HasSubstr("4111")));
    EXPECT_THAT(reason, Not(HasSubstr("0x34")));
  }
}

TEST_F(BadRecordsTest, BucketBeyondItsTable) {
  Interaction message = Message();
  message.add_dense(1);
  message.add_buckets(100);
  EXPECT_EQ(Protobuf(message), "buckets 0 (c1): is beyond the table's 100 buckets");
  message.set_buckets(0, 99);
  EXPECT_EQ(Protobuf(message), "learnt");
}

}  // namespace
}  // namespace tacit::event
