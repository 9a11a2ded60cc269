#include "event/shape_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

namespace tacit::event {
namespace {

template <class T>
std::optional<T> WholeText(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The first pair of this name.
Constants::const_iterator FindNamed(const Constants& pairs, std::string_view name) {
  return std::ranges::find(pairs, name,
                           [](const auto& pair) { return std::string_view(pair.first); });
}

namespace chrono = std::chrono;

// Takes the parts of a time off a text, from its left end.
class TimeText {
 public:
  explicit TimeText(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  // Takes one of these characters.
  bool One(std::string_view of) {
    if (at_end() || of.find(rest_[0]) == of.npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<int> Number(size_t digits) {
    if (rest_.size() < digits) return std::nullopt;
    int number = 0;
    for (const char c : rest_.substr(0, digits)) {
      if (c < '0' || c > '9') return std::nullopt;
      number = 10 * number + (c - '0');
    }
    rest_.remove_prefix(digits);
    return number;
  }
  std::optional<chrono::sys_days> Date() {
    const auto year = Number(4), month = One("-") ? Number(2) : std::nullopt,
               day = One("-") ? Number(2) : std::nullopt;
    if (!year || !month || !day) return std::nullopt;
    const chrono::year_month_day date(chrono::year(*year),
                                      chrono::month(static_cast<unsigned>(*month)),
                                      chrono::day(static_cast<unsigned>(*day)));
    return date.ok() ? std::optional(chrono::sys_days(date)) : std::nullopt;
  }
  // Takes ":59".
  std::optional<chrono::minutes> Minutes() {
    const auto minutes = One(":") ? Number(2) : std::nullopt;
    return minutes && *minutes < 60 ? std::optional(chrono::minutes(*minutes)) : std::nullopt;
  }
  // Takes ":60.123999", 60 for a leap second; parts of a millisecond are dropped.
  std::optional<chrono::milliseconds> Seconds() {
    const auto seconds = One(":") ? Number(2) : std::nullopt;
    if (!seconds || *seconds > 60) return std::nullopt;
    chrono::milliseconds time = chrono::seconds(*seconds);
    if (!One(".")) return time;
    auto digit = Number(1);
    if (!digit) return std::nullopt;
    for (int unit = 100; digit; unit /= 10, digit = Number(1))
      time += chrono::milliseconds(unit * *digit);
    return time;
  }
  // Takes "+02:00".
  std::optional<chrono::minutes> Offset() {
    const bool behind = One("-");
    const auto hours = behind || One("+") ? Number(2) : std::nullopt;
    if (!hours || *hours > 23) return std::nullopt;
    const auto minutes = Minutes();
    if (!minutes) return std::nullopt;
    const chrono::minutes offset = chrono::hours(*hours) + *minutes;
    return behind ? -offset : offset;
  }

 private:
  std::string_view rest_;
};

int64_t InMilliseconds(chrono::sys_time<chrono::milliseconds> time) {
  return time.time_since_epoch().count();
}

}  // namespace

std::optional<int64_t> ReadRfc3339(std::string_view text) {
  TimeText rest(text);
  const auto date = rest.Date();
  if (!date || !rest.One("Tt ")) return std::nullopt;
  const auto hour = rest.Number(2);
  if (!hour || *hour > 23) return std::nullopt;
  const auto minute = rest.Minutes();
  const auto second = rest.Seconds();
  if (!minute || !second) return std::nullopt;
  chrono::minutes offset(0);
  if (!rest.One("Zz")) {
    const auto minutes = rest.Offset();
    if (!minutes) return std::nullopt;
    offset = *minutes;
  }
  if (!rest.at_end()) return std::nullopt;
  return InMilliseconds(*date + chrono::hours(*hour) + *minute + *second - offset);
}

std::optional<int64_t> ReadDatetime(std::string_view text, int32_t zone_minutes) {
  TimeText rest(text);
  const auto date = rest.Date();
  if (!date) return std::nullopt;
  chrono::milliseconds of_day(0);
  if (!rest.at_end()) {
    const auto hour = rest.One("Tt ") ? rest.Number(2) : std::nullopt;
    const auto minute = hour ? rest.Minutes() : std::nullopt;
    const auto second = minute && rest.at_end() ? chrono::milliseconds(0) : rest.Seconds();
    if (!minute || !second || !rest.at_end()) return std::nullopt;
    of_day = chrono::hours(*hour) + *minute + *second;
    if (*hour > 23 && of_day != chrono::hours(24)) return std::nullopt;
  }
  return InMilliseconds(*date + of_day - chrono::minutes(zone_minutes));
}

std::optional<int64_t> ReadTime(std::string_view text, const RecordShape& shape) {
  const TimeUnit unit = shape.timestamp_unit;
  if (unit == TimeUnit::kRfc3339) return ReadRfc3339(text);
  if (unit == TimeUnit::kDatetime) return ReadDatetime(text, shape.timestamp_zone_minutes);
  const int64_t divisor = unit == TimeUnit::kMicroseconds  ? 1000
                          : unit == TimeUnit::kNanoseconds ? 1'000'000
                                                           : 1;
  const int64_t factor = unit == TimeUnit::kSeconds ? 1000 : 1;
  if (const auto whole = WholeText<int64_t>(text)) {
    int64_t time = 0;
    if (__builtin_mul_overflow(*whole, factor, &time)) return std::nullopt;
    return time / divisor;
  }
  const auto number = ReadNumber(text);
  if (!number) return std::nullopt;
  const double time = *number * static_cast<double>(factor) / static_cast<double>(divisor);
  if (!(std::abs(time) < 0x1p62)) return std::nullopt;
  return static_cast<int64_t>(std::floor(time));
}

std::string_view WhyNoTime(std::string_view text) {
  if (ReadRfc3339(text)) return "is no such time; timestamp_unit rfc3339 reads it";
  if (ReadDatetime(text, 0)) return "is no such time; timestamp_unit datetime reads it";
  if (ReadNumber(text)) return "is no such time; timestamp_unit s, ms, us or ns reads numbers";
  return "is no such time";
}

std::vector<ShapePart> PartsOf(
    const RecordShape& shape, const FeatureNames& names,
    const std::function<std::string(const std::string&, FeatureNames::Place)>& place_of) {
  std::vector<ShapePart> parts;
  const auto add = [&](PartKind kind, const char* name, const std::string& where) {
    if (!where.empty()) parts.push_back({.kind = kind, .name = name, .where = where});
  };
  add(PartKind::kLabel, "label", shape.label);
  add(PartKind::kUser, "user", shape.user);
  add(PartKind::kItem, "item", shape.item);
  add(PartKind::kEventId, "event_id", shape.event_id);
  add(PartKind::kTime, "timestamp", shape.timestamp);
  add(PartKind::kWeight, "weight", shape.weight);
  for (size_t i = 0; i < names.size(); ++i) {
    const FeatureNames::Place place = names.PlaceOf(i);
    const std::string name(names.name(i));
    if (FindNamed(shape.constants, name) != shape.constants.end()) continue;
    const auto named = FindNamed(shape.features, name);
    parts.push_back(
        {.kind = PartKind::kFeature,
         .place = place,
         .name = fmt::format("feature '{}'", name),
         .where = named == shape.features.end() ? place_of(name, place) : named->second});
  }
  return parts;
}

bool IsMissing(const RecordShape& shape, const ShapePart& part, std::string_view text) {
  const bool number = part.kind == PartKind::kTime || part.kind == PartKind::kWeight ||
                      (part.kind == PartKind::kFeature && part.place.dense);
  return !number && std::ranges::find(shape.missing, text) != shape.missing.end();
}

std::optional<double> ReadNumber(std::string_view text) {
  const auto number = WholeText<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<float> LabelOf(const LabelRule& rule, std::string_view text,
                             std::optional<double> number) {
  if (!rule.values.empty()) {
    const auto value = std::ranges::find(rule.values, text,
                                         [](const auto& v) { return std::string_view(v.first); });
    if (value == rule.values.end()) return std::nullopt;
    return value->second ? 1.0f : 0.0f;
  }
  if (!number) return std::nullopt;
  if (rule.at_least) return *number >= *rule.at_least ? 1.0f : 0.0f;
  if (*number != 0 && *number != 1) return std::nullopt;
  return static_cast<float>(*number);
}

std::optional<double> WeightOf(std::optional<double> number) {
  return number && std::isfinite(*number) && *number >= 0 ? number : std::nullopt;
}

Status CheckShapeRules(std::string_view key, const RecordShape& shape,
                       const FeatureSchema& schema) {
  const auto refuse = [key](std::string_view what) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}{}", key, what));
  };
  const LabelRule& rule = shape.label_rule;
  const FeatureNames names(schema);
  for (const auto& [name, where] : shape.features)
    if (size_t guess = 0; !names.Find(name, &guess))
      return refuse(fmt::format(".features: the schema has no feature '{}'", name));
  if (shape.label.empty() && (!rule.values.empty() || rule.at_least))
    return refuse(
        ".label: records without a label cannot have a rule for it: leave out label_values and "
        "label_at_least");
  if (!rule.values.empty() && rule.at_least)
    return refuse(": label_values and label_at_least are two rules for one label");
  for (auto at = shape.constants.begin(); at != shape.constants.end(); ++at) {
    const auto bad = [&](std::string_view why) {
      return refuse(fmt::format(".constants: '{}' {}", at->first, why));
    };
    size_t guess = 0;
    const auto place = names.Find(at->first, &guess);
    if (!place) return bad("is no feature of the schema");
    if (FindNamed(shape.constants, at->first) != at) return bad("is there twice");
    if (place->dense && !ReadNumber(at->second))
      return bad(fmt::format("is a number, and '{}' is none", at->second));
  }
  return {};
}

void SetConstants(const Constants& constants, ExampleBuilder* example) {
  for (const auto& [name, value] : constants) {
    const auto place = example->Find(name);
    example->Tell(*place);
    const std::string_view text = value;
    if (place->dense)
      example->SetNumber(place->index, *ReadNumber(text));
    else
      example->SetValues(place->index, {&text, 1});
  }
}

std::string_view WhyNoLabel(const LabelRule& rule) {
  if (!rule.values.empty()) return "is none of label_values";
  return rule.at_least ? "is no number" : "is neither 0 nor 1";
}

}  // namespace tacit::event
