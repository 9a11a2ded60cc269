// The Open Inference Protocol for models of the next item, held against /v1/recommend.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "infer_rig.h"
#include "recommend_fakes.h"
#include "support/eventually.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

constexpr char kInferItems[] = "/v2/models/next/infer";

class InferItemsTest : public testing::Test {
 protected:
  InferItemsTest() : model_(SomeRecommender(12)), rig_(MakeServices()) {
    EXPECT_TRUE(test::Eventually("the state is built", [this] {
      return rig_.Ask("GET", "/v2/models/next/ready").status == 200;
    }));
  }
  Services MakeServices() {
    auto snapshot = std::make_shared<RecommendSnapshot>(6, model_.promise);
    snapshot->released = std::make_shared<const std::string>("first");
    Services services;
    services.latest = [snapshot] { return snapshot; };
    services.recommenders = {model_};
    return services;
  }
  std::string Refusal(std::string_view body, uint32_t status = 400) {
    const http::Reply reply = rig_.Ask("POST", kInferItems, body);
    EXPECT_EQ(reply.status, status) << reply.body;
    return std::string(json::parse(reply.body).at("error").as_string());
  }

  RecommendModel model_;
  InferRig rig_;
};

TEST_F(InferItemsTest, ASequenceGetsTheItemsOfRecommend) {
  for (const auto& [input, shape] : {std::pair("[\"a2\",\"new\",\"a5\"]", "[4]"),
                                     std::pair("[[\"a2\",\"new\",\"a5\"]]", "[1,4]")}) {
    const bool nested = std::string_view(input).starts_with("[[");
    const http::Reply reply =
        rig_.Ask("POST", kInferItems,
                 fmt::format(R"({{"id":"q","parameters":{{"k":4}},"inputs":[{{"name":"sequence",)"
                             R"("shape":{},"datatype":"BYTES","data":{}}}]}})",
                             nested ? "[1,3]" : "[3]", input));
    ASSERT_EQ(reply.status, 200u) << reply.body;
    const json::value answer = json::parse(reply.body);
    const json::value expected = json::parse(
        rig_.Ask("POST", "/v1/recommend", R"({"sequence":["a2","new","a5"],"k":4})").body);
    json::array items, scores;
    for (const json::value& item : expected.at("items").as_array()) {
      items.push_back(item.at("id"));
      scores.push_back(item.at("score"));
    }
    ASSERT_EQ(items.size(), 4u);
    EXPECT_EQ(answer.at("outputs").at(0).at("name"), "items");
    EXPECT_EQ(answer.at("outputs").at(0).at("datatype"), "BYTES");
    EXPECT_EQ(answer.at("outputs").at(0).at("data"), items);
    EXPECT_EQ(answer.at("outputs").at(1).at("name"), "scores");
    EXPECT_EQ(answer.at("outputs").at(1).at("data"), scores);
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(answer.at("outputs").at(i).at("shape"), json::parse(shape));
    EXPECT_EQ(answer.at("id"), "q");
    EXPECT_EQ(answer.at("model_version"), "6");
    const json::value& parameters = answer.at("parameters");
    for (const char* field : {"version", "snapshot", "epsilon", "delta", "private"})
      EXPECT_EQ(parameters.at(field), expected.at("model").at(field)) << field;
    EXPECT_EQ(parameters.at("covered_by_epsilon"), expected.at("covered_by_epsilon"));
    EXPECT_EQ(parameters.at("unknown_items"), 1);
  }
}

