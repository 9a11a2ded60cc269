// Interactions as Protobuf messages (schemas/interaction.proto), parsed from the wire by hand: the
// generated classes would allocate for every feature of every message. The tests write with those
// classes.
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <bit>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "event/codec.h"
#include "event/example_builder.h"
#include "event/record_parts.h"
#include "event/run_codec.h"

namespace tacit::event {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using Wire = WireFormatLite::WireType;

// Field numbers of schemas/interaction.proto.
enum Field : uint32_t {
  kEventId = 1,
  kUser = 2,
  kItem = 3,
  kTimestampMs = 4,
  kOutcome = 5,
  kFeatures = 6,
  kDense = 7,
  kBuckets = 8,
};
enum FeatureField : uint32_t { kName = 1, kNumber = 2, kText = 3, kInteger = 4, kSet = 5 };
enum Outcome : uint64_t { kUnspecified = 0, kNegative = 1, kPositive = 2 };

BadRecord Truncated() { return {"no valid protobuf: truncated or damaged", BadPart::kSyntax}; }

// Iterates over the fields of a record. A view of it; copies nothing.
class Fields {
 public:
  explicit Fields(std::string_view bytes)
      : bytes_(bytes),
        stream_(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size())) {}

  // Returns false at the end and after damage.
  bool Next() {
    tag_ = stream_.ReadTag();
    if (tag_ != 0) return true;
    damaged_ = !stream_.ConsumedEntireMessage() || damaged_;
    return false;
  }
  bool damaged() const { return damaged_; }

  // Returns true if the current field has this number and wire type.
  bool Is(uint32_t field, Wire wire) const { return tag_ == WireFormatLite::MakeTag(field, wire); }

  uint64_t Varint() {
    uint64_t value = 0;
    damaged_ = !stream_.ReadVarint64(&value) || damaged_;
    return value;
  }
  double Double() {
    uint64_t bits = 0;
    damaged_ = !stream_.ReadLittleEndian64(&bits) || damaged_;
    return std::bit_cast<double>(bits);
  }
  uint32_t Fixed32() {
    uint32_t bits = 0;
    damaged_ = !stream_.ReadLittleEndian32(&bits) || damaged_;
    return bits;
  }
  std::string_view Bytes() {
    uint32_t size = 0;
    damaged_ = !stream_.ReadVarint32(&size) || damaged_;
    const auto begin = static_cast<size_t>(stream_.CurrentPosition());
    if (damaged_ || size > bytes_.size() - begin || !stream_.Skip(static_cast<int>(size))) {
      damaged_ = true;
      return {};
    }
    return bytes_.substr(begin, size);
  }
  // Skips an unknown field: a newer producer may send more.
  void PassOver() { damaged_ = !WireFormatLite::SkipField(&stream_, tag_) || damaged_; }

 private:
  const std::string_view bytes_;
  CodedInputStream stream_;
  uint32_t tag_ = 0;
  bool damaged_ = false;
};

struct ProtobufMessage {
  std::string_view event_id, user, item;
  int64_t timestamp_ms = 0;
  uint64_t outcome = kUnspecified;
  size_t dense = 0, buckets = 0;  // packed values so far
  bool named = false;
};

class ProtobufCodec final : public RunCodec<ProtobufCodec> {
 public:
  struct Scratch {
    explicit Scratch(const ProtobufCodec& codec)
        : example(codec.transform_, codec.names_, codec.options_.missing) {}

    ExampleBuilder example;
    std::vector<std::string_view> values;
  };

  ProtobufCodec(const FeatureTransform& transform, InteractionOptions options)
      : transform_(transform), names_(transform.schema()), options_(std::move(options)) {}

  Scratch MakeScratch(const Batch& batch) const {
    TACIT_CHECK(batch.dense_width == dense() && batch.slots == slots(), "the batch is not started");
    return Scratch(*this);
  }
  MaybeBad DecodeRecord(const RawRecords& records, size_t i, Scratch* scratch, Batch* batch) const;

 private:
  size_t dense() const { return transform_.schema().dense.size(); }
  size_t slots() const { return transform_.schema().categorical.size(); }

  MaybeBad ReadMessage(std::string_view record, Scratch* scratch, ProtobufMessage* message) const;
  MaybeBad ReadPacked(Fields& fields, Scratch* scratch, ProtobufMessage* message) const;
  MaybeBad ReadFeature(std::string_view bytes, Scratch* scratch) const;
  MaybeBad AddDense(uint32_t bits, Scratch* scratch, ProtobufMessage* message) const;
  MaybeBad AddBucket(uint32_t bucket, Scratch* scratch, ProtobufMessage* message) const;
  MaybeBad CheckPacked(const ProtobufMessage& message) const;
  MaybeBad TellItem(std::string_view name, std::string_view value, Scratch* scratch) const;

  const FeatureTransform& transform_;
  const FeatureNames names_;
  const InteractionOptions options_;
};

