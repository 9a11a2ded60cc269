#include "event/avro/codec.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "event/places/placed_parts.h"
#include "event/run_codec.h"

namespace tacit::event {
namespace {

using ValueKind = AvroValue::Kind;
__extension__ using Unscaled = __int128;

constexpr int64_t kDayMs = 86'400'000;
// A double holds each integer below it.
constexpr double kShortIntegers = 1e15;

// Appends an unscaled integer, the most significant byte first, as a decimal. Returns false if it
// takes more than 16 bytes.
bool AppendDecimal(std::string_view bytes, uint32_t scale, std::string* text) {
  const bool negative = !bytes.empty() && static_cast<int8_t>(bytes[0]) < 0;
  const char sign = negative ? '\xff' : '\0';
  while (bytes.size() > 16 && bytes[0] == sign) bytes.remove_prefix(1);
  if (bytes.size() > 16 || (bytes.size() == 16 && (static_cast<int8_t>(bytes[0]) < 0) != negative))
    return false;
  Unscaled value = negative ? -1 : 0;
  for (const char byte : bytes) value = value * 256 + static_cast<uint8_t>(byte);
  std::string digits = fmt::format("{}", value);
  if (negative) digits.erase(0, 1);
  if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
  if (negative) text->push_back('-');
  text->append(digits, 0, digits.size() - scale);
  if (scale > 0) text->append(1, '.').append(digits, digits.size() - scale);
  return true;
}

// Appends a value as a text. Returns false where it has none.
bool AppendText(const AvroStep& step, const AvroValue& value, std::string* text) {
  switch (value.kind) {
    case ValueKind::kNull:
      break;
    case ValueKind::kFlag:
      *text += value.integer != 0 ? "true" : "false";
      break;
    case ValueKind::kInteger:
      fmt::format_to(std::back_inserter(*text), "{}", value.integer);
      break;
    case ValueKind::kFloat:
      fmt::format_to(std::back_inserter(*text), "{}", static_cast<float>(value.number));
      return std::isfinite(value.number);
    case ValueKind::kDouble:
      fmt::format_to(std::back_inserter(*text), "{}", value.number);
      return std::isfinite(value.number);
    case ValueKind::kText:
      if (step.logical == AvroLogical::kDecimal) return AppendDecimal(value.text, step.scale, text);
      *text += value.text;
      break;
  }
  return true;
}

constexpr std::string_view WhyNoText(const AvroValue& value) {
  return value.kind == ValueKind::kText ? "is a decimal of more than 16 bytes" : "is not finite";
}

// The time of an integer whose logical type says its unit. nullopt for a time of the day, and for
// one that is out of range.
std::optional<int64_t> AvroTimeOf(const AvroStep& step, int64_t integer, int32_t zone_minutes) {
  int64_t time = integer;
  switch (step.logical) {
    case AvroLogical::kDate:
      time = integer * kDayMs;  // of 32 bits
      break;
    case AvroLogical::kMillis:
      break;
    case AvroLogical::kMicros:
      time /= 1000;
      break;
    case AvroLogical::kNanos:
      time /= 1'000'000;
      break;
    default:
      return std::nullopt;
  }
  const int64_t ahead = step.local || step.logical == AvroLogical::kDate ? zone_minutes : 0;
  if (__builtin_sub_overflow(time, ahead * 60'000, &time)) return std::nullopt;
  return time;
}

// The parts of one record, as the program finds them.
struct PartsSink {
  MaybeBad Open(const AvroStep& step) {
    const std::vector<uint32_t>& of = parts.tree()[step.place].parts;
    if (in_list) return parts.Wrong(of[0], "has a list or an object in it");
    if (MaybeBad bad = parts.Tell(of, &scratch)) return bad;
    if (MaybeBad bad = parts.CheckList(of)) return bad;
    if (step.op != AvroOp::kArray) return parts.Wrong(of[0], "is an object");
    in_list = true;
    list_text.clear();
    list_ends.clear();
    return std::nullopt;
  }
  void Key(std::string_view) {}
  void Close(const AvroStep& step) {
    in_list = false;
    scratch.values.clear();
    const std::vector<uint32_t>& of = parts.tree()[step.place].parts;
    size_t begin = 0;
    for (const size_t end : list_ends) {
      const auto value = std::string_view(list_text).substr(begin, end - begin);
      if (!parts.IsMissingIn(of[0], value)) scratch.values.push_back(value);
      begin = end;
    }
    parts.SetList(of, &scratch);
  }

  MaybeBad Value(const AvroStep& step, const AvroValue& value) {
    const std::vector<uint32_t>& of = parts.tree()[step.place].parts;
    if (in_list) {
      if (!AppendText(step, value, &list_text)) return parts.Wrong(of[0], WhyNoText(value));
      list_ends.push_back(list_text.size());
      return std::nullopt;
    }
    if (MaybeBad bad = parts.Tell(of, &scratch)) return bad;
    if (value.kind == ValueKind::kNull) return std::nullopt;
    for (const uint32_t part : of)
      if (MaybeBad bad = Set(part, step, value)) return bad;
    return std::nullopt;
  }

  MaybeBad Set(uint32_t part, const AvroStep& step, const AvroValue& value) {
    const ShapePart& which = parts.part(part);
    const bool is_number = value.kind == ValueKind::kFloat || value.kind == ValueKind::kDouble;
    if (is_number && !std::isfinite(value.number)) return parts.Wrong(part, WhyNoText(value));
    const auto number = is_number ? value.number : static_cast<double>(value.integer);
    const bool is_text = value.kind == ValueKind::kText && step.logical != AvroLogical::kDecimal;
    if (value.kind != ValueKind::kText && which.kind == PartKind::kFeature && which.place.dense) {
      scratch.example.Tell(which.place);
      if (!is_number && std::abs(number) < kShortIntegers)
        scratch.example.SetInteger(which.place.index, value.integer);
      else
        scratch.example.SetNumber(which.place.index, number);
      return std::nullopt;
    }
    if (which.kind == PartKind::kTime && step.logical > AvroLogical::kDecimal) {
      scratch.own.timestamp_ms =
          AvroTimeOf(step, value.integer, parts.shape().timestamp_zone_minutes);
      if (!scratch.own.timestamp_ms) return parts.Wrong(part, "is a time of the day, or no time");
      return std::nullopt;
    }
    Scalar scalar{.kind = is_text                          ? Scalar::Kind::kText
                          : value.kind == ValueKind::kFlag ? Scalar::Kind::kFlag
                                                           : Scalar::Kind::kNumber,
                  .text = value.text,
                  .number = number};
    if (!is_text) {
      // The texts of the user and the event last longer than that of the next part.
      std::string& text = which.kind == PartKind::kUser      ? user_text
                          : which.kind == PartKind::kEventId ? event_text
                                                             : part_text;
      text.clear();
      if (!AppendText(step, value, &text)) return parts.Wrong(part, WhyNoText(value));
      scalar.text = text;
      if (value.kind == ValueKind::kText) scalar.number = ReadNumber(text).value_or(0);
    }
    return parts.Set(part, scalar, &scratch);
  }

  const PlacedParts& parts;
  PlacedParts::Scratch scratch;
  bool in_list = false;
  std::string user_text = {}, event_text = {}, part_text = {}, list_text = {};
  std::vector<size_t> list_ends = {};
};

class AvroCodec final : public RunCodec<AvroCodec> {
 public:
  struct Scratch {
    PartsSink sink;
    AvroProgram::Stack stack = {};
    std::string frame = {};  // of the record before, by which `known` was found
    std::shared_ptr<const AvroProgram> known = {};
  };

  AvroCodec(const FeatureTransform& transform, JsonShape shape,
            std::shared_ptr<const AvroSchemas> schemas, bool framed, InteractionOptions options)
      : schemas_(std::move(schemas)),
        framed_(framed),
        parts_(transform, std::move(shape), WithAllParts(std::move(options))) {}

  Scratch MakeScratch(const Batch& batch) const {
    return {.sink = {.parts = parts_, .scratch = parts_.MakeScratch(batch)}};
  }

  MaybeBad DecodeRecord(const RawRecords& records, size_t i, Scratch* scratch, Batch* batch) const {
    std::string_view record = records[i];
    const AvroProgram* program = schemas_ == nullptr ? nullptr : schemas_->own();
    if (framed_) {
      if (MaybeBad bad = TakeFrame(&record, scratch, &program)) return bad;
    }
    if (program == nullptr) return BadRecord("its schema is not known", BadPart::kSchema);
    parts_.Start(&scratch->sink.scratch);
    scratch->sink.in_list = false;
    AvroBytes bytes(record);
    if (MaybeBad bad = program->Read(&bytes, &scratch->stack, &scratch->sink)) return bad;
    if (bytes.left() > 0)
      return BadRecord("no valid Avro: bytes follow the record", BadPart::kSyntax);
    return parts_.Append(records, i, scratch->sink.scratch, batch);
  }

 private:
  // The programs read the places of all parts.
  static InteractionOptions WithAllParts(InteractionOptions options) {
    options.label = LabelUse::kLearnt;
    return options;
  }
  MaybeBad TakeFrame(std::string_view* record, Scratch* scratch,
                     const AvroProgram** program) const {
    const size_t size = record->starts_with('\1') ? kGuidFrameBytes : 5;
    if (scratch->frame.empty() || !record->starts_with(scratch->frame)) {
      const bool guid = size > 5 && record->size() >= size;
      Unframed unframed;
      if (auto wrong = Unframe(guid ? record->substr(size) : *record,
                               guid ? record->substr(0, size) : std::string_view(),
                               PayloadKind::kAvro, &unframed))
        return BadRecord(*std::move(wrong), BadPart::kSchema);
      if (schemas_ != nullptr) scratch->known = schemas_->Find(unframed.schema);
      scratch->frame = record->substr(0, size);
    }
    record->remove_prefix(size);
    if (scratch->known != nullptr) *program = scratch->known.get();
    return std::nullopt;
  }

  const std::shared_ptr<const AvroSchemas> schemas_;
  const bool framed_;
  const PlacedParts parts_;
};

// Writes a record as JSON, as far as it goes.
struct JsonSink {
  MaybeBad Open(const AvroStep& step) {
    Separate();
    json += step.op == AvroOp::kArray ? '[' : '{';
    first = true;
    return std::nullopt;
  }
  void Key(std::string_view key) {
    Separate();
    Quote(key);
    json += ':';
    first = true;
  }
  void Close(const AvroStep& step) {
    json += step.op == AvroOp::kArray ? ']' : '}';
    first = false;
  }

  MaybeBad Value(const AvroStep& step, const AvroValue& value) {
    Separate();
    text.clear();
    const bool has_text = AppendText(step, value, &text);
    if (value.kind == ValueKind::kNull || (!has_text && value.kind != ValueKind::kText))
      json += "null";
    else if (value.kind == ValueKind::kInteger && step.logical == AvroLogical::kDate)
      Quote(DayOf(value.integer));
    else if (!has_text)
      return BadRecord(std::string(WhyNoText(value)));
    else if (value.kind == ValueKind::kText && step.logical != AvroLogical::kDecimal)
      Quote(text);
    else
      json += text;
    return std::nullopt;
  }

  void Separate() {
    if (!first) json += ',';
    first = false;
  }
  // A day that no date can name stays a number.
  static std::string DayOf(int64_t days) {
    if (std::abs(days) > 700'000) return fmt::format("{}", days);
    const std::chrono::year_month_day date{
        std::chrono::sys_days(std::chrono::days(static_cast<int>(days)))};
    return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  }
  // Bytes that are no UTF-8 are characters of these numbers, as in Avro's own JSON.
  void Quote(std::string_view from) {
    const bool utf8 = IsUtf8(from);
    json += '"';
    for (const char c : from) {
      const auto byte = static_cast<uint8_t>(c);
      if (byte < 0x20 || c == '"' || c == '\\' || (byte >= 0x7f && !utf8))
        fmt::format_to(std::back_inserter(json), "\\u{:04x}", byte);
      else
        json += c;
    }
    json += '"';
  }

  std::string& json;
  std::string text = {};
  bool first = true;
};

}  // namespace

std::unique_ptr<Codec> MakeAvroCodec(const FeatureTransform& transform, JsonShape shape,
                                     std::shared_ptr<const AvroSchemas> schemas, bool framed,
                                     const InteractionOptions& options) {
  return std::make_unique<AvroCodec>(transform, std::move(shape), std::move(schemas), framed,
                                     options);
}

AvroPlaces AvroPlacesOf(const JsonShape& shape, const FeatureSchema& schema) {
  auto tree = MakePlaceTree("", PlacedPartsOf(shape, schema));
  TACIT_CHECK(tree.has_value(), "a shape is checked before a codec is made");
  return std::make_shared<const std::vector<PlaceNode>>(*std::move(tree));
}

MaybeBad WriteAsJson(const AvroProgram& program, std::string_view record, std::string* json) {
  json->clear();
  JsonSink sink{.json = *json};
  AvroBytes bytes(record);
  AvroProgram::Stack stack;
  if (MaybeBad bad = program.Read(&bytes, &stack, &sink)) return bad;
  if (bytes.left() > 0)
    return BadRecord("no valid Avro: bytes follow the record", BadPart::kSyntax);
  return std::nullopt;
}

}  // namespace tacit::event
