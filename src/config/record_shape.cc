#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/json_pointer.h"
#include "config/sections.h"

// The keys of records' parts, in JSON and in lines of values.
namespace tacit::config {
namespace {

// The minutes that a zone's clock is ahead of UTC. Nothing if the text is no fixed offset.
std::optional<int32_t> ZoneMinutes(std::string_view text) {
  if (text == "UTC" || text == "Etc/UTC") return 0;
  const auto is_digit = [&](size_t at) { return text[at] >= '0' && text[at] <= '9'; };
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' || !is_digit(1) ||
      !is_digit(2) || !is_digit(4) || !is_digit(5))
    return std::nullopt;
  const int32_t hours = 10 * (text[1] - '0') + text[2] - '0';
  const int32_t minutes = 10 * (text[4] - '0') + text[5] - '0';
  if (hours > 23 || minutes > 59) return std::nullopt;
  return (text[0] == '-' ? -1 : 1) * (60 * hours + minutes);
}

std::string ZoneText(int32_t minutes) {
  if (minutes == 0) return "UTC";
  const int32_t size = std::abs(minutes);
  return fmt::format("{}{:02}:{:02}", minutes < 0 ? '-' : '+', size / 60, size % 60);
}

// Describes the keys that JSON and lines of values have in common.
void DescribeShape(Fields& fields, event::RecordShape& shape, Use use) {
  static constexpr std::array<std::string_view, 6> kUnits = {"ms", "s",       "us",
                                                             "ns", "rfc3339", "datetime"};
  fields.Text({"label",
               "The place of the label: 0, 1, false or true, unless `label_values` or "
               "`label_at_least` says otherwise. Empty: records have no label, and each says that "
               "a user has met an item; models of the next item alone learn from them."},
              &shape.label, use);
  fields.Labels(
      {"label_values",
       "The label by value, such as `{buy: 1, view: 0}`. Another value makes a dead letter."},
      &shape.label_rule.values, use);
  fields.Number({"label_at_least", "A number from here on is a label of 1, below it 0."},
                &shape.label_rule.at_least, {}, use);
  fields.Text({"user", "The place of the user. Empty: records name none."}, &shape.user, use);
  fields.Text({"item", "The place of the item. Empty: records name none."}, &shape.item, use);
  fields.Text({"event_id", "The place of the event's id. Empty: records have none."},
              &shape.event_id, use);
  fields.Text({"timestamp", "The place of the record's time. Empty: records have none."},
              &shape.timestamp, use);
  fields.Enum(
      {"timestamp_unit",
       "The unit of times; `rfc3339` is a text such as `2026-11-25T03:22:06Z`, `datetime` one "
       "without a zone, such as `2026-11-25 03:22:06` or `2026-11-25`."},
      &shape.timestamp_unit, kUnits, use);
  const bool has_zone = shape.timestamp_unit == event::TimeUnit::kDatetime;
  std::string zone = ZoneText(shape.timestamp_zone_minutes);
  fields.Text({"timestamp_zone",
               "The zone of times of unit `datetime`, and of no other: `UTC`, or a fixed offset "
               "such as `+02:00`. "
               "Names such as `Europe/Berlin` are refused: their offset changes over the year."},
              &zone, UsedIf(IsUsed(use) && has_zone));
  shape.timestamp_zone_minutes = ZoneMinutes(zone).value_or(0);
  fields.Texts(
      {"missing",
       "Texts that stand for no value, such as `[guest, \"-1\"]`, in the user, the item, "
       "the event's id, the label and categories, and never in numbers and times. A record "
       "of such a user is one without a user."},
      &shape.missing, use);
  fields.Text({"weight",
               "The place of a number of at least 0 by which a record counts, 1 where it is "
               "missing. Another value makes a dead letter. For models of clicks only. Empty: "
               "every record counts alike."},
              &shape.weight, use);
  fields.Number({"weight_most",
                 "Larger weights count as this one. The noise goes with it, because the "
                 "sensitivity is that of a record of this weight: set the least that cuts few."},
                &shape.weight_most, {.min = 0, .max = 1e9, .above_min = true}, use);
  fields.OwnNames(
      {"features",
       "The place by feature, such as `{price: /product/price}` in JSON and `{price: unit_price}` "
       "in lines. The other features lie at `features_at`/NAME in JSON; in lines they are in the "
       "column of their own name, which must be there. A number may be in quotes, a category may "
       "be a number or a flag, a set is a list of such values."},
      &shape.features, use);
  fields.OwnNames({"constants",
                   "The value by feature, such as `{shop: berlin}`, of features that have one "
                   "value in all records and are read from no place."},
                  &shape.constants, use);
}

// The rules of one key hold for what is written, whether its format is the chosen one or not. So
// they read the tree: an unused value is in no struct.
Status CheckLabelValues(const Place& values) {
  if (values.tree() == nullptr) return {};
  for (const Tree& label : values.tree()->children)
    if (label.text != "0" && label.text != "1") return values.Key(label.key).Fail("must be 0 or 1");
  return {};
}

Status CheckZone(const Place& shape) {
  const Place zone = shape.Key("timestamp_zone"), unit = shape.Key("timestamp_unit");
  if (zone.tree() == nullptr) return {};
  const auto minutes = ZoneMinutes(zone.tree()->text);
  if (minutes == 0) return {};
  if (unit.tree() == nullptr || unit.tree()->text != "datetime")
    return zone.Fail(
        "is for timestamp_unit datetime alone: times of the other units say themselves what time "
        "it is in UTC");
  if (minutes) return {};
  return zone.Fail(fmt::format(
      "must be UTC or a fixed offset such as +02:00, is '{}'; the offset of a named zone changes "
      "over the year, so write times in UTC where it does",
      zone.tree()->text));
}

Status CheckPointer(const Place& place) {
  if (place.tree() == nullptr || place.tree()->text.empty()) return {};
  const auto keys = KeysOfPointer(place.tree()->text);
  if (keys) return {};
  return place.Fail(fmt::format("'{}' {}", place.tree()->text, keys.error().message));
}

}  // namespace

