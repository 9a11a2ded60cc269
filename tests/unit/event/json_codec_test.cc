#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include "event/codec.h"
#include "interactions.h"

namespace tacit::event {
namespace {

using ::testing::HasSubstr;

class JsonCodecTest : public InteractionTest {
 protected:
  std::unique_ptr<Codec> MakeCodec(const InteractionOptions& options) const override {
    return MakeJsonCodec(transform_, options);
  }
};

TEST_F(JsonCodecTest, ReadsFeaturesByNameInAnyOrder) {
  const Decoded decoded =
      Decode({R"({"event_id":"e1","user":"u1","timestamp_ms":5,"label":1,
           "features":{"n1":3,"c1":"abc","set":["x","y","x"],"n2":-2.5}})",
              R"({"features":{"set":["x","y"],"n2":-2.5,"c1":"abc","n1":3},"label":true,
           "user":"u1","event_id":"e1","timestamp_ms":5})"});
  ASSERT_EQ(decoded.batch.size(), 2u) << decoded.dead.at(0).reason;
  ExpectExample(decoded.batch, 0,
                {.event_id = "e1",
                 .user = "u1",
                 .timestamp_ms = 5,
                 .label = 1,
                 .n1 = 3,
                 .n2 = -2.5,
                 .c1 = "abc",
                 .set = {"x", "y"}});
  EXPECT_EQ(decoded.batch.Slot(0, 1).size(), 2u);
  ExpectSameExample(decoded.batch, 0, 1);
}

TEST_F(JsonCodecTest, ItemsAreThoseOfTheCatalogue) {
  const std::vector<std::string> records = {R"({"label":1,"item":"b"})",
                                            R"({"item":42,"label":0})",
                                            R"({"label":1,"item":"42"})",
                                            R"({"label":1,"item":"\u0062"})",
                                            R"({"label":1,"item":"unknown"})",
                                            R"({"label":1,"item":null})",
                                            R"({"label":1})",
                                            R"({"label":1,"features":{"item":"b"}})"};
  const Decoded decoded = Decode(records, {.items = Items("a\nb\n42\n")});
  EXPECT_TRUE(decoded.dead.empty());
  EXPECT_THAT(decoded.batch.item,
              testing::ElementsAre(1, 2, 2, 1, kNoItem, kNoItem, kNoItem, kNoItem));
  EXPECT_EQ(Decode(records).batch.size(), records.size());
}

TEST_F(JsonCodecTest, ABadRecordLeavesNoItem) {
  const Decoded decoded = Decode(
      {R"({"label":1,"item":"b"})", R"({"label":1,"item":"a"} x)", R"({"label":2,"item":"a"})",
       R"({"label":1,"item":1.5})", R"({"label":1,"item":"a"})"},
      {.items = Items("a\nb\n")});
  EXPECT_EQ(decoded.dead.size(), 3u);
  EXPECT_THAT(decoded.batch.item, testing::ElementsAre(1, 0));
}

// simdjson throws where a word that begins like null is taken for a flag without a look at the
// error.
TEST_F(JsonCodecTest, WordsThatBeginLikeNullAreDeadLetters) {
  for (const char* word :
       {"nope", "nul", "n", "nulll", "n{", "tru", "fals", "t", "f\"", "-", "."}) {
    for (const char* place :
         {R"({"label":1,"features":{"n1":%})", R"({"label":1,"features":{"c1":%})",
          R"({"label":1,"features":{"set":%})", R"({"label":1,"features":{"set":[%]})",
          R"({"label":1,"features":%)", R"({"label":%)", R"({"label":1,"user":%)",
          R"({"label":1,"timestamp_ms":%)", R"({"label":1,"item":%)"}) {
      std::string record = place;
      record.replace(record.find('%'), 1, word);
      const Decoded decoded = Decode({record + "}"}, {.items = Items("a\n")});
      EXPECT_EQ(decoded.dead.size(), 1u) << record;
    }
  }
}

TEST_F(JsonCodecTest, AnIntegerCategoryIsItsDigits) {
  const Decoded decoded = Decode({R"({"label":0,"features":{"c1":42,"set":7}})",
                                  R"({"label":0.0,"features":{"c1":"42","set":["7"]}})"});
  ASSERT_EQ(decoded.batch.size(), 2u);
  ExpectSameExample(decoded.batch, 0, 1);
}

