#include "serve/scoring/score_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "fake_snapshot.h"
#include "serve/scoring/score_lines.h"

namespace tacit::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kTextMost = 64 << 10;

class ScoreRequestTest : public testing::Test {
 protected:
  std::string ErrorOf(std::string_view json) {
    const auto parsed = parser_.Parse(json, &batch_);
    return parsed ? "none" : parsed.error().message;
  }

  const ScoringModel model_ = SmallModel("ctr");
  const event::FeatureTransform& transform_ = *model_.transform;
  ScoreRequestParser parser_{{{"ctr", model_.transform}, {"other", model_.transform}}, {}};
  event::Batch batch_;
};

TEST_F(ScoreRequestTest, ColumnsAndNamesGiveTheSameExamples) {
  const auto parsed = parser_.Parse(
      R"({"learner":"other","rows":[
          {"dense":[3,null],"categorical":["68fd1e64","","a"]},
          {"features":{"C1":"68fd1e64","I1":3,"tags":["a"]}},
          {"categorical":["68fd1e64",null,"a"],"dense":[3.0,0]}]})",
      &batch_);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(*parsed, 1u);
  ASSERT_EQ(batch_.size(), 3u);
  EXPECT_EQ(batch_.dense_width, 2u);
  EXPECT_EQ(batch_.slots, 3u);
  const float log4 = std::log1p(3.0f);
  EXPECT_THAT(batch_.dense, ElementsAre(log4, 0, log4, 0, log4, 0));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(batch_.Slot(i, 0), ElementsAre(transform_.Row(0, "68fd1e64")));
    EXPECT_THAT(batch_.Slot(i, 1), ElementsAre(transform_.Row(1, "")));
    EXPECT_THAT(batch_.Slot(i, 2), ElementsAre(transform_.Row(2, "a")));
  }
}

// A stream's whole number is a category by its digits (event/json_codec.cc), and so is a request's.
TEST_F(ScoreRequestTest, AWholeNumberIsACategoryByItsDigits) {
  const auto parsed = parser_.Parse(
      R"({"learner":"ctr","rows":[
          {"features":{"C1":68,"tags":[-7,18446744073709551615,"x"]}},
          {"features":{"C1":"68","tags":["-7","18446744073709551615","x"]}},
          {"dense":[1,2],"categorical":[68,0,7]},
          {"dense":[1,2],"categorical":["68","0","7"]}]})",
      &batch_);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  for (const size_t i : {0, 2})
    for (size_t slot = 0; slot < 3; ++slot)
      EXPECT_TRUE(std::ranges::equal(batch_.Slot(i, slot), batch_.Slot(i + 1, slot))) << i << slot;
  EXPECT_THAT(batch_.Slot(0, 0), ElementsAre(transform_.Row(0, "68")));
  EXPECT_EQ(batch_.Slot(0, 2).size(), 3u);
  EXPECT_THAT(batch_.Slot(2, 1), ElementsAre(transform_.Row(1, "0")));
}

TEST_F(ScoreRequestTest, AnEmptyRowHasOnlyMissingValues) {
  ASSERT_TRUE(parser_.Parse(R"({"learner":"ctr","rows":[{"features":{}},{}]})", &batch_));
  EXPECT_THAT(batch_.dense, ElementsAre(0, 0, 0, 0));
  for (size_t i = 0; i < 2; ++i)
    for (size_t s = 0; s < 3; ++s)
      EXPECT_THAT(batch_.Slot(i, s), ElementsAre(transform_.Row(s, "")));
}

TEST_F(ScoreRequestTest, MultiHotKeepsItsFirstDistinctValues) {
  ASSERT_TRUE(parser_.Parse(
      R"({"learner":"ctr","rows":[{"features":{"tags":["a","b","a","c","d"]}},
                                   {"features":{"tags":[]}}]})",
      &batch_));
  std::vector<uint64_t> expected;
  const std::string_view tags[] = {"a", "b", "a", "c", "d"};
  transform_.AppendRows(2, tags, &expected);
  EXPECT_LE(expected.size(), 3u);
  EXPECT_THAT(batch_.Slot(0, 2), testing::ElementsAreArray(expected));
  EXPECT_THAT(batch_.Slot(1, 2), ElementsAre(transform_.Row(2, "")));
}

