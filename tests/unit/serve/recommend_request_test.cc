#include "serve/answers/recommend_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "recommend_fakes.h"

namespace tacit::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RecommendRequestTest : public testing::Test {
 protected:
  static std::vector<RecommendModel> Models() {
    std::vector<RecommendModel> models = {SomeRecommender(20), SomeRecommender(5)};
    models[1].promise.learner = "other";
    return models;
  }
  Error ErrorOf(std::string_view body) {
    const Status parsed = parser_.Parse(body, &request_);
    return parsed ? Error{ErrorCode::kInternal, "none"} : parsed.error();
  }

  const std::vector<RecommendModel> models_ = Models();
  const RecommendRequestParser parser_{models_, {.count_most = 1000, .sequence_most = 8}};
  RecommendRequest request_;
};

TEST_F(RecommendRequestTest, ReadsWhatIsAskedFor) {
  ASSERT_TRUE(parser_.Parse(
      R"({"learner":"other","sequence":["a4","a0","a4"],"k":3,"exclude_seen":false})", &request_));
  EXPECT_EQ(request_.model, 1u);
  EXPECT_FALSE(request_.user);
  EXPECT_THAT(request_.sequence, ElementsAre(4, 0, 4));
  EXPECT_EQ(request_.count, 3u);
  EXPECT_FALSE(request_.exclude_seen);

  ASSERT_TRUE(parser_.Parse(R"({"learner":"next","user":"u1"})", &request_));
  EXPECT_EQ(request_.model, 0u);
  EXPECT_EQ(request_.user, "u1");
  EXPECT_TRUE(request_.sequence.empty());
  EXPECT_EQ(request_.count, 10u);
  EXPECT_TRUE(request_.exclude_seen);

  ASSERT_TRUE(parser_.Parse(R"({"learner":"next","user":77,"k":1000})", &request_));
  EXPECT_EQ(request_.user, "77");
  ASSERT_TRUE(parser_.Parse(R"({"learner":"next","sequence":[]})", &request_));
  EXPECT_TRUE(request_.sequence.empty());
}

TEST_F(RecommendRequestTest, ReadsWhatMayBeRecommended) {
  ASSERT_TRUE(parser_.Parse(
      R"({"among":["a1","b9",3],"exclude":["a0"],"genres":["War","Drama"],"year_from":1990,)"
      R"("year_to":2001,"reasons":true,"learner":"other","sequence":["a2"]})",
      &request_));
  EXPECT_EQ(request_.model, 1u);
  ASSERT_TRUE(request_.among);
  EXPECT_THAT(*request_.among, ElementsAre(1)) << "what is not of the catalogue is passed over";
  EXPECT_THAT(request_.exclude, ElementsAre(0));
  EXPECT_THAT(request_.filter.genres, ElementsAre("War", "Drama"));
  EXPECT_EQ(request_.filter.year_from, 1990);
  EXPECT_EQ(request_.filter.year_to, 2001);
  EXPECT_TRUE(request_.reasons && request_.bars());
  EXPECT_THAT(request_.sequence, ElementsAre(2));
  EXPECT_TRUE(request_.unknown_items.empty());

  ASSERT_TRUE(parser_.Parse(R"({"learner":"other","among":[],"user":"u"})", &request_));
  EXPECT_TRUE(request_.among && request_.among->empty() && request_.bars());
  ASSERT_TRUE(parser_.Parse(R"({"learner":"other","user":"u"})", &request_));
  EXPECT_FALSE(request_.bars());
}

TEST_F(RecommendRequestTest, ReadsSeveralSequences) {
  for (const char* const body :
       {R"({"learner":"other","sequences":[["a4","x"],[],["a0","a1"]],"k":3})",
        R"({"sequences":[["a4","x"],[],["a0","a1"]],"k":3,"learner":"other"})"}) {
    ASSERT_TRUE(parser_.Parse(body, &request_)) << body;
    ASSERT_TRUE(request_.sequences && request_.sequences->size() == 3);
    EXPECT_THAT((*request_.sequences)[0].items, ElementsAre(4));
    EXPECT_THAT((*request_.sequences)[0].unknown_items, ElementsAre("x"));
    EXPECT_TRUE((*request_.sequences)[1].items.empty());
    EXPECT_THAT((*request_.sequences)[2].items, ElementsAre(0, 1));
    EXPECT_EQ(request_.count, 3u);
    EXPECT_TRUE(request_.sequence.empty());
  }
  std::string many = R"({"learner":"other","sequences":[[])";
  for (int i = 0; i < 64; ++i) many += ",[]";
  EXPECT_THAT(ErrorOf(many + "]}").message, HasSubstr("\"sequences\" has more than 64 of them"));
}

