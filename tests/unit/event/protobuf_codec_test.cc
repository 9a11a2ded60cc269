#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "event/codec.h"
#include "interaction.pb.h"
#include "interactions.h"

namespace tacit::event {
namespace {

using ::testing::HasSubstr;
using v1::Interaction;

// The messages to read are written by the generated classes, and by hand where these cannot do
// wrong.
class ProtobufCodecTest : public InteractionTest {
 protected:
  std::unique_ptr<Codec> MakeCodec(const InteractionOptions& options) const override {
    return MakeProtobufCodec(transform_, options);
  }

  static v1::Feature* Add(Interaction* message, const std::string& name) {
    v1::Feature* feature = message->add_features();
    feature->set_name(name);
    return feature;
  }

  static Interaction Full() {
    Interaction message;
    message.set_event_id("e1");
    message.set_user("u1");
    message.set_timestamp_ms(5);
    message.set_outcome(Interaction::POSITIVE);
    v1::Set* set = Add(&message, "set")->mutable_set();
    for (const char* text : {"x", "y", "x"}) set->add_texts(text);
    Add(&message, "n2")->set_number(-2.5);
    Add(&message, "c1")->set_text("abc");
    Add(&message, "n1")->set_integer(3);
    return message;
  }
  static constexpr const char* kOne = "\x28\x02";  // outcome: POSITIVE
};

TEST_F(ProtobufCodecTest, ReadsFeaturesByName) {
  const Decoded decoded = Decode({Full().SerializeAsString()});
  ASSERT_EQ(decoded.batch.size(), 1u) << decoded.dead.at(0).reason;
  ExpectExample(decoded.batch, 0,
                {.event_id = "e1",
                 .user = "u1",
                 .timestamp_ms = 5,
                 .label = 1,
                 .n1 = 3,
                 .n2 = -2.5,
                 .c1 = "abc",
                 .set = {"x", "y"}});
}

TEST_F(ProtobufCodecTest, PackedFeaturesAreTheSameExample) {
  Interaction named, packed;
  for (Interaction* message : {&named, &packed}) message->set_outcome(Interaction::NEGATIVE);
  Add(&named, "n1")->set_number(7);
  Add(&named, "c1")->set_text("abc");
  packed.add_dense(7);
  packed.add_dense(std::nanf(""));
  packed.add_buckets(static_cast<uint32_t>(transform_.Row(0, "abc")));
  packed.add_buckets(0);
  const Decoded decoded = Decode({named.SerializeAsString(), packed.SerializeAsString()});
  ASSERT_EQ(decoded.batch.size(), 2u) << decoded.dead.at(0).reason;
  ExpectSameExample(decoded.batch, 0, 1);
  EXPECT_TRUE(std::signbit(decoded.batch.dense[1]) && std::signbit(decoded.batch.dense[3]));
  EXPECT_EQ(Decode({packed.SerializeAsString()}, {.missing = MissingPolicy::kReject}).dead.size(),
            0u);
  EXPECT_EQ(
      Decode({named.SerializeAsString()}, {.missing = MissingPolicy::kReject}).dead.at(0).reason,
      "feature 'n2' is missing");
}

TEST_F(ProtobufCodecTest, ItemsAreThoseOfTheCatalogue) {
  std::vector<std::string> records;
  for (const char* item : {"b", "42", "unknown", ""}) {
    Interaction message = Full();
    message.set_item(item);
    records.push_back(message.SerializeAsString());
  }
  records.push_back("damaged");
  const Decoded decoded = Decode(records, {.items = Items("a\nb\n42\n")});
  EXPECT_EQ(decoded.dead.size(), 1u);
  EXPECT_THAT(decoded.batch.item, testing::ElementsAre(1, 2, kNoItem, kNoItem));
}

TEST_F(ProtobufCodecTest, AnIntegerCategoryIsItsDigits) {
  Interaction number = Full(), text = Full();
  number.mutable_features(2)->set_integer(-42);
  text.mutable_features(2)->set_text("-42");
  const Decoded decoded = Decode({number.SerializeAsString(), text.SerializeAsString()});
  ASSERT_EQ(decoded.batch.size(), 2u);
  ExpectSameExample(decoded.batch, 0, 1);
}

TEST_F(ProtobufCodecTest, WhatNobodyKnowsIsPassedOver) {
  Interaction message = Full();
  Add(&message, "other")->set_number(NAN);
  // Field 99 as a varint, field 98 as bytes, field 97 as a group that holds field 1.
  const std::string unknown("\x98\x06\x05\x92\x06\x03xyz\x8b\x06\x08\x01\x8c\x06", 15);
  const Decoded decoded =
      Decode({Full().SerializeAsString(), message.SerializeAsString() + unknown});
  ASSERT_EQ(decoded.batch.size(), 2u) << decoded.dead.at(0).reason;
  ExpectSameExample(decoded.batch, 0, 1);
}

TEST_F(ProtobufCodecTest, BadRecordsAreNamedAndLeaveNothingBehind) {
  std::vector<std::pair<std::string, std::string>> bad;
  const auto add = [&](const std::string& reason, const auto& change) {
    Interaction message = Full();
    change(message);
    bad.emplace_back(message.SerializeAsString(), reason);
  };
  add("outcome is missing", [](Interaction& m) { m.clear_outcome(); });
  add("outcome: is none of those there are",
      [](Interaction& m) { m.set_outcome(static_cast<Interaction::Outcome>(7)); });
  add("n2: is not finite", [](Interaction& m) { m.mutable_features(1)->set_number(NAN); });
  add("n2: is not finite", [](Interaction& m) { m.mutable_features(1)->set_number(INFINITY); });
  add("n2: is no number", [](Interaction& m) { m.mutable_features(1)->set_text("1"); });
  add("c1: is neither a text nor an integer",
      [](Interaction& m) { m.mutable_features(2)->set_number(1); });
  add("c1: is a set", [](Interaction& m) { m.mutable_features(2)->mutable_set(); });
  add("c1: is there twice", [](Interaction& m) { *m.add_features() = m.features(2); });
  add("features are there by name and packed", [](Interaction& m) {
    m.add_dense(1);
    m.add_dense(1);
  });
  add("dense: 3 numbers, 2 expected", [](Interaction& m) {
    m.clear_features();
    for (int i = 0; i < 3; ++i) m.add_dense(1);
  });
  add("dense 1 (n2): is infinite", [](Interaction& m) {
    m.clear_features();
    m.add_dense(1);
    m.add_dense(-INFINITY);
  });
  add("buckets 0 (c1): is beyond the table's 1000 buckets", [](Interaction& m) {
    m.clear_features();
    m.add_buckets(1000);
    m.add_buckets(0);
  });
  add("buckets 1 (set): a set is sent by name", [](Interaction& m) {
    m.clear_features();
    m.add_buckets(1);
    m.add_buckets(1);
  });
  const std::string whole = Full().SerializeAsString();
  bad.emplace_back("", "outcome is missing");
  bad.emplace_back(whole.substr(0, whole.size() - 1), "truncated");
  bad.emplace_back(
      "\x0a\x7f"
      "abc",
      "truncated");  // more bytes announced than there are
  bad.emplace_back(std::string("\x3a\x03\0\0\0", 5) + kOne, "truncated");  // three bytes of floats
  bad.emplace_back(std::string(kOne) + "\x0f", "truncated");               // wire type 7
  bad.emplace_back(std::string("\0\0\0\0\1{}", 7), "truncated");

  std::vector<std::string> records;
  for (const auto& [record, reason] : bad) {
    records.push_back(record);
    records.push_back(whole);
  }
  const Decoded decoded = Decode(records);
  ASSERT_EQ(decoded.dead.size(), bad.size());
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_THAT(decoded.dead[i].reason, HasSubstr(bad[i].second)) << i;
    EXPECT_EQ(decoded.dead[i].offset, kFirstOffset + 2 * i);
    ExpectSameExample(decoded.batch, 0, i);
  }
}

// After any cut or flip: an example or a dead letter, and nothing read beside the record.
TEST_F(ProtobufCodecTest, DamageIsNeverMoreThanADeadLetter) {
  const std::string whole = Full().SerializeAsString();
  std::vector<std::string> records;
  for (size_t size = 0; size < whole.size(); ++size) records.push_back(whole.substr(0, size));
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = whole;
    for (uint64_t n = 1 + random() % 3; n > 0; --n)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    records.push_back(damaged);
  }
  const Decoded decoded = Decode(records);
  EXPECT_GT(decoded.dead.size(), whole.size() / 2);
  EXPECT_GT(decoded.batch.size(), 1000u);
}

TEST_F(ProtobufCodecTest, AnEventMayBeNamedBesideItsRecord) {
  Interaction message = Full();
  message.clear_event_id();
  RawRecords records = Records({message.SerializeAsString(), Full().SerializeAsString()});
  for (const char* id : {"/shop 1", "/shop 2"}) records.event_id.Append(id);
  const Decoded decoded = Decode(records);
  EXPECT_EQ(decoded.batch.event_id[0], "/shop 1");
  EXPECT_EQ(decoded.batch.event_id[1], "e1");
}

TEST_F(ProtobufCodecTest, ATimeFarAheadIsRefused) {
  Interaction message = Full();
  message.set_timestamp_ms(2'000'000);
  RawRecords records = Records({message.SerializeAsString()});
  records.timestamp_ms.assign(1, 1'000'000);
  EXPECT_EQ(Decode(records, {.ahead_max_ms = 1'000'000}).dead.size(), 0u);
  EXPECT_THAT(Decode(records, {.ahead_max_ms = 999'999}).dead.at(0).reason,
              HasSubstr("timestamp_ms: lies more than 999.999 s ahead"));
}

}  // namespace
}  // namespace tacit::event
