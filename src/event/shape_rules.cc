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

}  // namespace

std::optional<int64_t> ReadRfc3339(std::string_view text) {
  namespace chrono = std::chrono;
  // Takes `digits` digits, then one of `ends` unless that is empty.
  const auto take = [&text](size_t digits, std::string_view ends) -> std::optional<int> {
    if (text.size() < digits) return std::nullopt;
    int number = 0;
    for (const char c : text.substr(0, digits)) {
      if (c < '0' || c > '9') return std::nullopt;
      number = 10 * number + (c - '0');
    }
    text.remove_prefix(digits);
    if (ends.empty()) return number;
    if (text.empty() || ends.find(text[0]) == std::string_view::npos) return std::nullopt;
    text.remove_prefix(1);
    return number;
  };
  const auto year = take(4, "-"), month = take(2, "-"), day = take(2, "Tt ");
  const auto hour = take(2, ":"), minute = take(2, ":"), second = take(2, "");
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const chrono::year_month_day date(chrono::year(*year),
                                    chrono::month(static_cast<unsigned>(*month)),
                                    chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  int64_t milliseconds = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    size_t digits = 0;
    for (int64_t unit = 100; digits < text.size() && text[digits] >= '0' && text[digits] <= '9';
         ++digits, unit /= 10)
      milliseconds += unit * (text[digits] - '0');
    if (digits == 0) return std::nullopt;
    text.remove_prefix(digits);
  }
  chrono::minutes offset(0);
  if (text.starts_with('+') || text.starts_with('-')) {
    const int sign = text[0] == '+' ? 1 : -1;
    text.remove_prefix(1);
    const auto hours = take(2, ":"), minutes = take(2, "");
    if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
    offset = sign * (chrono::hours(*hours) + chrono::minutes(*minutes));
  } else if (text.starts_with('Z') || text.starts_with('z')) {
    text.remove_prefix(1);
  } else {
    return std::nullopt;
  }
  if (!text.empty()) return std::nullopt;
  const auto time = chrono::sys_days(date) + chrono::hours(*hour) + chrono::minutes(*minute) +
                    chrono::seconds(*second) - offset;
  return chrono::duration_cast<chrono::milliseconds>(time.time_since_epoch()).count() +
         milliseconds;
}

std::optional<int64_t> ReadTime(std::string_view text, TimeUnit unit) {
  if (unit == TimeUnit::kRfc3339) return ReadRfc3339(text);
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
