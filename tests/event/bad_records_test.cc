// Records of a topic that cannot be learnt from: each kind becomes a dead letter that says why, or
// is waited for, and the messages around it are learnt from.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "event/codec.h"
#include "event/envelope.h"
#include "event/schema_books.h"
#include "interaction.pb.h"

namespace tacit::event {
namespace {

using ::testing::HasSubstr;
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
  EXPECT_EQ(Framed('\5' + Frame(7, Good()).substr(1)),
            "schema frame: the first byte is not 0x00");
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

// The codec decodes every record that a source lets through, whatever its size; the source keeps
// larger ones out.
TEST_F(BadRecordsTest, TenMegabytes) {
  const std::string filler(10 << 20, 'x');
  EXPECT_EQ(Json(filler), "no JSON object");
  EXPECT_EQ(ProtobufBytes(filler), "outcome is missing");  // millions of unknown fields
  EXPECT_EQ(Json(R"({"label":1,"other":")" + filler + "\"}"), "learnt");
  EXPECT_THAT(Json(R"({"label":")" + filler + "\"}"), HasSubstr("is neither 0 nor 1"));
}

TEST_F(BadRecordsTest, TimestampAYearAhead) {
  const std::string reason = fmt::format(
      "timestamp_ms: {} lies 31536000 s ahead of when the record was taken", kNow + kYear);
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
  EXPECT_EQ(Protobuf(message), "outcome: 3 is none of those there are");
  EXPECT_EQ(Json(R"({"label":3})"), "label: '3' is neither 0 nor 1");
}

TEST_F(BadRecordsTest, BucketBeyondItsTable) {
  Interaction message = Message();
  message.add_dense(1);
  message.add_buckets(100);
  EXPECT_EQ(Protobuf(message), "buckets 0 (c1): 100 is beyond the table's 100 buckets");
  message.set_buckets(0, 99);
  EXPECT_EQ(Protobuf(message), "learnt");
}

}  // namespace
}  // namespace tacit::event