TEST_F(ScoreRequestTest, ABatchIsFilledAfresh) {
  ASSERT_TRUE(parser_.Parse(R"({"learner":"ctr","rows":[{},{},{}]})", &batch_));
  ASSERT_TRUE(parser_.Parse(R"({"learner":"ctr","rows":[{}]})", &batch_));
  EXPECT_EQ(batch_.size(), 1u);
  ASSERT_TRUE(parser_.Parse(R"({"learner":"ctr","rows":[]})", &batch_));
  EXPECT_EQ(batch_.size(), 0u);
}

TEST_F(ScoreRequestTest, ErrorsNameRowAndField) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"rows":[]})", "\"learner\" is missing; this route has 'ctr'"},
      {R"({"learner":1,"rows":[]})", "\"learner\" must be a string"},
      {R"({"learner":"cta","rows":[]})", "unknown learner 'cta' (did you mean 'ctr'?)"},
      {R"({"learner":"ctr"})", "\"rows\" is missing"},
      {R"({"learner":"ctr","rows":{}})", "\"rows\" must be an array"},
      {R"({"learner":"ctr","row":[]})", "unknown key 'row' (did you mean 'rows'?)"},
      {R"([])", "must be a JSON object"},
      {R"({"learner":"ctr","rows":[{},1]})", "row 1: must be an object"},
      {R"({"learner":"ctr","rows":[{"dense":[1]}]})",
       "row 0: \"dense\" has 1 values, the schema 2"},
      {R"({"learner":"ctr","rows":[{"dense":[1,2,{}]}]})",
       "row 0: \"dense\" has 3 values, the schema 2"},
      {R"({"learner":"ctr","rows":[{"dense":7}]})", "row 0: \"dense\" must be an array"},
      {R"({"learner":"ctr","rows":[{"dens":[]}]})", "unknown key 'dens' (did you mean 'dense'?)"},
      {R"({"learner":"ctr","rows":[{"dense":["1",2]}]})", "row 0: I1 must be a number or null"},
      {R"({"learner":"ctr","rows":[{"dense":[1,true]}]})", "row 0: I2 must be a number or null"},
      {R"({"learner":"ctr","rows":[{"dense":[1e999,2]}]})", "row 0: I1 is out of range"},
      {R"({"learner":"ctr","rows":[{"features":{"C1":5.0}}]})",
       "row 0: C1 must be a string, a whole number or null"},
      {R"({"learner":"ctr","rows":[{"features":{"C1":true}}]})",
       "row 0: C1 must be a string, a whole number or null"},
      {R"({"learner":"ctr","rows":[{"features":{"C1":["a"]}}]})", "C1 takes one value, not a list"},
      {R"({"learner":"ctr","rows":[{"features":{"tags":[1.5]}}]})",
       "tags must hold strings and whole numbers only"},
      {R"({"learner":"ctr","rows":[{"features":{"tag":"a"}}]})",
       "row 0: unknown feature 'tag' (did you mean 'tags'?)"},
      {R"({"learner":"ctr","rows":[{"features":[]}]})", "\"features\" must be an object"},
      {R"({"learner":"ctr","rows":[{"features":{},"dense":[]}]})", "stands alone"}};
  for (const auto& [json, message] : cases) EXPECT_THAT(ErrorOf(json), HasSubstr(message)) << json;
}

