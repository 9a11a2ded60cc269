#include "event/envelope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "bytes.h"

namespace tacit::event {
namespace {

using ::testing::HasSubstr;
using Outcome = Envelope::Outcome;
using Kind = SchemaVerdict::Kind;

// Answers as it is set, and counts the questions.
class FakeBook final : public SchemaBook {
 public:
  FakeBook(std::map<SchemaKey, SchemaVerdict>* answers, int* asked, std::vector<SchemaKey>* ahead)
      : answers_(*answers), asked_(*asked), ahead_(*ahead) {}
  bool LookAhead(const SchemaKey& schema) override {
    ahead_.push_back(schema);
    return true;
  }
  SchemaVerdict Look(const SchemaKey& schema) override {
    ++asked_;
    const auto found = answers_.find(schema);
    return found == answers_.end() ? SchemaVerdict{Kind::kWait, "nobody answers"} : found->second;
  }

 private:
  const std::map<SchemaKey, SchemaVerdict>& answers_;
  int& asked_;
  std::vector<SchemaKey>& ahead_;
};

struct Opened {
  Outcome outcome;
  std::string payload, reason;
};
Opened Open(Envelope& envelope, std::string_view value,
            const std::vector<MessageHeader>& headers = {}) {
  std::string_view payload;
  Opened opened;
  opened.outcome = envelope.Open({.value = value, .headers = headers}, &payload, &opened.reason);
  opened.payload = payload;
  return opened;
}

class BareEnvelopeTest : public ::testing::Test {
 protected:
  Envelope envelope_{{}, nullptr};
};

TEST_F(BareEnvelopeTest, TheValueIsThePayload) {
  EXPECT_EQ(Open(envelope_, "{}").payload, "{}");
  EXPECT_EQ(Open(envelope_, "{}", {{"trace", "x"}, {"empty", ""}}).payload, "{}");
  // An empty value is one: what the codec makes of it is its own affair.
  EXPECT_EQ(Open(envelope_, "").outcome, Outcome::kPayload);
}

TEST_F(BareEnvelopeTest, ATombstoneIsADeadLetter) {
  std::string_view payload;
  std::string reason;
  EXPECT_EQ(envelope_.Open({.value = {}, .null = true, .headers = {}}, &payload, &reason),
            Outcome::kFault);
  EXPECT_EQ(reason, "null value");
}

TEST_F(BareEnvelopeTest, AFrameThatNobodyTakesOffIsNamed) {
  const std::string framed = Bytes("\0\0\0\0\7{}");
  const Opened opened = Open(envelope_, framed);
  EXPECT_EQ(opened.outcome, Outcome::kFault);
  EXPECT_THAT(opened.reason, HasSubstr("source.framing: confluent"));
}

TEST_F(BareEnvelopeTest, ACloudEventInBinaryModeIsItsValue) {
  const Opened opened = Open(envelope_, "{}",
                             {{"ce_specversion", "1.0"},
                              {"ce_type", "click"},
                              {"ce_source", "/shop"},
                              {"ce_id", "42"},
                              {"ce_time", "2026-01-01T00:00:00Z"},
                              {"content-type", "application/json"}});
  EXPECT_EQ(opened.payload, "{}");
  EXPECT_EQ(envelope_.event_id(), "/shop 42");
  // It is the event's of that message and of no other.
  Open(envelope_, "{}");
  EXPECT_EQ(envelope_.event_id(), "");
  // Without a version it is no CloudEvent.
  Open(envelope_, "{}", {{"ce_id", "42"}});
  EXPECT_EQ(envelope_.event_id(), "");
}

TEST_F(BareEnvelopeTest, OtherCloudEventsAreRefusedByName) {
  const auto reason = [&](std::vector<MessageHeader> headers) {
    const Opened opened = Open(envelope_, "{}", headers);
    return opened.outcome == Outcome::kFault ? opened.reason : "read";
  };
  EXPECT_THAT(reason({{"content-type", "application/cloudevents+json; charset=UTF-8"}}),
              HasSubstr("a CloudEvent in structured mode; send them in binary mode"));
  EXPECT_EQ(reason({{"ce_specversion", "0.3"}}), "header ce_specversion: is not known, 1.0 is");
  EXPECT_THAT(reason({{"content-type", "application/avro"}}), HasSubstr("source.format avro"));
}

class FramedEnvelopeTest : public ::testing::Test {
 protected:
  Envelope Make(PayloadKind kind) {
    return Envelope({.framed = true, .kind = kind},
                    std::make_unique<FakeBook>(&answers_, &asked_, &ahead_));
  }