MaybeBad ProtobufCodec::DecodeRecord(const RawRecords& records, size_t i, Scratch* scratch,
                                     Batch* batch) const {
  ProtobufMessage message;
  scratch->example.Start();
  if (MaybeBad reason = ReadMessage(records[i], scratch, &message)) return reason;
  const bool learnt = options_.label == LabelUse::kLearnt;
  if (learnt && message.outcome == kUnspecified)
    return BadRecord("outcome is missing", BadPart::kLabel);
  if (learnt && message.outcome > kPositive)
    return BadRecord("outcome: is none of those there are", BadPart::kLabel);
  if (MaybeBad reason = CheckPacked(message)) return reason;
  if (MaybeBad reason = TellItem("user", message.user, scratch)) return reason;
  if (MaybeBad reason = TellItem("item", message.item, scratch)) return reason;
  RecordParts parts{.event_id = message.event_id, .user = message.user};
  if (options_.items) parts.item = options_.items->Find(message.item);
  if (learnt) parts.label = message.outcome == kPositive ? 1.0f : 0.0f;
  if (message.timestamp_ms != 0) parts.timestamp_ms = message.timestamp_ms;
  return AppendExample(records, i, parts, scratch->example, options_, /*place=*/"", batch);
}

MaybeBad ProtobufCodec::ReadMessage(std::string_view record, Scratch* scratch,
                                    ProtobufMessage* message) const {
  Fields fields(record);
  while (fields.Next()) {
    MaybeBad reason;
    if (fields.Is(kEventId, Wire::WIRETYPE_LENGTH_DELIMITED)) {
      message->event_id = fields.Bytes();
    } else if (fields.Is(kUser, Wire::WIRETYPE_LENGTH_DELIMITED)) {
      message->user = fields.Bytes();
    } else if (fields.Is(kItem, Wire::WIRETYPE_LENGTH_DELIMITED)) {
      message->item = fields.Bytes();
    } else if (fields.Is(kTimestampMs, Wire::WIRETYPE_VARINT)) {
      message->timestamp_ms = static_cast<int64_t>(fields.Varint());
    } else if (fields.Is(kOutcome, Wire::WIRETYPE_VARINT)) {
      message->outcome = fields.Varint();
    } else if (fields.Is(kFeatures, Wire::WIRETYPE_LENGTH_DELIMITED)) {
      message->named = true;
      reason = ReadFeature(fields.Bytes(), scratch);
    } else {
      reason = ReadPacked(fields, scratch, message);
    }
    if (fields.damaged()) return Truncated();
    if (reason) return reason;
  }
  if (fields.damaged()) return Truncated();
  return std::nullopt;
}

// Reads packed features, which may also come one by one, and skips unknown fields.
MaybeBad ProtobufCodec::ReadPacked(Fields& fields, Scratch* scratch,
                                   ProtobufMessage* message) const {
  if (fields.Is(kDense, Wire::WIRETYPE_FIXED32))
    return AddDense(fields.Fixed32(), scratch, message);
  if (fields.Is(kBuckets, Wire::WIRETYPE_FIXED32))
    return AddBucket(fields.Fixed32(), scratch, message);
  const bool is_dense = fields.Is(kDense, Wire::WIRETYPE_LENGTH_DELIMITED);
  if (!is_dense && !fields.Is(kBuckets, Wire::WIRETYPE_LENGTH_DELIMITED)) {
    fields.PassOver();
    return std::nullopt;
  }
  const std::string_view values = fields.Bytes();
  if (fields.damaged() || values.size() % 4 != 0) return Truncated();
  Fields packed(values);
  for (size_t i = 0; i < values.size() / 4; ++i) {
    const uint32_t value = packed.Fixed32();
    MaybeBad reason =
        is_dense ? AddDense(value, scratch, message) : AddBucket(value, scratch, message);
    if (reason) return reason;
  }
  return std::nullopt;
}

MaybeBad ProtobufCodec::AddDense(uint32_t bits, Scratch* scratch, ProtobufMessage* message) const {
  const size_t index = message->dense++;
  if (index >= dense()) return std::nullopt;  // counted, and refused in the end
  const float value = std::bit_cast<float>(bits);
  const FeatureNames::Place place{.dense = true, .index = static_cast<uint32_t>(index)};
  scratch->example.Tell(place);
  if (std::isnan(value)) return std::nullopt;  // missing
  if (std::isinf(value))
    return fmt::format("dense {} ({}): is infinite", index, names_.NameOf(place));
  scratch->example.SetNumber(place.index, value);
  return std::nullopt;
}

MaybeBad ProtobufCodec::AddBucket(uint32_t bucket, Scratch* scratch,
                                  ProtobufMessage* message) const {
  const size_t index = message->buckets++;
  if (index >= slots()) return std::nullopt;
  const FeatureNames::Place place{.dense = false, .index = static_cast<uint32_t>(index)};
  scratch->example.Tell(place);
  if (bucket == 0) return std::nullopt;  // missing
  if (scratch->example.IsSet(place))
    return fmt::format("buckets {} ({}): a set is sent by name", index, names_.NameOf(place));
  if (!scratch->example.SetBucket(place.index, bucket))
    return fmt::format("buckets {} ({}): is beyond the table's {} buckets", index,
                       names_.NameOf(place), transform_.row_space().tables()[index].rows);
  return std::nullopt;
}