TEST_F(ScoreRequestTest, WhatIsNotJsonIsRefusedWithItsPlace) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("ends too early, at byte 0"));
  EXPECT_THAT(ErrorOf("{\"learner\":"), HasSubstr("ends too early, at byte 11"));
  EXPECT_THAT(ErrorOf("{\"learner\" 1}"), HasSubstr("at byte 11"));
  EXPECT_THAT(ErrorOf("{} x"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("{\"learner\":NaN}"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("{\"learner\":\"\xff\"}"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(std::string(100000, '[')), HasSubstr("not JSON"));  // nested too deep
}

TEST_F(ScoreRequestTest, TooManyRowsAreRefused) {
  std::string json = R"({"learner":"ctr","rows":[{})";
  for (int i = 1; i < 4096; ++i) json += ",{}";
  EXPECT_EQ(ErrorOf(json + "]}"), "none");
  EXPECT_THAT(ErrorOf(json + ",{}]}"), HasSubstr("more than 4096 rows in one request"));
}

TEST_F(ScoreRequestTest, TooManyValuesOfSetsAreRefused) {
  std::string json = R"({"learner":"ctr","rows":[{"features":{"tags":[1)";
  for (size_t i = 1; i < ScoreRequestParser::Limits().max_values; ++i) json += ",1";
  EXPECT_EQ(ErrorOf(json + "]}}]}"), "none");
  EXPECT_EQ(ErrorOf(json + "]}},{}]}"), "none") << "the request before does not count";
  EXPECT_THAT(ErrorOf(json + R"(]}},{"features":{"tags":["a"]}}]})"),
              HasSubstr("more than 262144 values of sets in one request"));
}

TEST(LineReader, RefusesTooManyValuesOfSets) {
  event::FeatureSchema schema;
  schema.categorical.push_back(
      {.name = "tags", .buckets = 1'000'000, .dim = 1, .multi_hot = true, .max_values = 4096});
  ScoringModel model = SmallModel("ctr");
  model.transform = std::make_shared<event::FeatureTransform>(schema);
  model.lines = event::MakeJsonCodec(*model.transform, {.label = event::LabelUse::kPassedOver});
  std::string line = R"({"features":{"tags":["0")", body;
  for (int i = 1; i < 4096; ++i) line += ",\"" + std::to_string(i) + '"';
  line += "]}}\n";
  for (int i = 0; i < 64; ++i) body += line;
  LineReader reader;
  event::Batch batch;
  EXPECT_TRUE(reader.Read(body, model, &batch));
  const Status refused = reader.Read(body + line, model, &batch);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("more than 262144 values of sets"));
}

// Refused when it is met: what follows is not read, and need not be JSON.
TEST_F(ScoreRequestTest, ARowTooManyEndsTheReading) {
  std::string json = R"({"learner":"ctr","rows":[{})";
  for (int i = 1; i < 4097; ++i) json += ",{}";
  EXPECT_THAT(ErrorOf(json + ",{},{},}}}}]"), HasSubstr("more than 4096 rows"));
  EXPECT_THAT(ErrorOf(R"({"learner":"ctr","rows":[0,]]]])"), HasSubstr("row 0: must be an object"));
  EXPECT_LE(batch_.label.capacity(), 2 * 4096u);
}

TEST_F(ScoreRequestTest, TheLearnerMayStandBehindItsRows) {
  ASSERT_TRUE(parser_.Parse(R"({"rows":[{"features":{"I1":3,"tags":["a","b"]}},{}],)"
                            R"("learner":"other"})",
                            &batch_));
  EXPECT_EQ(batch_.size(), 2u);
  EXPECT_FLOAT_EQ(batch_.dense[0], std::log1p(3.0f));
  EXPECT_EQ(batch_.Slot(0, 2).size(), 2u);
  EXPECT_EQ(ErrorOf(R"({"rows":[{"dens":[]}],"learner":"ctr"})"),
            "row 0: unknown key 'dens' (did you mean 'dense'?)");
  EXPECT_THAT(ErrorOf(R"({"rows":[[[{}],{"a":[]}]],"learner":"cta"})"),
              HasSubstr("unknown learner"));
}

TEST_F(ScoreRequestTest, WhatIsThereTwiceIsRefused) {
  for (const std::string json : {R"({"learner":"ctr","learner":"ctr","rows":[]})",
                                 R"({"learner":"ctr","rows":[],"rows":[]})",
                                 R"({"learner":"ctr","rows":[{"dense":[1,2],"dense":[1,2]}]})",
                                 R"({"learner":"ctr","rows":[{"features":{"I1":1,"I1":1}}]})"})
    EXPECT_THAT(ErrorOf(json), HasSubstr("is there twice")) << json;
}

TEST_F(ScoreRequestTest, EscapedTextsAreWhatTheyStandFor) {
  ASSERT_TRUE(parser_.Parse(
      R"({"learner":"ctr","rows":[{"features":{"C\u0031":"68fd\u0031e64","tags":["\u0061"]}}]})",
      &batch_));
  EXPECT_THAT(batch_.Slot(0, 0), ElementsAre(transform_.Row(0, "68fd1e64")));
  EXPECT_THAT(batch_.Slot(0, 2), ElementsAre(transform_.Row(2, "a")));
  const std::string longest(kTextMost, 'a');
  const auto with = [](const std::string& text) {
    return R"({"learner":"ctr","rows":[{"features":{"C1":")" + text + "\"}}]}";
  };
  EXPECT_EQ(ErrorOf(with(longest)), "none");
  EXPECT_THAT(ErrorOf(with(longest + "a")), HasSubstr("a text has at most 65536 bytes"));
  EXPECT_THAT(ErrorOf(with("\\n" + longest)), HasSubstr("a text has at most 65536 bytes"));
}

