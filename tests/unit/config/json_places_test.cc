// source.json: where the parts of a record lie.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "config/dump.h"
#include "sample.h"

namespace tacit::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string JsonSample(const std::string& keys) {
  return Sample("kind: generator", "kind: log\n  format: json\n  files: /dev/null\n" + keys);
}

std::string RefusalOf(const std::string& keys) {
  const auto config = Parse(JsonSample(keys), "c.yaml", {});
  return config ? std::string() : config.error().message;
}

TEST(JsonPlaces, AreReadAndWritten) {
  const auto config =
      Parse(JsonSample("  json:\n    label: /event/type\n    label_values: {buy: 1, \"a: b\": 0}\n"
                       "    user: \"\"\n    timestamp: /t\n    timestamp_unit: rfc3339\n"
                       "    features: {I1: /price, password: /x}\n    features_at: \"\"\n"
                       "    weight: /w\n    weight_most: 2.5\n    constants: {I2: 3}\n"
                       "    missing: [guest, \"-1\"]\n"),
            "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  const event::JsonShape& places = config->source.json;
  EXPECT_TRUE(places.is_own());
  EXPECT_EQ(places.label, "/event/type");
  EXPECT_THAT(places.label_rule.values, ElementsAre(Pair("buy", true), Pair("a: b", false)));
  EXPECT_EQ(places.user, "");
  EXPECT_EQ(places.item, "/item");
  EXPECT_EQ(places.timestamp_unit, event::TimeUnit::kRfc3339);
  EXPECT_EQ(places.weight, "/w");
  EXPECT_EQ(places.weight_most, 2.5);
  EXPECT_THAT(places.constants, ElementsAre(Pair("I2", "3")));
  EXPECT_THAT(places.missing, ElementsAre("guest", "-1"));
  EXPECT_TRUE(config->source.weighs());
  EXPECT_THAT(places.features, ElementsAre(Pair("I1", "/price"), Pair("password", "/x")));
  const std::string dump = Dump(*config);
  const auto again = Parse(dump, "dump", {});
  ASSERT_TRUE(again) << again.error().message << "\n" << dump;
  EXPECT_EQ(again->source.json, places);
}

TEST(JsonPlaces, AZoneIsUtcOrAFixedOffset) {
  const auto zone = [](const std::string& text) -> std::optional<int32_t> {
    const auto config =
        Parse(JsonSample("  json: {timestamp_unit: datetime, timestamp_zone: \"" + text + "\"}\n"),
              "c.yaml", {});
    if (!config) return std::nullopt;
    const auto again = Parse(Dump(*config), "dump", {});
    EXPECT_TRUE(again && again->source.json == config->source.json) << Dump(*config);
    return config->source.json.timestamp_zone_minutes;
  };
  EXPECT_EQ(zone("UTC"), 0);
  EXPECT_EQ(zone("Etc/UTC"), 0);
  EXPECT_EQ(zone("+00:00"), 0);
  EXPECT_EQ(zone("+02:00"), 120);
  EXPECT_EQ(zone("-03:30"), -210);
  EXPECT_EQ(zone("-00:30"), -30);
  EXPECT_EQ(zone("+23:59"), 1439);
  for (const char* wrong : {"", "Z", "utc", "CET", "Europe/Berlin", "+2:00", "+0200", "02:00",
                            "+24:00", "+01:60", "+01:0x", "+01:00 "})
    EXPECT_EQ(zone(wrong), std::nullopt) << wrong;
  EXPECT_THAT(RefusalOf("  json: {timestamp_unit: datetime, timestamp_zone: Europe/Berlin}\n"),
              HasSubstr("c.yaml:5: source.json.timestamp_zone: must be UTC or a fixed offset such "
                        "as +02:00, is 'Europe/Berlin'"));
  EXPECT_THAT(RefusalOf("  csv: {timestamp_unit: datetime, timestamp_zone: CET}\n"),
              HasSubstr("source.csv.timestamp_zone: must be UTC or a fixed offset"));
  // A time of another unit says itself what it is in UTC, and takes no other zone.
  for (const char* unit : {"timestamp_unit: rfc3339, ", "timestamp_unit: s, ", ""}) {
    EXPECT_THAT(RefusalOf(fmt::format("  json: {{{}timestamp_zone: \"+02:00\"}}\n", unit)),
                HasSubstr("source.json.timestamp_zone: is for timestamp_unit datetime alone"));
    for (const char* utc : {"UTC", "Etc/UTC", "\"+00:00\"", "\"-00:00\""})
      EXPECT_TRUE(Parse(JsonSample(fmt::format("  json: {{{}timestamp_zone: {}}}\n", unit, utc)),
                        "c.yaml", {}))
          << unit << utc;
  }
}

TEST(JsonPlaces, AreOursWhereNothingIsSaid) {
  const auto config = Parse(JsonSample(""), "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_FALSE(config->source.json.is_own());
  // A section that another format would not use changes nothing.
  const auto other =
      Parse(Sample("kind: generator", "kind: generator\n  json: {user: /who}"), "c.yaml", {});
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_FALSE(other->source.json.is_own());
}

TEST(JsonPlaces, WhatCannotBeIsRefused) {
  EXPECT_EQ(RefusalOf("  json:\n    features: {I1: /x}\n    constants: {I1: 2}\n"),
            "c.yaml:7: source.json.constants.I1: features says already where it is read");
  EXPECT_THAT(RefusalOf("  json:\n    weight: /w\n    weight_most: 0\n"),
              HasSubstr("source.json.weight_most: must be above 0"));
  EXPECT_EQ(RefusalOf("  json:\n    label_values: {buy: 2}\n"),
            "c.yaml:6: source.json.label_values.buy: must be 0 or 1");
  EXPECT_THAT(RefusalOf("  json:\n    label_values: {buy: 1, view:}\n"),
              HasSubstr("source.json.label_values.view: has no value; expected 0 or 1"));
  EXPECT_THAT(RefusalOf("  json:\n    missing: [guest, \"0\"]\n"),
              HasSubstr("source.json.missing: '0' is a label: records that have it would be dead"));
  EXPECT_THAT(RefusalOf("  json:\n    label_values: {buy: 1}\n    missing: [buy]\n"),
              HasSubstr("source.json.missing: 'buy' is a label"));
  EXPECT_THAT(RefusalOf("  json:\n    label_values: {buy: 1}\n    label_at_least: 3\n"),
              HasSubstr("c.yaml:7: source.json.label_at_least: label_values says already"));
  EXPECT_THAT(RefusalOf("  json:\n    features: [price]\n"),
              HasSubstr("source.json.features: must be a section of keys"));
  EXPECT_THAT(RefusalOf("  json:\n    features: {price: [1]}\n"),
              HasSubstr("source.json.features.price: expected a text, found a list"));
  EXPECT_THAT(
      RefusalOf("  json:\n    timestamp_unit: minutes\n"),
      HasSubstr("source.json.timestamp_unit: must be one of ms, s, us, ns, rfc3339, datetime"));
  EXPECT_THAT(RefusalOf("  json:\n    lable: /x\n"), HasSubstr("source.json.lable: unknown key"));
  EXPECT_EQ(RefusalOf("  json:\n    user: id\n"),
            "c.yaml:6: source.json.user: 'id' is no JSON pointer: it must begin with a slash");
  EXPECT_EQ(
      RefusalOf("  json:\n    features: {I1: /a~2}\n"),
      "c.yaml:6: source.json.features.I1: '/a~2' is no JSON pointer: a ~ must be written ~0, a "
      "slash in a key ~1");
}

// A section that is not used today may be chosen tomorrow: its keys are checked all the same.
TEST(JsonPlaces, ASectionOfAnotherFormatIsChecked) {
  const auto refusal = [](const std::string& section) {
    const auto config =
        Parse(Sample("kind: generator", "kind: generator\n  " + section), "c.yaml", {});
    return config ? "" : config.error().message;
  };
  EXPECT_THAT(refusal("json: {item: sku}"),
              HasSubstr("source.json.item: 'sku' is no JSON pointer"));
  EXPECT_THAT(refusal("json: {features: {I1: /a~}}"),
              HasSubstr("source.json.features.I1: '/a~' is no JSON pointer"));
  EXPECT_THAT(refusal("json: {label_values: {buy: 2}}"),
              HasSubstr("source.json.label_values.buy: must be 0 or 1"));
  EXPECT_THAT(refusal("csv: {label_values: {buy: 2}}"),
              HasSubstr("source.csv.label_values.buy: must be 0 or 1"));
  EXPECT_THAT(refusal("csv: {separator: ';;'}"),
              HasSubstr("source.csv.separator: must be one character"));
  EXPECT_THAT(refusal("csv: {set_separator: ''}"),
              HasSubstr("source.csv.set_separator: must be one character"));
  EXPECT_EQ(refusal("csv: {separator: ;}\n  json: {item: /sku, label: ''}"), "");
}

}  // namespace
}  // namespace tacit::config