TEST_F(JsonCodecTest, MissingFeaturesFollowThePolicy) {
  const std::vector<std::string> records = {
      R"({"label":1})", R"({"label":1,"features":{"n1":null,"n2":null,"c1":null,"set":[]}})"};
  const Decoded decoded = Decode(records);
  ASSERT_EQ(decoded.batch.size(), 2u);
  ExpectExample(decoded.batch, 0, {.label = 1});
  ExpectSameExample(decoded.batch, 0, 1);
  for (const float number : decoded.batch.dense) EXPECT_TRUE(std::signbit(number));

  // Null is given; a name that is not there is not.
  const Decoded strict = Decode(records, {.missing = MissingPolicy::kReject});
  ASSERT_EQ(strict.batch.size(), 1u);
  ASSERT_EQ(strict.dead.size(), 1u);
  EXPECT_EQ(strict.dead[0].reason, "feature 'n1' is missing");
  EXPECT_EQ(strict.batch.offset[0], kFirstOffset + 1);
}

TEST_F(JsonCodecTest, WhatNobodyKnowsIsPassedOver) {
  const Decoded decoded = Decode({R"({"label":1,"new":{"deep":[1,{"x":2}]},
                                      "features":{"n1":1,"other":[[1],{}],"c1":"a"},"more":null})",
                                  R"({"label":1,"features":{"n1":1,"c1":"a"}})"});
  ASSERT_EQ(decoded.batch.size(), 2u) << decoded.dead.at(0).reason;
  ExpectSameExample(decoded.batch, 0, 1);
}

TEST_F(JsonCodecTest, EscapedTextsAreWhatTheyStandFor) {
  const Decoded decoded =
      Decode({R"({"label":1,"event_id":"a\"\u00e9\n","features":{"\u0063\u0031":"x\ty"}})",
              "{\"label\":1,\"event_id\":\"a\\\"\xc3\xa9\\n\",\"features\":{\"c1\":\"x\\ty\"}}"});
  ASSERT_EQ(decoded.batch.size(), 2u) << decoded.dead.at(0).reason;
  EXPECT_EQ(decoded.batch.event_id[0], "a\"\xc3\xa9\n");
  ExpectSameExample(decoded.batch, 0, 1);
}

// The oracle is strtod: the sign of a zero is a number's, too.
TEST_F(JsonCodecTest, NumbersAreTheSameBitsHoweverTheyAreWritten) {
  std::mt19937_64 random(5);
  std::vector<std::string> tokens = {"0",   "-0",  "-1",   "0.0",     "-0.0", "1e0",
                                     "1E2", "-7 ", "12\n", "12.5e-1", "1 \t", "123456789012345"};
  for (const int64_t near : {999'999'999'999'999, 1'000'000'000'000'000, 9'007'199'254'740'993})
    for (const int64_t number : {near, -near}) tokens.push_back(std::to_string(number));
  for (int i = 0; i < 200; ++i)
    tokens.push_back(std::to_string(static_cast<int64_t>(random()) >> (random() % 64)));
  for (const std::string& token : tokens) {
    const Decoded decoded =
        Decode({fmt::format(R"({{"label":0,"features":{{"n1":{0},"n2":{0}}}}})", token)});
    ASSERT_EQ(decoded.batch.size(), 1u) << token << decoded.dead.at(0).reason;
    const double number = std::strtod(token.c_str(), nullptr);
    for (size_t feature = 0; feature < 2; ++feature)
      EXPECT_EQ(std::bit_cast<uint32_t>(decoded.batch.dense[feature]),
                std::bit_cast<uint32_t>(transform_.Dense(feature, number)))
          << token;
  }
}

TEST_F(JsonCodecTest, WhatOnlyLooksLikeANumberOrATextIsADeadLetter) {
  for (const char* token :
       {"00", "-00", "01", "-01", "007", "-", "--1", "+1", "1-", "12a", "1_0", "0x10", "1 2", ".5"})
    EXPECT_EQ(Decode({fmt::format(R"({{"label":0,"features":{{"n1":{}}}}})", token)}).dead.size(),
              1u)
        << token;
  for (const char* token :
       {R"("a"b")", R"("a" "b")", R"("a)", R"(a")", R"("a\")", R"("\x")", "\"a\nb\""})
    EXPECT_EQ(Decode({fmt::format(R"({{"label":0,"features":{{"c1":{}}}}})", token)}).dead.size(),
              1u)
        << token;
}

TEST_F(JsonCodecTest, TextsAreTheirBytesHoweverTheyAreWritten) {
  const std::pair<std::string, std::string> texts[] = {{R"("")", ""},
                                                       {R"(" ")", " "},
                                                       {R"("a" )", "a"},
                                                       {R"("\"")", "\""},
                                                       {R"("\\")", "\\"},
                                                       {R"("a\\\"")", "a\\\""},
                                                       {R"(",:{}[]")", ",:{}[]"},
                                                       {R"("null")", "null"},
                                                       {R"("é")", "é"},
                                                       {"null", ""},
                                                       {"-12", "-12"},
                                                       {R"("-12")", "-12"}};
  for (const auto& [written, text] : texts) {
    const Decoded decoded = Decode(
        {fmt::format(R"({{"label":0,"user":{0},"features":{{"c1":{0},"set":[{0}]}}}})", written)});
    ASSERT_EQ(decoded.batch.size(), 1u) << written << decoded.dead.at(0).reason;
    ExpectExample(decoded.batch, 0,
                  {.user = text, .n1 = 0, .n2 = 0, .c1 = text, .set = {std::string_view(text)}});
  }
}