TEST(SingleLearnerTest, ItsNameMayBeLeftOut) {
  const ScoringModel model = SmallModel();
  ScoreRequestParser parser({{"ctr", model.transform}}, {});
  event::Batch batch;
  EXPECT_TRUE(parser.Parse(R"({"rows":[{}]})", &batch).has_value());
}

std::string RandomJson(std::mt19937& random, int depth) {
  static constexpr const char* kLeaves[] = {
      "null", "true", "1",     "-1e308",  "1e999",
      "0.5",  "\"\"", "\"a\"", "12e-400", "9223372036854775808"};
  static constexpr const char* kKeys[] = {"learner", "rows", "dense", "categorical", "features",
                                          "I1",      "C1",   "tags",  "\\u0000",     ""};
  const uint32_t kind = depth == 0 ? 0 : random() % 4;
  if (kind < 2) return kLeaves[random() % std::size(kLeaves)];
  std::string out(1, kind == 2 ? '[' : '{');
  for (uint32_t i = 0, n = random() % 5; i < n; ++i) {
    if (i > 0) out += ',';
    if (kind == 3) out += "\"" + std::string(kKeys[random() % std::size(kKeys)]) + "\":";
    out += RandomJson(random, depth - 1);
  }
  return out + (kind == 2 ? ']' : '}');
}

// For any request, the answer is a batch of the right shape or an error in words.
TEST_F(ScoreRequestTest, RandomInputNeverBreaksIt) {
  std::mt19937 random(7);
  for (int round = 0; round < 30000; ++round) {
    std::string text;
    if (round % 3 == 0) {
      text.resize(random() % 64);
      for (char& c : text) c = static_cast<char>(random());
    } else {
      text = R"({"learner":"ctr","rows":)" + RandomJson(random, 5) + "}";
      if (round % 3 == 1 && !text.empty())
        text[random() % text.size()] = "{}[],:\"0 "[random() % 9];
    }
    const auto parsed = parser_.Parse(text, &batch_);
    if (!parsed) {
      ASSERT_FALSE(parsed.error().message.empty()) << "round " << round;
      continue;
    }
    ASSERT_EQ(batch_.dense.size(), 2 * batch_.size()) << text;
    ASSERT_EQ(batch_.slot_end.size(), 3 * batch_.size()) << text;
    for (float x : batch_.dense) ASSERT_TRUE(std::isfinite(x)) << text;
    for (uint64_t row : batch_.row) ASSERT_LT(row, transform_.row_space().rows()) << text;
  }
}

}  // namespace
}  // namespace tacit::serve
