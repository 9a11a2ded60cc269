#include "event/confluent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bytes.h"

namespace tacit::event {
namespace {

using ::testing::HasSubstr;

constexpr auto kJson = PayloadKind::kJson;
constexpr auto kProtobuf = PayloadKind::kProtobuf;

std::string ReasonOf(const std::string& value, const std::string& header, PayloadKind kind) {
  Unframed unframed;
  return Unframe(value, header, kind, &unframed).value_or("");
}

TEST(Confluent, TheIdStandsBeforeThePayload) {
  const std::string value = Bytes("\0\0\1\2\3{}");
  Unframed unframed;
  ASSERT_FALSE(Unframe(value, "", kJson, &unframed));
  EXPECT_EQ(std::get<int32_t>(unframed.schema), 0x010203);
  EXPECT_EQ(unframed.payload, "{}");
  EXPECT_EQ(Text(unframed.schema), "id 66051");
}

// Confluent's documents: "the most common case of [0] is encoded as a single 0 byte".
TEST(Confluent, ProtobufNamesTheFirstMessageInTwoWays) {
  for (const std::string& indexes : {Bytes("\0"), Bytes("\2\0")}) {
    const std::string value = Bytes("\0\0\0\0\5") + indexes + "payload";
    Unframed unframed;
    ASSERT_FALSE(Unframe(value, "", kProtobuf, &unframed));
    EXPECT_EQ(unframed.payload, "payload");
  }
}

TEST(Confluent, AGuidStandsInAHeaderAndThePayloadIsBare) {
  const std::string guid = Bytes("\x5f\x0c\0\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c\x0d");
  Unframed unframed;
  const std::string json_header = "\1" + guid, protobuf_header = json_header + Bytes("\0");
  ASSERT_FALSE(Unframe("{}", json_header, kJson, &unframed));
  EXPECT_EQ(unframed.payload, "{}");
  EXPECT_EQ(Text(unframed.schema), "guid 5f0c0001-0203-0405-0607-08090a0b0c0d");
  ASSERT_FALSE(Unframe("\x28\x02", protobuf_header, kProtobuf, &unframed));
  EXPECT_EQ(unframed.payload, "\x28\x02");
  EXPECT_THAT(ReasonOf("{}", "\2" + guid, kJson), HasSubstr("the first byte is not 0x01"));
  EXPECT_THAT(ReasonOf("{}", "\1" + guid.substr(1), kJson), HasSubstr("ends within"));
}

TEST(Confluent, DamagedFramesAreNamed) {
  EXPECT_THAT(ReasonOf("", "", kJson), HasSubstr("the value is empty"));
  EXPECT_THAT(ReasonOf("{}", "", kJson), HasSubstr("the first byte is not 0x00"));
  EXPECT_THAT(ReasonOf(Bytes("\0\0\0\0"), "", kJson), HasSubstr("ends within the schema's id"));
  EXPECT_THAT(ReasonOf(Bytes("\0\0\0\0\1"), "", kProtobuf), HasSubstr("indexes are damaged"));
  EXPECT_THAT(ReasonOf(Bytes("\0\0\0\0\1\2"), "", kProtobuf), HasSubstr("indexes are damaged"));
  EXPECT_THAT(ReasonOf(Bytes("\0\0\0\0\1\xff\xff\xff\xff\xff\1"), "", kProtobuf),
              HasSubstr("indexes are damaged"));
  EXPECT_THAT(ReasonOf(Bytes("\0\0\0\0\1\1"), "", kProtobuf), HasSubstr("indexes are damaged"));
  EXPECT_THAT(ReasonOf(Bytes("\0\0\0\0\1\2\2x"), "", kProtobuf),
              HasSubstr("another message of its schema"));
  EXPECT_THAT(ReasonOf(Bytes("\0\0\0\0\1\4\0\0x"), "", kProtobuf),
              HasSubstr("another message of its schema"));
}

}  // namespace
}  // namespace tacit::event