void DescribeJson(Fields& fields, event::JsonShape& shape, bool used) {
  DescribeShape(fields, shape, UsedIf(used));
  fields.Text({"features_at",
               "The place below which features lie by their names. Empty: the record's top."},
              &shape.features_at, UsedIf(used));
}

void DescribeAvro(Fields& fields, event::AvroShape& shape, bool used) {
  fields.Text({"schema_file",
               "A file with the Avro schema that records are read by, where it differs from their "
               "own: defaults, aliases and wider types are taken from it. Required in topics "
               "without framing, whose records are of this schema. Empty: each record is read by "
               "the schema it was written by."},
              &shape.schema_file, UsedIf(used));
  DescribeJson(fields, shape, used);
}

void DescribeCsv(Fields& fields, event::CsvShape& shape, bool used) {
  const Use use = UsedIf(used);
  fields.Columns(
      {"columns",
       "The columns' names, in order; `\"\"` for a column without a name, which is passed over. "
       "None: the first file's first line has them, and each file must begin with that line, or "
       "the start is refused. Required in topics."},
      &shape.columns, use);
  fields.Character({"separator", "The character between values."}, &shape.separator, use);
  fields.Character({"set_separator", "The character between the values of a `multi_hot` feature."},
                   &shape.set_separator, use);
  fields.Flag({"header",
               "true: the first line of each file names the columns. It is no record, and has an "
               "offset of its own."},
              &shape.header, use);
  DescribeShape(fields, shape, use);
}

Status CheckShape(const Place& place, const event::RecordShape& shape) {
  if (!shape.label_rule.values.empty() && shape.label_rule.at_least)
    return place.Key("label_at_least").Fail("label_values says already what the label is");
  for (const std::string& text : shape.missing) {
    const auto names = [&text](const auto& value) { return value.first == text; };
    const bool unruled = shape.label_rule.values.empty() && !shape.label_rule.at_least;
    const bool plain = text == "0" || text == "1" || text == "true" || text == "false";
    if (std::ranges::any_of(shape.label_rule.values, names) ||
        (!shape.label.empty() && unruled && plain))
      return place.Key("missing").Fail(
          fmt::format("'{}' is a label: records that have it would be dead letters", text));
  }
  for (const auto& [name, value] : shape.constants)
    for (const auto& [other, where] : shape.features)
      if (name == other)
        return place.Key("constants").Key(name).Fail("features says already where it is read");
  return {};
}

Status CheckJsonKeys(const Place& json) {
  TACIT_RETURN_IF_ERROR(CheckLabelValues(json.Key("label_values")));
  TACIT_RETURN_IF_ERROR(CheckZone(json));
  for (const char* key :
       {"label", "user", "item", "event_id", "timestamp", "weight", "features_at"})
    TACIT_RETURN_IF_ERROR(CheckPointer(json.Key(key)));
  const Place features = json.Key("features");
  if (features.tree() == nullptr) return {};
  for (const Tree& feature : features.tree()->children)
    TACIT_RETURN_IF_ERROR(CheckPointer(features.Key(feature.key)));
  return {};
}

Status CheckCsvKeys(const Place& csv) {
  TACIT_RETURN_IF_ERROR(CheckLabelValues(csv.Key("label_values")));
  TACIT_RETURN_IF_ERROR(CheckZone(csv));
  for (const char* key : {"separator", "set_separator"}) {
    const Place at = csv.Key(key);
    if (at.tree() == nullptr) continue;
    const std::string& text = at.tree()->text;
    if (text.size() != 1 || text.find_first_of("\"\r\n") != std::string::npos)
      return at.Fail(fmt::format(
          "must be one character of one byte, and neither a quote nor a line's end, is '{}'",
          text));
  }
  return {};
}

}  // namespace tacit::config
