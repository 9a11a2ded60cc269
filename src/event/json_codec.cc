// Interactions as JSON, one object a record; schemas/ and docs/internals/event.md define the
// fields.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "event/codec.h"
#include "event/example_builder.h"
#include "event/json_values.h"
#include "event/record_parts.h"
#include "event/run_codec.h"

namespace tacit::event {
namespace {

bool IsInteger(std::string_view token) {
  if (token.starts_with('-')) token.remove_prefix(1);
  return !token.empty() && std::ranges::all_of(token, [](char c) { return c >= '0' && c <= '9'; });
}

// Finds the text of a token that is a string without escapes, as most are: it needs no copy.
bool IsPlainText(std::string_view token, std::string_view* text) {
  if (token.size() < 2 || token.front() != '"' || token.back() != '"') return false;
  *text = token.substr(1, token.size() - 2);
  bool plain = true;
  for (const char c : *text) plain &= c != '"' && c != '\\';
  return plain;
}

// Finds the number of a token that is an integer of at most 15 digits, as JSON writes it. A double
// holds each of them. -0 is none: its sign would be lost.
bool IsShortInteger(std::string_view token, int64_t* number) {
  const bool negative = token.starts_with('-');
  if (negative) token.remove_prefix(1);
  if (token.empty() || token.size() > 15) return false;
  if (token.front() == '0' && (negative || token.size() > 1)) return false;
  int64_t sum = 0;
  for (const char c : token) {
    const auto digit = static_cast<uint8_t>(c - '0');
    if (digit > 9) return false;
    sum = sum * 10 + digit;
  }
  *number = negative ? -sum : sum;
  return true;
}

// Reads a text, or an integer as its digits: ids come in both forms. Null gives an empty text.
// Returns false for other values.
bool ReadText(ondemand::value& value, std::string_view* text) {
  if (IsPlainText(Trimmed(value.raw_json_token()), text)) return true;
  ondemand::json_type type;
  if (value.type().get(type)) return false;
  switch (type) {
    case ondemand::json_type::string:
      return value.get_string().get(*text) == simdjson::SUCCESS;
    case ondemand::json_type::null:
      *text = {};
      return IsNull(value);
    case ondemand::json_type::number: {
      *text = Trimmed(value.raw_json_token());
      return IsInteger(*text);
    }
    default:
      return false;
  }
}

// Returns true if the names contain no character that JSON escapes.
bool ArePlain(const FeatureNames& names) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names.name(i).find_first_of("\"\\") != std::string_view::npos) return false;
  return true;
}

class JsonCodec final : public RunCodec<JsonCodec> {
 public:
  struct Scratch {
    explicit Scratch(const JsonCodec& codec)
        : example(codec.transform_, codec.names_, codec.options_.missing) {}

    ExampleBuilder example;
    RecordParser parser;
    std::vector<std::string_view> values;
  };

  JsonCodec(const FeatureTransform& transform, InteractionOptions options)
      : transform_(transform),
        names_(transform.schema()),
        options_(std::move(options)),
        plain_names_(ArePlain(names_)) {}

  Scratch MakeScratch(const Batch& batch) const {
    TACIT_CHECK(batch.dense_width == transform_.schema().dense.size() &&
                    batch.slots == transform_.schema().categorical.size(),
                "the batch is not started");
    return Scratch(*this);
  }
  MaybeBad DecodeRecord(const RawRecords& records, size_t i, Scratch* scratch, Batch* batch) const;

 private:
  MaybeBad ReadRecord(ondemand::object& record, Scratch* scratch, RecordParts* header) const;
  MaybeBad ReadField(std::string_view key, ondemand::value& value, Scratch* scratch,
                     RecordParts* header) const;
  MaybeBad ReadFeatures(ondemand::value& value, Scratch* scratch) const;
  MaybeBad ReadFeature(FeatureNames::Place place, ondemand::value& value, Scratch* scratch) const;
  MaybeBad ReadSet(uint32_t index, ondemand::value& value, Scratch* scratch) const;

  const FeatureTransform& transform_;
  const FeatureNames names_;
  const InteractionOptions options_;
  const bool plain_names_;  // no name has escapes: a key is compared without unescaping
};

MaybeBad JsonCodec::DecodeRecord(const RawRecords& records, size_t i, Scratch* scratch,
                                 Batch* batch) const {
  RecordParts header;
  scratch->example.Start();
  if (MaybeBad reason = scratch->parser.ReadObject(records, i, [&](ondemand::object& object) {
        return ReadRecord(object, scratch, &header);
      }))
    return reason;
  return AppendExample(records, i, header, scratch->example, options_, /*place=*/"", batch);
}

MaybeBad JsonCodec::ReadRecord(ondemand::object& record, Scratch* scratch,
                               RecordParts* header) const {
  for (auto entry : record) {
    if (const auto error = entry.error()) return Broken(error);
    ondemand::field& field = entry.value_unsafe();
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return Broken(error);
    if (MaybeBad reason = ReadField(key, field.value(), scratch, header)) return reason;
  }
  return std::nullopt;
}