TEST_F(RecommendRequestTest, UnknownItemsArePassedOverAndTold) {
  ASSERT_TRUE(parser_.Parse(
      R"({"learner":"other","sequence":["a1","a5",7,"",18446744073709551615]})", &request_));
  EXPECT_THAT(request_.sequence, ElementsAre(1));
  EXPECT_THAT(request_.unknown_items, ElementsAre("a5", "7", "", "18446744073709551615"));
}

TEST_F(RecommendRequestTest, TheLearnerMayStandBehindItsSequence) {
  ASSERT_TRUE(parser_.Parse(R"({"sequence":["a4","a9"],"k":3,"learner":"other"})", &request_));
  EXPECT_EQ(request_.model, 1u);
  EXPECT_THAT(request_.sequence, ElementsAre(4));
  EXPECT_THAT(request_.unknown_items, ElementsAre("a9"));
  EXPECT_EQ(request_.count, 3u);
}

// Text that is repeated in the answer is short, so an answer is no larger than planned.
TEST_F(RecommendRequestTest, UnknownItemsAreShort) {
  const auto with = [](const std::string& id) {
    return R"({"learner":"other","sequence":[")" + id + "\"]}";
  };
  EXPECT_TRUE(parser_.Parse(with(std::string(256, 'u')), &request_));
  EXPECT_THAT(ErrorOf(with(std::string(257, 'u'))).message,
              HasSubstr("an unknown id of 257 bytes"));
  EXPECT_THAT(ErrorOf(with("a\\u0001")).message, HasSubstr("no control characters"));
  EXPECT_THAT(ErrorOf(R"({"learner":"other","user":"a","user":"b"})").message,
              HasSubstr("\"user\" is there twice"));
}

TEST_F(RecommendRequestTest, TheOnlyLearnerNeedNotBeNamed) {
  const std::vector<RecommendModel> one = {SomeRecommender(3)};
  EXPECT_TRUE(RecommendRequestParser(one, {}).Parse(R"({"sequence":["a1"]})", &request_));
}

