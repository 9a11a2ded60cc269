// POST /v1/lookup: rows as they were released, for values and for buckets.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>

#include "fake_snapshot.h"
#include "infer_rig.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

class LookupTest : public testing::Test {
 protected:
  LookupTest() : store_(SmallModel()), rig_(MakeServices()) { store_.Commit(6); }
  Services MakeServices() {
    Services services;
    services.latest = [this] { return store_.Latest(); };
    services.models = {SmallModel(), SmallModel("open", INFINITY)};
    return services;
  }
  http::Reply Ask(std::string_view body, http::Role role = http::Role::kPublic) {
    return rig_.Ask("POST", "/v1/lookup", body, {}, role);
  }
  std::string Refusal(std::string_view body, uint32_t status = 400) {
    const http::Reply reply = Ask(body);
    EXPECT_EQ(reply.status, status) << reply.body;
    return std::string(json::parse(reply.body).at("error").at("message").as_string());
  }

  FakeStore store_;
  InferRig rig_;
};

// Rows in any order, some of them twice, are those of the snapshot.
TEST_F(LookupTest, RowsAreThoseThatScoringReads) {
  const http::Reply reply = Ask(
      R"({"rows":[{"feature":"tags","value":"a"},{"feature":"C1","value":"68fd1e64"},
          {"feature":"C2","bucket":49},{"feature":"tags","value":"a"},{"feature":"C1","bucket":0},
          {"feature":"C1","value":""}],"learner":"ctr"})");
  ASSERT_EQ(reply.status, 200u) << reply.body;
  const json::value answer = json::parse(reply.body);
  const json::array& rows = answer.at("rows").as_array();
  ASSERT_EQ(rows.size(), 6u);
  const event::FeatureTransform transform(SmallSchema());
  const auto expect = [&](size_t place, size_t feature, uint64_t row) {
    const RowSpace::Table& table = transform.row_space().tables()[feature];
    std::vector<float> numbers(table.dim);
    InitialRow(6, row, 1.0f, numbers);
    EXPECT_EQ(std::string(rows[place].at("feature").as_string()), table.name);
    EXPECT_EQ(rows[place].at("bucket").to_number<uint64_t>(), row - table.first);
    const json::array& values = rows[place].at("values").as_array();
    ASSERT_EQ(values.size(), numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i)
      EXPECT_EQ(static_cast<float>(values[i].to_number<double>()), numbers[i]);
    // No more digits than that takes.
    EXPECT_THAT(reply.body, HasSubstr(fmt::format("[{}]", fmt::join(numbers, ","))));
  };
  expect(0, 2, transform.Row(2, "a"));
  expect(1, 0, transform.Row(0, "68fd1e64"));
  expect(2, 1, transform.row_space().tables()[1].first + 49);
  expect(3, 2, transform.Row(2, "a"));
  expect(4, 0, 0);
  expect(5, 0, 0);
  EXPECT_EQ(answer.at("model").at("version"), 6);
}

TEST_F(LookupTest, AWholeNumberIsAValueByItsDigits) {
  const http::Reply digits = Ask(R"({"learner":"ctr","rows":[{"feature":"C1","value":"68"}]})");
  EXPECT_EQ(digits.status, 200u);
  EXPECT_EQ(Ask(R"({"learner":"ctr","rows":[{"feature":"C1","value":68}]})").body, digits.body);
  EXPECT_THAT(Refusal(R"({"learner":"ctr","rows":[{"feature":"C1","value":6.5}]})"),
              HasSubstr("\"value\" must be a string or an integer"));
}

TEST_F(LookupTest, WithoutPrivacyRowsAreTheOperators) {
  constexpr char kOpen[] = R"({"learner":"open","rows":[{"feature":"C1","bucket":1}]})";
  EXPECT_THAT(Refusal(kOpen, 403), HasSubstr("promises no privacy"));
  EXPECT_EQ(Ask(kOpen, http::Role::kOperator).status, 200u);
}

TEST_F(LookupTest, WhatIsWrongIsSaidByRow) {
  const auto rows = [&](std::string_view text) {
    return Refusal(fmt::format(R"({{"learner":"ctr","rows":[{}]}})", text));
  };
  EXPECT_THAT(rows(R"({"feature":"C3","value":""})"),
              HasSubstr("row 0: unknown categorical feature 'C3' (did you mean 'C1'?)"));
  EXPECT_THAT(rows(R"({"feature":"I1","value":"3"})"), HasSubstr("row 0: unknown categorical"));
  EXPECT_THAT(rows(R"({"feature":"C1","bucket":0},{"feature":"C1","bucket":100})"),
              HasSubstr("row 1: C1 has buckets 0 to 99, not 100"));
  EXPECT_THAT(rows(R"({"feature":"C1","bucket":-1})"), HasSubstr("\"bucket\" must be a whole"));
  EXPECT_THAT(rows(R"({"feature":"C1","bucket":1,"value":"x"})"), HasSubstr("either"));
  EXPECT_THAT(rows(R"({"feature":"C1"})"), HasSubstr("either"));
  EXPECT_THAT(rows(R"({"value":"x"})"), HasSubstr("must have \"feature\""));
  EXPECT_THAT(rows(R"({"feature":"C1","valu":"x"})"), HasSubstr("did you mean 'value'?"));
  EXPECT_THAT(rows(R"({"feature":1,"value":"x"})"), HasSubstr("\"feature\" must be a string"));
  EXPECT_THAT(rows("[]"), HasSubstr("\"rows\" must hold objects"));
  std::string many = R"({"feature":"C1","bucket":1})";
  for (int i = 0; i < 4096; ++i) many += R"(,{"feature":"C1","bucket":1})";
  EXPECT_THAT(rows(many), HasSubstr("more than 4096 rows"));
  EXPECT_THAT(Refusal(R"({"learner":"ctr"})"), HasSubstr("\"rows\" is missing"));
  EXPECT_THAT(Refusal(R"({"rows":[]})"), HasSubstr("\"learner\" is missing"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(Refusal(R"({"learner":"next","rows":[]})", 404), HasSubstr("unknown learner 'next'"));
}

TEST_F(LookupTest, BeforeTheFirstCommitThereIsNothing) {
  store_.Commit(0);
  EXPECT_EQ(Ask(R"({"learner":"ctr","rows":[]})").status, 503u);
}

}  // namespace
}  // namespace tacit::serve
