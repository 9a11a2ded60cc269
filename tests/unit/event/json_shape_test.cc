#include "event/json_shape.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "event/shape_rules.h"
#include "interactions.h"

namespace tacit::event {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class JsonShapeTest : public InteractionTest {
 protected:
  std::unique_ptr<Codec> MakeCodec(const InteractionOptions& options) const override {
    EXPECT_TRUE(CheckShape(shape_, Schema()));
    return MakeShapedJsonCodec(transform_, shape_, options);
  }
  std::string Refusal(const JsonShape& shape) const {
    const Status status = CheckShape(shape, Schema());
    return status ? std::string() : status.error().message;
  }
  // The reason of the one bad record.
  std::string ReasonOf(const std::string& record) const {
    const Decoded decoded = Decode({record});
    return decoded.dead.size() == 1 ? decoded.dead[0].reason : "none";
  }

  JsonShape shape_;
};

// A shop's own events.
JsonShape ShopShape() {
  JsonShape shape;
  shape.label = "/event/type";
  shape.label_rule.values = {{"buy", true}, {"view", false}, {"7", true}};
  shape.user = "/who/id";
  shape.item = "/what/sku";
  shape.event_id = "/id";
  shape.timestamp = "/event/time";
  shape.timestamp_unit = TimeUnit::kRfc3339;
  shape.features = {{"n1", "/what/price"}, {"c1", "/tags/0"}, {"set", "/a~1b/~0"}};
  shape.features_at = "";
  return shape;
}

TEST_F(JsonShapeTest, PartsLieWhereThePointersSay) {
  shape_ = ShopShape();
  const Decoded decoded = Decode(
      {R"({"id":12,"event":{"time":"1970-01-01T00:00:01.5Z","type":"buy"},"who":{"id":"u","x":[{}]},
           "what":{"sku":"b","price":3,"more":{}},"tags":["abc",{"d":1}],"a/b":{"~":["x","y","x"]},"n2":-2.5})",
       R"({"n2":"-2.5","a/b":{"~":["x","y"]},"tags":["abc"],"what":{"price":"3","sku":"b"},
           "who":{"id":"u"},"event":{"type":7,"time":"1970-01-01T01:00:01.5+01:00"},"id":"12"})"},
      {.items = Items("a\nb\n")});
  ASSERT_EQ(decoded.batch.size(), 2u) << decoded.dead.at(0).reason;
  ExpectExample(decoded.batch, 0,
                {.event_id = "12",
                 .user = "u",
                 .timestamp_ms = 1500,
                 .label = 1,
                 .n1 = 3,
                 .n2 = -2.5,
                 .c1 = "abc",
                 .set = {"x", "y"}});
  ExpectSameExample(decoded.batch, 0, 1);
  EXPECT_THAT(decoded.batch.item, testing::ElementsAre(1, 1));
}

TEST_F(JsonShapeTest, WhatIsNotThereIsMissing) {
  shape_ = ShopShape();
  const std::vector<std::string> records = {
      R"({"event":{"type":"view"}})",
      R"({"event":{"type":"view","time":null},"who":null,"what":7,"tags":[],"a/b":{"~":[]}})",
      R"({"event":{"type":"view"},"who":{"id":null},"what":{"price":null},"tags":{"1":2}})"};
  const Decoded decoded = Decode(records);
  ASSERT_EQ(decoded.batch.size(), 3u) << decoded.dead.at(0).reason;
  for (size_t i = 0; i < 3; ++i) ExpectExample(decoded.batch, i, {});
  EXPECT_EQ(Decode(records, {.missing = MissingPolicy::kReject}).dead.size(), 3u);
}

TEST_F(JsonShapeTest, MissingTextsAreNoValues) {
  shape_ = ShopShape();
  shape_.missing = {"guest", "0"};
  const Decoded decoded = Decode(
      {R"({"id":"guest","event":{"type":"view"},"who":{"id":0},"what":{"sku":"guest","price":0},
           "tags":["guest"],"a/b":{"~":["guest","a",0]},"n2":0})",
       R"({"event":{"type":"view"},"what":{"price":0},"a/b":{"~":["a"]},"n2":0})"},
      {.items = Items("guest\n")});
  ASSERT_EQ(decoded.batch.size(), 2u) << decoded.dead.at(0).reason;
  ExpectSameExample(decoded.batch, 0, 1);
  EXPECT_EQ(decoded.batch.user[0], "");
  EXPECT_EQ(decoded.batch.item[0], kNoItem);
  EXPECT_EQ(decoded.batch.dense[0], transform_.Dense(0, 0)) << "a number of 0 is one";
  EXPECT_THAT(ReasonOf(R"({"event":{"type":"guest"}})"), HasSubstr("is missing"));
}