MaybeBad ReadLabel(ondemand::value& value, std::optional<float>* label) {
  bool yes = false;
  double number = 0;
  if (value.get_bool().get(yes) == simdjson::SUCCESS) {
    *label = yes ? 1.0f : 0.0f;
  } else if (value.get_double().get(number) == simdjson::SUCCESS && (number == 0 || number == 1)) {
    *label = static_cast<float>(number);
  } else {
    return Said("label", "is neither 0 nor 1", BadPart::kLabel);
  }
  return std::nullopt;
}

// Skips unknown fields: a newer producer may send more.
MaybeBad JsonCodec::ReadField(std::string_view key, ondemand::value& value, Scratch* scratch,
                              RecordParts* header) const {
  if (key == "label" && options_.label == LabelUse::kLearnt)
    return ReadLabel(value, &header->label);
  if (key == "features") return ReadFeatures(value, scratch);
  if (key == "timestamp_ms") {
    int64_t time = 0;
    if (value.get_int64().get(time)) return Said(key, "is no integer", BadPart::kTime);
    header->timestamp_ms = time;
    return std::nullopt;
  }
  if (key != "event_id" && key != "user" && key != "item") return std::nullopt;
  std::string_view text;
  if (!ReadText(value, &text)) return Said(key, "is neither a text nor an integer");
  if (key == "event_id") header->event_id = text;
  if (key == "user") header->user = text;
  if (key == "item" && options_.items) header->item = options_.items->Find(text);
  // A schema may have the user or the item as a feature.
  const auto place = scratch->example.Find(key);
  if (!place || place->dense) return std::nullopt;
  if (!scratch->example.Tell(*place)) return Said(key, "is there twice");
  scratch->example.SetValues(place->index, {&text, 1});
  return std::nullopt;
}

MaybeBad JsonCodec::ReadFeatures(ondemand::value& value, Scratch* scratch) const {
  ondemand::object features;
  if (value.get_object().get(features)) return Said("features", "is no object");
  for (auto entry : features) {
    if (const auto error = entry.error()) return Broken(error);
    ondemand::field& field = entry.value_unsafe();
    std::optional<FeatureNames::Place> place;
    const std::string_view expected = scratch->example.expected();
    if (plain_names_ && !expected.empty() && field.key().unsafe_is_equal(expected)) {
      place = scratch->example.Follow();
    } else {
      std::string_view name;
      if (const auto error = field.unescaped_key().get(name)) return Broken(error);
      place = scratch->example.Find(name);
    }
    if (!place) continue;
    if (!scratch->example.Tell(*place)) return Said(names_.NameOf(*place), "is there twice");
    if (MaybeBad reason = ReadFeature(*place, field.value(), scratch)) return reason;
  }
  return std::nullopt;
}

MaybeBad JsonCodec::ReadFeature(FeatureNames::Place place, ondemand::value& value,
                                Scratch* scratch) const {
  if (place.dense) {
    int64_t integer = 0;
    if (IsShortInteger(Trimmed(value.raw_json_token()), &integer)) {
      scratch->example.SetInteger(place.index, integer);
      return std::nullopt;
    }
    double number = 0;
    if (value.get_double().get(number) == simdjson::SUCCESS) {
      scratch->example.SetNumber(place.index, number);
      return std::nullopt;
    }
    if (IsNull(value)) return std::nullopt;
    return Said(names_.NameOf(place), "is no number");
  }
  if (scratch->example.IsSet(place)) return ReadSet(place.index, value, scratch);
  std::string_view text;
  if (!ReadText(value, &text))
    return Said(names_.NameOf(place), "is neither a text nor an integer");
  scratch->example.SetValues(place.index, {&text, 1});
  return std::nullopt;
}

MaybeBad JsonCodec::ReadSet(uint32_t index, ondemand::value& value, Scratch* scratch) const {
  const auto wrong = [&] {
    return Said(names_.NameOf({.dense = false, .index = index}),
                "is no list of texts and integers");
  };
  scratch->values.clear();
  ondemand::array values;
  if (value.get_array().get(values)) {
    // A single value is a set of one.
    std::string_view text;
    if (!ReadText(value, &text)) return wrong();
    scratch->values.push_back(text);
  } else {
    for (auto entry : values) {
      ondemand::value element;
      if (const auto error = std::move(entry).get(element)) return Broken(error);
      std::string_view text;
      if (!ReadText(element, &text)) return wrong();
      scratch->values.push_back(text);
    }
  }
  scratch->example.SetValues(index, scratch->values);
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Codec> MakeJsonCodec(const FeatureTransform& transform,
                                     const InteractionOptions& options) {
  return std::make_unique<JsonCodec>(transform, options);
}

}  // namespace tacit::event
