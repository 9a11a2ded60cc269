// A table that has a key of every kind, and bodies that fit it or do not.
#include "http/request_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tacit::http {
namespace {

using testing::ElementsAre;

class RequestJsonTest : public testing::Test {
 protected:
  using Kind = JsonPlace::Kind;

  Status Read(std::string_view body) {
    const JsonParts ids{.element = {.kind = Kind::kId,
                                    .take = [this](auto& id) -> Status {
                                      if (id.text == "nobody") return BadRequest("no such id");
                                      std::string digits;
                                      ids_.emplace_back(id.Id(&digits));
                                      return {};
                                    }},
                        .elements_most = 2,
                        .too_many = "\"ids\" has more than {} of them",
                        .begin = [this]() -> Result<bool> { return reads_ids_; }};
    const JsonKey row_keys[] = {{"x", PlaceFor(&x_), true}};
    const JsonParts row{.keys = row_keys,
                        .key_word = "field",
                        .end = [this]() -> Status {
                          rows_.push_back(x_);
                          return {};
                        },
                        .where = [this] { return fmt::format("row {}", rows_.size()); }};
    const JsonParts rows{.element = {.must = "must hold objects", .object = &row}};
    const JsonParts named{.key = [this](std::string_view key) -> Status {
                            if (key == "bad") return BadRequest("a bad key");
                            ids_.emplace_back(key);
                            return {};
                          },
                          .element = {.kind = Kind::kAny}};
    const JsonPlace odd{.kind = Kind::kAny, .must = "must be odd", .take = [](auto& value) {
                          return value.int64 % 2 == 1;
                        }};
    const JsonKey keys[] = {{"text", PlaceFor(&text_), true},
                            {"flag", PlaceFor(&flag_)},
                            {"n", PlaceFor(&n_, 1, 9)},
                            {"ids", {.array = &ids}},
                            {"rows", {.array = &rows}},
                            {"named", {.object = &named}},
                            {"odd", odd}};
    return ReadJson(body, 5, keys);
  }
  std::string Refusal(std::string_view body) {
    rows_.clear();
    const Status read = Read(body);
    return read ? "none" : read.error().message;
  }

  std::string text_;
  std::optional<bool> flag_;
  std::optional<uint32_t> n_;
  int64_t x_ = 0;
  std::vector<int64_t> rows_;
  std::vector<std::string> ids_;
  bool reads_ids_ = true;
};

TEST_F(RequestJsonTest, ValuesGoToTheirPlaces) {
  ASSERT_EQ(Refusal(R"({"n":9,"odd":3,"rows":[{"x":5},{"x":0}],"text":"a\u0062","flag":false,
                        "ids":["u",18446744073709551615],"named":{"k":null,"l":[{}]}})"),
            "none");
  EXPECT_EQ(text_, "ab");
  EXPECT_EQ(flag_, false);
  EXPECT_EQ(n_, 9u);
  EXPECT_THAT(rows_, ElementsAre(5, 0));
  EXPECT_THAT(ids_, ElementsAre("u", "18446744073709551615", "k", "l"));
}

TEST_F(RequestJsonTest, WhatTheTableLacksIsRefusedWithKeyAndPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "\"text\" is missing"},
      {"[{}]", "the request must be a JSON object"},
      {"7", "the request must be a JSON object"},
      {"{} 1", "not JSON: extra data at byte 3"},
      {R"({"text":"a","text":"a"})", "\"text\" is there twice"},
      {R"({"txt":"a"})", "unknown key 'txt' (did you mean 'text'?)"},
      {R"({"text":{}})", "\"text\" must be a string"},
      {R"({"flag":0})", "\"flag\" must be true or false"},
      {R"({"n":0})", "\"n\" must be a whole number from 1 to 9"},
      {R"({"n":10})", "\"n\" must be a whole number from 1 to 9"},
      {R"({"n":1.0})", "\"n\" must be a whole number from 1 to 9"},
      {R"({"ids":"a"})", "\"ids\" must be an array"},
      {R"({"ids":[null]})", "\"ids\" must be a string or an integer"},
      {R"({"ids":[1,2,3]})", "\"ids\" has more than 2 of them"},
      {R"({"ids":["nobody"]})", "no such id"},
      {R"({"odd":2})", "\"odd\" must be odd"},
      {R"({"odd":[2]})", "\"odd\" must be odd"},
      {R"({"rows":{}})", "\"rows\" must be an array"},
      {R"({"rows":[[]]})", "\"rows\" must hold objects"},
      {R"({"rows":[{"x":1},{}]})", "row 1 has no \"x\""},
      {R"({"rows":[{"x":1},{"x":1,"x":1}]})", "row 1: \"x\" is there twice"},
      {R"({"rows":[{"x":"1"}]})", "row 0: \"x\" must be a whole number"},
      {R"({"rows":[{"z":1}]})", "row 0: unknown field 'z' (did you mean 'x'?)"},
      {R"({"named":[]})", "\"named\" must be an object"},
      {R"({"named":{"bad":1}})", "a bad key"},
      {R"({"named":{"k":[[[[1]]]]}})", "not JSON: too deep at byte 17"}};
  for (const auto& [body, message] : cases) EXPECT_EQ(Refusal(body), message) << body;
}

TEST_F(RequestJsonTest, PartsThatAreNotWantedAreSkipped) {
  reads_ids_ = false;
  EXPECT_EQ(Refusal(R"({"ids":[null,{"x":[[]]},3],"text":"b","rows":[{"x":1}]})"), "none");
  EXPECT_TRUE(ids_.empty());
  EXPECT_EQ(text_, "b");
  EXPECT_THAT(rows_, ElementsAre(1));
}

}  // namespace
}  // namespace tacit::http