  int asked_ = 0;
  std::vector<SchemaKey> ahead_;
  std::map<SchemaKey, SchemaVerdict> answers_ = {
      {7, {Kind::kAccept}}, {8, {Kind::kAccept}}, {9, {Kind::kReject, "is of type AVRO"}}};
  Envelope json_ = Make(PayloadKind::kJson);
  Envelope protobuf_ = Make(PayloadKind::kProtobuf);
  Envelope avro_ = Make(PayloadKind::kAvro);
};

TEST_F(FramedEnvelopeTest, FramesAreTakenOff) {
  EXPECT_EQ(Open(json_, Bytes("\0\0\0\0\7{}")).payload, "{}");
  EXPECT_EQ(Open(protobuf_, Bytes("\0\0\0\0\7\0xyz")).payload, "xyz");
  EXPECT_EQ(Open(protobuf_, Bytes("\0\0\0\0\7\2\0xyz")).payload, "xyz");
}

TEST_F(FramedEnvelopeTest, TheGuidOfAHeaderIsAskedForAndTheValueIsBare) {
  SchemaGuid guid{};
  guid[0] = 0x5f;
  const std::string header = Bytes("\1\x5f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
  const std::vector<MessageHeader> headers = {{"__value_schema_id", header}};
  EXPECT_EQ(Open(json_, "{}", headers).outcome, Outcome::kWait);
  answers_[guid] = {Kind::kAccept};
  EXPECT_EQ(Open(json_, "{}", headers).payload, "{}");
}

// Its schema is all that tells what the bytes are.
TEST_F(FramedEnvelopeTest, AvroKeepsItsFrame) {
  const std::string framed = Bytes("\0\0\0\0\7\0xyz");
  EXPECT_EQ(Open(avro_, framed, {{"content-type", "application/avro"}}).payload, framed);
  answers_[SchemaGuid{}] = {Kind::kAccept};
  const std::string header = Bytes("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
  EXPECT_EQ(Open(avro_, Bytes("\0x"), {{"__value_schema_id", header + "more"}}).payload,
            header + Bytes("\0x"));
  Envelope bare({.kind = PayloadKind::kAvro}, nullptr);
  EXPECT_EQ(Open(bare, Bytes("\0x")).payload, Bytes("\0x")) << "a union's first branch";
}

TEST_F(FramedEnvelopeTest, TheBookIsAskedWhereTheSchemaChanges) {
  for (const char* value : {"\0\0\0\0\7{}", "\0\0\0\0\x8{}"})
    for (int i = 0; i < 10; ++i) Open(json_, std::string_view(value, 7));
  EXPECT_EQ(asked_, 2);
}

TEST_F(FramedEnvelopeTest, TheSchemaOfALaterMessageIsLookedUpAhead) {
  SchemaGuid guid{};
  guid[0] = 0x5f;
  const std::string value = Bytes("\0\0\0\1\0{}");
  const std::string header = Bytes("\1\x5f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
  const std::vector<MessageHeader> headers = {{"__value_schema_id", header}};
  EXPECT_TRUE(json_.LookAhead({.value = value, .headers = {}}));
  EXPECT_TRUE(json_.LookAhead({.value = "{}", .headers = headers}));
  // Neither names a schema.
  EXPECT_TRUE(json_.LookAhead({.value = {}, .null = true, .headers = {}}));
  EXPECT_TRUE(json_.LookAhead({.value = "{}", .headers = {}}));
  EXPECT_THAT(ahead_, testing::ElementsAre(SchemaKey(256), SchemaKey(guid)));
  EXPECT_EQ(asked_, 0);
}

TEST_F(FramedEnvelopeTest, ARejectedSchemaIsADeadLetter) {
  const Opened opened = Open(json_, Bytes("\0\0\0\0\x9{}"));
  EXPECT_EQ(opened.outcome, Outcome::kFault);
  EXPECT_EQ(opened.reason, "schema id 9: is of type AVRO");
}

// Unknown is not for ever: the same message is read once its schema is known.
TEST_F(FramedEnvelopeTest, AnUnknownSchemaIsWaitedFor) {
  const std::string value = Bytes("\0\0\0\1\0{}");
  for (int i = 1; i <= 3; ++i) {
    const Opened opened = Open(json_, value);
    EXPECT_EQ(opened.outcome, Outcome::kWait);
    EXPECT_EQ(opened.reason, "schema id 256: nobody answers");
    EXPECT_EQ(asked_, i);
  }
  answers_[256] = {Kind::kAccept};
  EXPECT_EQ(Open(json_, value).payload, "{}");
}

TEST_F(FramedEnvelopeTest, ADamagedFrameIsADeadLetter) {
  EXPECT_THAT(Open(json_, "{}").reason, HasSubstr("the first byte is not 0x00"));
  EXPECT_THAT(Open(json_, "").reason, HasSubstr("the value is empty"));
  EXPECT_THAT(Open(json_, Bytes("\0\0\0")).reason, HasSubstr("ends within the schema's id"));
  EXPECT_THAT(Open(protobuf_, Bytes("\0\0\0\0\7\2\2xyz")).reason,
              HasSubstr("which alone is known"));
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace tacit::event