// Checks that the record has all of the schema's numbers or none, and the same for buckets.
MaybeBad ProtobufCodec::CheckPacked(const ProtobufMessage& message) const {
  if (message.dense != 0 && message.dense != dense())
    return BadRecord(fmt::format("dense: {} numbers, {} expected", message.dense, dense()),
                     BadPart::kSyntax);
  if (message.buckets != 0 && message.buckets != slots())
    return BadRecord(fmt::format("buckets: {} of them, {} expected", message.buckets, slots()),
                     BadPart::kSyntax);
  if (message.named && (message.dense != 0 || message.buckets != 0))
    return BadRecord("features are there by name and packed", BadPart::kSyntax);
  return std::nullopt;
}

// Sets a feature from the user or the item, if the schema has one of that name.
MaybeBad ProtobufCodec::TellItem(std::string_view name, std::string_view value,
                                 Scratch* scratch) const {
  if (value.empty()) return std::nullopt;
  const auto place = scratch->example.Find(name);
  if (!place || place->dense) return std::nullopt;
  if (!scratch->example.Tell(*place)) return fmt::format("{}: is there twice", name);
  scratch->example.SetValues(place->index, {&value, 1});
  return std::nullopt;
}

// One feature as read from the wire.
struct NamedFeature {
  std::string_view name, text;
  std::optional<double> number;
  char digits[24];  // an integer as text, which categorical features need
  bool has_text = false, is_set = false;
  int64_t integer = 0;
};

MaybeBad ReadSet(std::string_view bytes, std::vector<std::string_view>* values) {
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.Is(1, Wire::WIRETYPE_LENGTH_DELIMITED))
      values->push_back(fields.Bytes());
    else
      fields.PassOver();
    if (fields.damaged()) return Truncated();
  }
  if (fields.damaged()) return Truncated();
  return std::nullopt;
}

MaybeBad ReadNamed(std::string_view bytes, NamedFeature* feature,
                   std::vector<std::string_view>* values) {
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.Is(kName, Wire::WIRETYPE_LENGTH_DELIMITED)) {
      feature->name = fields.Bytes();
    } else if (fields.Is(kNumber, Wire::WIRETYPE_FIXED64)) {
      feature->number = fields.Double();
    } else if (fields.Is(kText, Wire::WIRETYPE_LENGTH_DELIMITED)) {
      feature->text = fields.Bytes();
      feature->has_text = true;
    } else if (fields.Is(kInteger, Wire::WIRETYPE_VARINT)) {
      const auto integer = static_cast<int64_t>(fields.Varint());
      feature->number = static_cast<double>(integer);
      char* const end = fmt::format_to(feature->digits, "{}", integer);
      feature->text = {feature->digits, static_cast<size_t>(end - feature->digits)};
      feature->has_text = true;
    } else if (fields.Is(kSet, Wire::WIRETYPE_LENGTH_DELIMITED)) {
      feature->is_set = true;
      if (MaybeBad reason = ReadSet(fields.Bytes(), values)) return reason;
    } else {
      fields.PassOver();
    }
    if (fields.damaged()) return Truncated();
  }
  if (fields.damaged()) return Truncated();
  return std::nullopt;
}

MaybeBad ProtobufCodec::ReadFeature(std::string_view bytes, Scratch* scratch) const {
  NamedFeature feature;
  scratch->values.clear();
  if (MaybeBad reason = ReadNamed(bytes, &feature, &scratch->values)) return reason;
  const auto place = scratch->example.Find(feature.name);
  if (!place) return std::nullopt;
  const std::string_view name = names_.NameOf(*place);
  if (!scratch->example.Tell(*place)) return fmt::format("{}: is there twice", name);
  if (place->dense) {
    if (feature.is_set || (feature.has_text && !feature.number))
      return fmt::format("{}: is no number", name);
    if (feature.number && !std::isfinite(*feature.number))
      return fmt::format("{}: is not finite", name);
    if (feature.number) scratch->example.SetNumber(place->index, *feature.number);
    return std::nullopt;
  }
  if (feature.number && !feature.has_text)
    return fmt::format("{}: is neither a text nor an integer", name);
  if (feature.is_set && !scratch->example.IsSet(*place))
    return fmt::format("{}: is a set, and one value is expected", name);
  if (feature.has_text) scratch->values.push_back(feature.text);
  scratch->example.SetValues(place->index, scratch->values);
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Codec> MakeProtobufCodec(const FeatureTransform& transform,
                                         const InteractionOptions& options) {
  return std::make_unique<ProtobufCodec>(transform, options);
}

}  // namespace tacit::event