TEST_F(JsonShapeTest, ABadPartIsNamedWithItsPlace) {
  shape_ = ShopShape();
  const auto with = [](const std::string& more) {
    return R"({"event":{"type":"buy"},)" + more + "}";
  };
  EXPECT_EQ(ReasonOf(R"({"n1":1})"), "label (/event/type) is missing");
  EXPECT_EQ(ReasonOf(R"({"event":{"type":"look"}})"),
            "label (/event/type): is none of label_values");
  EXPECT_EQ(ReasonOf(R"({"event":{"type":["buy"]}})"),
            "label (/event/type): is a list or an object");
  EXPECT_EQ(ReasonOf(with(R"("what":{"price":"cheap"})")),
            "feature 'n1' (/what/price): is no number");
  EXPECT_EQ(ReasonOf(with(R"("what":{"price":1,"price":2})")),
            "feature 'n1' (/what/price): is there twice");
  EXPECT_EQ(ReasonOf(with(R"("tags":[{"x":1}])")),
            "feature 'c1' (/tags/0): is a list or an object");
  EXPECT_EQ(ReasonOf(with(R"("a/b":{"~":[[1]]})")),
            "feature 'set' (/a~1b/~0): has a list or an object in it");
  EXPECT_EQ(ReasonOf(with(R"("a/b":{"~":{}})")), "feature 'set' (/a~1b/~0): is an object");
  EXPECT_EQ(ReasonOf(R"({"event":{"type":"buy","time":"yesterday"}})"),
            "timestamp (/event/time): is no such time");
  EXPECT_EQ(ReasonOf(R"({"event":{"type":"buy","time":"2026-11-25 03:22"}})"),
            "timestamp (/event/time): is no such time; timestamp_unit datetime reads it");
  EXPECT_THAT(ReasonOf(R"({"event":{"type":"buy"})"), HasSubstr("no valid JSON"));
  EXPECT_THAT(ReasonOf(with(R"("what":{"price":nope})")), HasSubstr("no valid JSON"));
  EXPECT_THAT(ReasonOf(R"({"event":{"type":"buy"}} x)"), HasSubstr("no valid JSON"));
  EXPECT_THAT(ReasonOf("[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(ReasonOf(with(R"("what":{"price":1e999})")), HasSubstr("no valid JSON"));
}

TEST_F(JsonShapeTest, LabelsFollowTheRule) {
  shape_.label = "/rating";
  const auto label = [this](const std::string& rating) {
    const Decoded decoded = Decode({R"({"rating":)" + rating + "}"});
    return decoded.dead.empty() ? fmt::format("{}", decoded.batch.label[0])
                                : decoded.dead[0].reason;
  };
  EXPECT_EQ(label("1"), "1");
  EXPECT_EQ(label("false"), "0");
  EXPECT_EQ(label("2"), "label (/rating): is neither 0 nor 1");
  EXPECT_EQ(label("\"1\""), "label (/rating): is neither 0 nor 1");
  shape_.label_rule.at_least = 4;
  EXPECT_EQ(label("3.5"), "0");
  EXPECT_EQ(label("4"), "1");
  EXPECT_EQ(label("5.0"), "1");
  EXPECT_EQ(label("\"5\""), "label (/rating): is no number");
  EXPECT_EQ(label("null"), "label (/rating) is missing");
  shape_.label_rule = {.values = {{"true", false}, {"4.5", true}}};
  EXPECT_EQ(label("true"), "0");
  EXPECT_EQ(label("4.5"), "1");
  EXPECT_EQ(label("4.50"), "label (/rating): is none of label_values");
}

TEST_F(JsonShapeTest, WeightsAreSharesOfTheLargest) {
  shape_.weight = "/price";
  const std::vector<std::string> records = {R"({"label":1,"price":2})",
                                            R"({"label":1,"price":"0.5"})",
                                            R"({"label":0,"price":900})",
                                            R"({"label":0,"price":0})",
                                            R"({"label":1})",
                                            R"({"label":1,"price":null})",
                                            R"({"label":1,"price":true})"};
  const Decoded decoded = Decode(records, {.weight_most = 4});
  ASSERT_EQ(decoded.batch.size(), records.size()) << decoded.dead.at(0).reason;
  EXPECT_THAT(decoded.batch.weight,
              testing::ElementsAre(0.5f, 0.125f, 1.0f, 0.0f, 0.25f, 0.25f, 0.25f));
  // A bad record between good ones leaves no weight behind.
  for (const std::string bad : {"-1", R"("much")", "[1]", R"("inf")", R"("nan")"}) {
    const Decoded some =
        Decode({records[0], R"({"label":1,"price":)" + bad + "}", R"({"price":3})", records[1]},
               {.weight_most = 4});
    ASSERT_EQ(some.dead.size(), 2u) << bad;
    EXPECT_THAT(some.dead[0].reason, testing::StartsWith("weight (/price): ")) << bad;
    EXPECT_THAT(some.batch.weight, testing::ElementsAre(0.5f, 0.125f)) << bad;
  }
  // To score a record its weight is not looked at.
  const Decoded scored = Decode({R"({"price":"much"})"}, {.label = LabelUse::kPassedOver});
  ASSERT_EQ(scored.batch.size(), 1u);
  EXPECT_TRUE(scored.batch.weight.empty());
}

// They are in a record as if it had named them, for learning and for scoring.
TEST_F(JsonShapeTest, ConstantsAreFeaturesOfEveryRecord) {
  const JsonShape plain = shape_;
  const Decoded told =
      Decode({R"({"label":1,"features":{"n1":3.5,"n2":-2,"c1":"shop 7","set":["x"]}})"});
  shape_.constants = {{"c1", "shop 7"}, {"n1", "3.5"}, {"set", "x"}};
  const std::string record = R"({"label":1,"features":{"n2":-2,"c1":"another"}})";
  for (const LabelUse use : {LabelUse::kLearnt, LabelUse::kPassedOver}) {
    const Decoded constant =
        Decode({record, record}, {.label = use, .missing = MissingPolicy::kReject});
    ASSERT_EQ(constant.batch.size(), 2u) << constant.dead.at(0).reason;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      EXPECT_EQ(constant.batch.Slot(i, 0)[0], told.batch.Slot(0, 0)[0]);
      EXPECT_EQ(constant.batch.Slot(i, 1)[0], told.batch.Slot(0, 1)[0]);
      EXPECT_EQ(constant.batch.dense[2 * i], told.batch.dense[0]);
      EXPECT_EQ(constant.batch.dense[2 * i + 1], told.batch.dense[1]);
    }
  }
  shape_ = plain;
  const auto refusal = [&](Constants constants) {
    JsonShape shape = plain;
    shape.constants = std::move(constants);
    return Refusal(shape);
  };
  EXPECT_EQ(refusal({{"c9", "x"}}), "source.json.constants: 'c9' is no feature of the schema");
  EXPECT_EQ(refusal({{"c1", "x"}, {"c1", "y"}}), "source.json.constants: 'c1' is there twice");
  EXPECT_EQ(refusal({{"n1", "dear"}}),
            "source.json.constants: 'n1' is a number, and 'dear' is none");
}

TEST_F(JsonShapeTest, CategoriesMayBeNumbersAndFlags) {
  const Decoded decoded =
      Decode({R"({"label":1,"features":{"c1":2.5,"set":[true,7,null,"x"]}})",
              R"({"label":1,"features":{"c1":"2.5","set":["true","7","x"]}})",
              R"({"label":1,"features":{"c1":false,"set":true,"n1":true}})",
              R"({"label":1,"features":{"c1":"false","set":["true"],"n1":1}})"});
  ASSERT_EQ(decoded.batch.size(), 4u) << decoded.dead.at(0).reason;
  ExpectSameExample(decoded.batch, 0, 1);
  ExpectSameExample(decoded.batch, 2, 3);
}

TEST_F(JsonShapeTest, TimesComeInUnits) {
  using Unit = TimeUnit;
  const auto time = [this](Unit unit, const std::string& text) -> int64_t {
    shape_.timestamp_unit = unit;
    const Decoded decoded = Decode({R"({"label":1,"timestamp_ms":)" + text + "}"});
    return decoded.dead.empty() ? decoded.batch.timestamp_ms[0] : -1;
  };
  EXPECT_EQ(time(Unit::kMilliseconds, "1764041526123"), 1764041526123);
  EXPECT_EQ(time(Unit::kMilliseconds, "\"1764041526123\""), 1764041526123);
  EXPECT_EQ(time(Unit::kSeconds, "1764041526"), 1764041526000);
  EXPECT_EQ(time(Unit::kSeconds, "1764041526.25"), 1764041526250);
  EXPECT_EQ(time(Unit::kMicroseconds, "1764041526123999"), 1764041526123);
  EXPECT_EQ(time(Unit::kNanoseconds, "1764041526123999999"), 1764041526123);
  EXPECT_EQ(time(Unit::kSeconds, "9223372036854775807"), -1) << "beyond all times";
  EXPECT_EQ(time(Unit::kSeconds, "1e300"), -1);
  EXPECT_EQ(time(Unit::kSeconds, "true"), -1);
  EXPECT_EQ(time(Unit::kRfc3339, "5"), -1);
  EXPECT_EQ(time(Unit::kRfc3339, R"("2019-11-01 17:59:13")"), -1);
  EXPECT_EQ(time(Unit::kDatetime, R"("2019-11-01 17:59:13")"), 1572631153000);
  EXPECT_EQ(time(Unit::kDatetime, R"("2019-11-01 17:59:13Z")"), -1);
  EXPECT_EQ(time(Unit::kDatetime, "20191101"), -1);
  shape_.timestamp_zone_minutes = -90;
  EXPECT_EQ(time(Unit::kDatetime, R"("1970-01-01")"), 90 * 60'000);
}

TEST(Rfc3339Test, IsReadToTheMillisecond) {
  // By `date -u -d ... +%s%3N`.
  EXPECT_EQ(ReadRfc3339("2026-11-25T03:22:06Z"), 1795576926000);
  EXPECT_EQ(ReadRfc3339("2026-11-25t03:22:06.5z"), 1795576926500);
  EXPECT_EQ(ReadRfc3339("2026-11-25 04:52:06.123999+01:30"), 1795576926123);
  EXPECT_EQ(ReadRfc3339("1969-12-31T23:59:59.999Z"), -1);
  EXPECT_EQ(ReadRfc3339("2024-02-29T00:00:00-00:00"), 1709164800000);
  for (const char* wrong :
       {"", "2026-11-25", "2026-11-25T03:22:06", "2026-11-25T03:22Z", "2023-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z", "2026-11-25T24:00:00Z", "2026-11-25T03:60:00Z",
        "2026-11-25T03:22:06.Z", "2026-11-25T03:22:06+1:00", "2026-11-25T03:22:06+01:00x",
        "+026-11-25T03:22:06Z", "2026-11-25T03:22:06.5"})
    EXPECT_EQ(ReadRfc3339(wrong), std::nullopt) << wrong;
}

TEST_F(JsonShapeTest, PlacesThatCannotBeAreRefusedByName) {
  EXPECT_EQ(Refusal({}), "");
  EXPECT_EQ(Refusal(ShopShape()), "");
  const auto with = [&](auto change) {
    JsonShape shape;
    change(shape);
    return Refusal(shape);
  };
  EXPECT_THAT(with([](JsonShape& s) { s.user = "user"; }),
              AllOf(HasSubstr("source.json, user: 'user'"), HasSubstr("must begin with a slash")));
  EXPECT_THAT(with([](JsonShape& s) { s.item = "/a~b"; }), HasSubstr("a ~ must be written ~0"));
  EXPECT_THAT(with([](JsonShape& s) { s.item = "/a~"; }), HasSubstr("a ~ must be written ~0"));
  EXPECT_THAT(with([](JsonShape& s) { s.user = "/u", s.item = "/u/i/j"; }),
              HasSubstr("item: '/u/i/j' lies inside of '/u', the value of user"));
  EXPECT_THAT(with([](JsonShape& s) {
                s.features = {{"n9", "/x"}};
              }),
              HasSubstr("no feature 'n9'"));
  EXPECT_EQ(with([](JsonShape& s) { s.label = ""; }), "");
  EXPECT_THAT(with([](JsonShape& s) {
                s.label = "", s.label_rule.values = {{"a", true}};
              }),
              HasSubstr("without a label"));
  EXPECT_THAT(with([](JsonShape& s) { s.label = "", s.label_rule.at_least = 1; }),
              HasSubstr("without a label"));
  EXPECT_THAT(with([](JsonShape& s) {
                s.label_rule = {{{"a", true}}, 1.0};
              }),
              HasSubstr("two rules"));
  EXPECT_EQ(with([](JsonShape& s) { s.user = s.item = "/who"; }), "") << "a value may be two parts";
}

// A single-valued feature called user or item has that part's value, wherever it lies.
TEST(JsonShapeOwnTest, UserAndItemMayBeFeatures) {
  const FeatureTransform transform({.dense = {},
                                    .categorical = {{.name = "user", .buckets = 1000, .dim = 2},
                                                    {.name = "item", .buckets = 1000, .dim = 2}}});
  JsonShape shape;
  shape.user = "/who";
  shape.item = "/what/sku";
  Batch batch;
  transform.StartBatch(&batch);
  RawRecords records;
  records.bytes = R"({"label":1,"who":7,"what":{"sku":"b"},"features":{"user":"other"}})";
  records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
  std::vector<DeadLetter> dead;
  MakeShapedJsonCodec(transform, shape, {})->Decode(records, &batch, &dead);
  ASSERT_TRUE(dead.empty()) << dead[0].reason;
  EXPECT_EQ(batch.user[0], "7");
  EXPECT_EQ(batch.Slot(0, 0)[0], transform.Row(0, "7"));
  EXPECT_EQ(batch.Slot(0, 1)[0], transform.Row(1, "b"));
  shape.features = {{"user", "/features/user"}};
  transform.StartBatch(&batch);
  MakeShapedJsonCodec(transform, shape, {})->Decode(records, &batch, &dead);
  EXPECT_EQ(batch.Slot(0, 0)[0], transform.Row(0, "other"));
}

// Records without a label say that a user has met an item: their label is 1, with anything else
// they hold.
TEST(JsonShapeOwnTest, RecordsMayHaveNoLabel) {
  const FeatureTransform transform(
      {.dense = {}, .categorical = {{.name = "item", .buckets = 1000, .dim = 2}}});
  JsonShape shape;
  shape.label = "";
  ASSERT_TRUE(CheckShape(shape, transform.schema()));
  Batch batch;
  transform.StartBatch(&batch);
  RawRecords records;
  for (const std::string_view record :
       {R"({"user":"u","item":"a"})", R"({"label":0,"item":"b"})"}) {
    records.bytes += record;
    records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
  }
  std::vector<DeadLetter> dead;
  MakeShapedJsonCodec(transform, shape, {})->Decode(records, &batch, &dead);
  ASSERT_TRUE(dead.empty()) << dead[0].reason;
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch.label[0], 1);
  EXPECT_EQ(batch.label[1], 1);
}

// The plain codec is the oracle for the plain shape, over whole and broken records.
TEST_F(JsonShapeTest, ThePlainShapeIsThePlainFormat) {
  std::mt19937_64 random(5);
  const auto one_of = [&random](std::initializer_list<const char*> choices) {
    return std::string(choices.begin()[random() % choices.size()]);
  };
  const auto plain = MakeJsonCodec(transform_, {.items = Items("a\nb\n")});
  const auto shaped = MakeShapedJsonCodec(transform_, {}, {.items = Items("a\nb\n")});
  size_t good = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string record = fmt::format(
        R"({{"label":{},"user":{},"item":{},"event_id":{},"timestamp_ms":{},"other":{},"features":{{"n1":{},"set":{},"c1":{},"n2":{}}}}})",
        one_of({"0", "1", "true", "null", "2"}), one_of({"\"u\"", "7", "null", "[1]"}),
        one_of({"\"a\"", "\"c\"", "null"}), one_of({"\"e\"", "5", "null"}),
        one_of({"12", "-5", "13"}), one_of({"{\"label\":[1,{}]}", "[]", "\"x\"", "1e3"}),
        one_of({"1", "-2.5", "null", "1e30"}), one_of({"[]", "[\"x\",7]", "\"y\"", "[[]]"}),
        one_of({"\"v\"", "4", "null", "{}"}), one_of({"0", "3", "null"}));
    if (random() % 8 == 0) record[random() % record.size()] = "{}[],:\"x"[random() % 8];
    const RawRecords records = Records({record});
    Decoded a, b;
    transform_.StartBatch(&a.batch);
    transform_.StartBatch(&b.batch);
    plain->Decode(records, &a.batch, &a.dead);
    shaped->Decode(records, &b.batch, &b.dead);
    // The shaped form takes more than the plain one: ids of any scalar, null times, flags.
    if (a.batch.size() == 0) continue;
    ++good;
    ASSERT_EQ(b.batch.size(), 1u) << record << ": " << b.dead[0].reason;
    EXPECT_EQ(a.batch.label, b.batch.label);
    EXPECT_EQ(a.batch.timestamp_ms, b.batch.timestamp_ms);
    EXPECT_EQ(a.batch.dense, b.batch.dense);
    EXPECT_EQ(a.batch.row, b.batch.row);
    EXPECT_EQ(a.batch.item, b.batch.item);
    EXPECT_EQ(a.batch.user[0], b.batch.user[0]);
    EXPECT_EQ(a.batch.event_id[0], b.batch.event_id[0]);
  }
  EXPECT_GT(good, 2000u);
}

}  // namespace
}  // namespace tacit::event