TEST_F(RecommendRequestTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "not JSON: it ends too early, at byte 0"},
      {"{", "not JSON: it ends too early, at byte 1"},
      {"[]", "the request must be a JSON object"},
      {"{} {}", "not JSON"},
      {R"({"sequence":[]})", "\"learner\" is missing"},
      {R"({"learner":1,"sequence":[]})", "\"learner\" must be a string"},
      {R"({"learner":"next"})", "give either \"user\" or \"sequence\""},
      {R"({"learner":"next","user":"u","sequence":[]})", "either \"user\" or \"sequence\""},
      {R"({"learner":"next","user":""})", "\"user\" is empty"},
      {R"({"learner":"next","user":null})", "\"user\" must be a string or an integer"},
      {R"({"learner":"next","user":1.5})", "\"user\" must be a string or an integer"},
      {R"({"learner":"next","sequence":"a1"})", "\"sequence\" must be an array"},
      {R"({"learner":"next","sequence":["a1",null]})",
       "\"sequence\" 1: must be a string or an integer"},
      {R"({"learner":"next","sequence":[1,2,3,4,5,6,7,8,9]})",
       "\"sequence\" has more than 8 items"},
      {R"({"learner":"next","sequence":[],"k":0})", "\"k\" must be a whole number from 1 to 1000"},
      {R"({"learner":"next","sequence":[],"k":1001})", "\"k\" must be a whole number"},
      {R"({"learner":"next","sequence":[],"k":-1})", "\"k\" must be a whole number"},
      {R"({"learner":"next","sequence":[],"k":2.0})", "\"k\" must be a whole number"},
      {R"({"learner":"next","sequence":[],"k":"5"})", "\"k\" must be a whole number"},
      {R"({"learner":"next","sequence":[],"k":18446744073709551615})", "\"k\" must be a whole"},
      {R"({"learner":"next","sequence":[],"sequences":[]})", "either"},
      {R"({"learner":"next","sequences":["a1"]})", "\"sequences\" must be an array of arrays"},
      {R"({"learner":"next","sequences":{}})", "\"sequences\" must be an array of arrays"},
      {R"({"learner":"next","sequences":[[],["a1",null]]})",
       "\"sequences\" 1, 1: must be a string or an integer"},
      {R"({"learner":"next","sequences":[[1,2,3,4],[5,6,7,8,9]]})",
       "\"sequences\" has more than 8 items"},
      {R"({"learner":"next","sequence":[],"among":"a1"})", "\"among\" must be an array"},
      {R"({"learner":"next","sequence":[],"exclude":[["a1"]]})",
       "\"exclude\" 0: must be a string or an integer"},
      {R"({"learner":"next","sequence":[],"genres":"War"})", "\"genres\" must be an array of"},
      {R"({"learner":"next","sequence":[],"genres":[["War"]]})", "\"genres\" must be an array of"},
      {R"({"learner":"next","sequence":[],"year_from":"1990"})",
       "\"year_from\" must be a whole number from 0 to 9999"},
      {R"({"learner":"next","sequence":[],"year_to":10000})", "\"year_to\" must be a whole"},
      {R"({"learner":"next","sequence":[],"reasons":"yes"})", "\"reasons\" must be true or false"},
      {R"({"learner":"next","sequence":[],"exclude_seen":1})",
       "\"exclude_seen\" must be true or false"},
      {R"({"learner":"next","sequenze":[]})", "unknown key 'sequenze' (did you mean 'sequence'?)"},
      {R"({"learner":"next","sequence":[[[[[[[[[1]]]]]]]]]})",
       "\"sequence\" 0: must be a string or an integer"},
      {"[[[[[[[[[1]]]]]]]]]", "not JSON"}};
  for (const auto& [body, message] : wrong) {
    const Error error = ErrorOf(body);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << body;
    EXPECT_THAT(error.message, HasSubstr(message)) << body;
  }
  const Error unknown = ErrorOf(R"({"learner":"nexd","sequence":[]})");
  EXPECT_EQ(unknown.code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.message,
              HasSubstr("unknown learner 'nexd' (did you mean 'next'?); this route has '"));
  // A caller at the wrong route is told the right one.
  EXPECT_THAT(ErrorOf(R"({"learner":"ctr","sequence":[]})").message,
              HasSubstr("click models are asked at /v1/score"));
  const RecommendRequestParser knowing(models_, {},
                                       {{"ctr", "a click model (linear)", "/v1/score"}});
  const Status elsewhere = knowing.Parse(R"({"sequence":[],"learner":"ctr"})", &request_);
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(elsewhere.error().message, "'ctr' is a click model (linear); ask /v1/score");
}

// Any request is read or refused, and what is read is within the limits.
TEST_F(RecommendRequestTest, DamagedBodiesAreReadOrRefused) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string good =
      R"({"learner":"other","sequence":["a4","x",7,"a0"],"k":10,"exclude_seen":true})";
  constexpr std::string_view kBytes = "{}[]\",:0123456789-.eaknulltrue\\\x80\xff\0 ";
  size_t read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string body = good;
    for (uint32_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % body.size();
      const char c = kBytes[random() % kBytes.size()];
      switch (random() % 4) {
        case 0:
          body[at] = c;
          break;
        case 1:
          body.insert(at, 1, c);
          break;
        case 2:
          body.erase(at, 1 + random() % 12);
          break;
        default:
          body.resize(at + 1);
      }
      if (body.empty()) body = "{";
    }
    if (!parser_.Parse(body, &request_)) continue;
    ++read;
    ASSERT_LT(request_.model, 2u) << body;
    ASSERT_GE(request_.count, 1u) << body;
    ASSERT_LE(request_.count, 1000u) << body;
    ASSERT_LE(request_.sequence.size(), 8u) << body;
    for (const uint32_t item : request_.sequence)
      ASSERT_LT(item, models_[request_.model].items->items()) << body;
  }
  EXPECT_GT(read, 0u);
}

}  // namespace
}  // namespace tacit::serve