TEST_F(InferItemsTest, OutputsAreHonouredInTheirOrderAndForm) {
  const std::string head =
      R"({"parameters":{"k":3,"exclude_seen":false},"inputs":[{"name":"sequence","shape":[1],)"
      R"("datatype":"BYTES","parameters":{"binary_data_size":6}}],"outputs":[{"name":"scores"},)"
      R"({"name":"items","parameters":{"binary_data":true}}]})";
  const http::Reply reply = rig_.AskBinary(kInferItems, head, Texts({"a2"}));
  ASSERT_EQ(reply.status, 200u) << reply.body;
  const std::string text = JsonOf(reply);
  const json::value outputs = json::parse(text).at("outputs");
  const json::value expected =
      json::parse(
          rig_.Ask("POST", "/v1/recommend", R"({"sequence":["a2"],"k":3,"exclude_seen":false})")
              .body)
          .at("items");
  EXPECT_EQ(outputs.at(0).at("name"), "scores");
  std::string names;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(outputs.at(0).at("data").at(i), expected.at(i).at("score"));
    names += Texts({std::string(expected.at(i).at("id").as_string())});
  }
  EXPECT_EQ(outputs.at(1).at("parameters").at("binary_data_size"), names.size());
  EXPECT_EQ(reply.body.substr(text.size()), names);
}

TEST_F(InferItemsTest, AnEmptySequenceIsAColdStartAndIntegersAreIds) {
  const auto items = [&](std::string_view input) {
    const http::Reply reply = rig_.Ask(
        "POST", kInferItems, fmt::format(R"({{"inputs":[{{"name":"sequence",{}}}]}})", input));
    EXPECT_EQ(reply.status, 200u) << reply.body;
    return json::parse(reply.body);
  };
  EXPECT_EQ(items(R"("shape":[0],"datatype":"BYTES","data":[])").at("outputs").at(0).at("shape"),
            json::parse("[10]"));
  EXPECT_EQ(
      items(R"("shape":[2],"datatype":"INT64","data":[2,-3])").at("parameters").at("unknown_items"),
      2);
}

TEST_F(InferItemsTest, WhatIsWrongIsSaidByName) {
  const auto sequence = [&](std::string_view fields, std::string_view more = "") {
    return Refusal(fmt::format(R"({{"inputs":[{{"name":"sequence",{}}}]{}}})", fields, more));
  };
  constexpr char kFine[] = R"("shape":[1],"datatype":"BYTES","data":["a1"])";
  EXPECT_THAT(
      sequence(R"("shape":[1],"datatype":"FP32","data":[1])"),
      HasSubstr("input 'sequence' of next: datatype must be BYTES or an integer's, not FP32"));
  EXPECT_THAT(sequence(R"("shape":[2,1],"datatype":"BYTES","data":["a","b"])"),
              HasSubstr("shape must be [n] or [1,n], not [2,1]"));
  EXPECT_THAT(sequence(R"("shape":[4097],"datatype":"BYTES","parameters":{"binary_data_size":0})"),
              HasSubstr("more than 4096 items"));
  EXPECT_THAT(sequence(R"("shape":[1],"datatype":"BYTES","data":["a\u0007"])"),
              HasSubstr("input 'sequence', element 0: an id has no control characters"));
  EXPECT_THAT(sequence(kFine, R"(,"parameters":{"k":0})"), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(sequence(kFine, R"(,"parameters":{"k":1001})"), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(sequence(kFine, R"(,"outputs":[{"name":"probability"}])"),
              HasSubstr("unknown output 'probability' of next"));
  EXPECT_THAT(
      Refusal(R"({"inputs":[{"name":"sequenc","shape":[0],"datatype":"BYTES","data":[]}]})"),
      HasSubstr("unknown input 'sequenc' (did you mean 'sequence'?)"));
  EXPECT_EQ(rig_.Ask("POST", "/v2/models/next/versions/5/infer",
                     fmt::format(R"({{"inputs":[{{"name":"sequence",{}}}]}})", kFine))
                .body,
            "{\"error\":\"model 'next' has no version 5: version 6 is served\"}\n");
}

TEST_F(InferItemsTest, TheModelIsDescribed) {
  EXPECT_EQ(json::parse(rig_.Ask("GET", "/v2/models/next").body), json::parse(R"({
      "name":"next","versions":["6"],"platform":"tacit_next_item",
      "inputs":[{"name":"sequence","datatype":"BYTES","shape":[-1]}],
      "outputs":[{"name":"items","datatype":"BYTES","shape":[-1]},
                 {"name":"scores","datatype":"FP32","shape":[-1]}]})"));
}

}  // namespace
}  // namespace tacit::serve