// The parser reads past the record: the last one has nothing there.
TEST_F(JsonCodecTest, RecordsOfAnySizeAtTheEndOfTheirRun) {
  for (size_t size = 0; size < 200; ++size) {
    const std::string id(size, 'e');
    RawRecords records = Records({fmt::format(R"({{"label":1,"event_id":"{}"}})", id)});
    records.bytes.shrink_to_fit();
    const Decoded decoded = Decode(records);
    ASSERT_EQ(decoded.batch.size(), 1u) << size;
    EXPECT_EQ(decoded.batch.event_id[0], id);
  }
}

TEST_F(JsonCodecTest, BadRecordsAreNamedAndLeaveNothingBehind) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "the record is empty"},
      {"{", "no valid JSON"},
      {R"({"label":1)", "no valid JSON"},
      {R"([1])", "no JSON object"},
      {R"({"label":1}{})", "something follows"},
      {R"({"features":{"n1":1}})", "label is missing"},
      {R"({"label":2})", "label: is neither 0 nor 1"},
      {R"({"label":"1"})", "label: is neither 0 nor 1"},
      {R"({"label":1,"features":[]})", "features: is no object"},
      {R"({"label":1,"features":{"n1":"3"}})", "n1: is no number"},
      {R"({"label":1,"features":{"n1":NaN}})", "n1: is no number"},
      {R"({"label":1,"features":{"n1":1e999}})", "n1: is no number"},
      {R"({"label":1,"features":{"n1":1,"n1":2}})", "n1: is there twice"},
      {R"({"label":1,"features":{"c1":1.5}})", "c1: is neither a text nor an integer"},
      {R"({"label":1,"features":{"c1":["a"]}})", "c1: is neither a text nor an integer"},
      {R"({"label":1,"features":{"set":[["a"]]}})", "set: is no list of texts and integers"},
      {R"({"label":1,"timestamp_ms":"now"})", "timestamp_ms: is no integer"},
      {R"({"label":1,"event_id":{}})", "event_id: is neither a text nor an integer"},
      {"{\"label\":1,\"event_id\":\"\xff\"}", "no valid JSON"},
      {std::string("\0\0\0\0\1{}", 7), "no JSON object"},
  };
  std::vector<std::string> records;
  const std::string good = R"({"label":1,"event_id":"g","features":{"n1":1,"set":["a","b"]}})";
  for (const auto& [record, reason] : bad) {
    records.push_back(record);
    records.push_back(good);
  }
  const Decoded decoded = Decode(records);
  ASSERT_EQ(decoded.dead.size(), bad.size());
  ASSERT_EQ(decoded.batch.size(), bad.size());
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_THAT(decoded.dead[i].reason, HasSubstr(bad[i].second)) << bad[i].first;
    EXPECT_EQ(decoded.dead[i].offset, kFirstOffset + 2 * i);
    ExpectSameExample(decoded.batch, 0, i);
  }
}

// The record's own fields go before those given beside it; a source may give none at all.
TEST_F(JsonCodecTest, AnEventMayBeNamedBesideItsRecord) {
  RawRecords records = Records({R"({"label":1})", R"({"label":1,"event_id":"own"})", "{"});
  EXPECT_EQ(Decode(records).batch.event_id[0], "");
  for (const char* id : {"/shop 1", "/shop 2", "/shop 3"}) records.event_id.Append(id);
  const Decoded decoded = Decode(records);
  EXPECT_EQ(decoded.batch.event_id[0], "/shop 1");
  EXPECT_EQ(decoded.batch.event_id[1], "own");
}

TEST_F(JsonCodecTest, ATimeFarAheadIsRefused) {
  RawRecords records =
      Records({R"({"label":1,"timestamp_ms":1000000})", R"({"label":1,"timestamp_ms":1000501})",
               R"({"label":1,"timestamp_ms":9223372036854775807})",
               R"({"label":1,"timestamp_ms":-9223372036854775808})", R"({"label":1})"});
  records.timestamp_ms.assign(5, 1'000'000);
  const Decoded decoded = Decode(records, {.ahead_max_ms = 500});
  ASSERT_EQ(decoded.dead.size(), 2u);
  EXPECT_THAT(decoded.dead[0].reason, HasSubstr("timestamp_ms: lies more than 0.5 s ahead"));
  EXPECT_EQ(decoded.batch.timestamp_ms, (std::vector<int64_t>{1'000'000, INT64_MIN, 1'000'000}));
}

}  // namespace
}  // namespace tacit::event
