#include "event/json_shape.h"

#include <charconv>
#include <utility>

#include "event/json_values.h"
#include "event/places/placed_parts.h"
#include "event/run_codec.h"

namespace tacit::event {
namespace {

// Returns false for a list or an object.
bool ReadScalar(ondemand::value& value, Scalar* scalar, simdjson::error_code* broken) {
  ondemand::json_type type;
  *broken = value.type().get(type);
  if (*broken != simdjson::SUCCESS) return false;
  switch (type) {
    case ondemand::json_type::null:
      *scalar = {};
      *broken = IsNull(value) ? simdjson::SUCCESS : simdjson::N_ATOM_ERROR;
      return *broken == simdjson::SUCCESS;
    case ondemand::json_type::string:
      scalar->kind = Scalar::Kind::kText;
      *broken = value.get_string().get(scalar->text);
      return *broken == simdjson::SUCCESS;
    case ondemand::json_type::number:
      scalar->kind = Scalar::Kind::kNumber;
      scalar->text = Trimmed(value.raw_json_token());
      *broken = value.get_double().get(scalar->number);
      return *broken == simdjson::SUCCESS;
    case ondemand::json_type::boolean: {
      bool yes = false;
      scalar->kind = Scalar::Kind::kFlag;
      *broken = value.get_bool().get(yes);
      scalar->text = yes ? "true" : "false";
      scalar->number = yes ? 1 : 0;
      return *broken == simdjson::SUCCESS;
    }
    default:
      return false;
  }
}

class ShapedJsonCodec final : public RunCodec<ShapedJsonCodec> {
 public:
  struct Scratch : PlacedParts::Scratch {
    explicit Scratch(PlacedParts::Scratch parts) : PlacedParts::Scratch(std::move(parts)) {}

    RecordParser parser;
  };

  ShapedJsonCodec(const FeatureTransform& transform, JsonShape shape, InteractionOptions options)
      : parts_(transform, std::move(shape), std::move(options)) {}

  Scratch MakeScratch(const Batch& batch) const { return Scratch(parts_.MakeScratch(batch)); }

  MaybeBad DecodeRecord(const RawRecords& records, size_t i, Scratch* scratch, Batch* batch) const {
    parts_.Start(scratch);
    if (MaybeBad reason = scratch->parser.ReadObject(
            records, i, [&](ondemand::object& object) { return ReadObject(object, 0, scratch); }))
      return reason;
    return parts_.Append(records, i, *scratch, batch);
  }

 private:
  MaybeBad ReadObject(ondemand::object& object, uint32_t node, Scratch* scratch) const {
    for (auto entry : object) {
      if (const auto error = entry.error()) return Broken(error);
      ondemand::field& field = entry.value_unsafe();
      std::string_view key;
      if (const auto error = field.unescaped_key().get(key)) return Broken(error);
      const uint32_t* child = parts_.tree()[node].Find(key);
      if (child == nullptr) continue;
      if (MaybeBad reason = ReadValue(field.value(), *child, scratch)) return reason;
    }
    return std::nullopt;
  }

  // Reads what lies below a place, or is read there.
  MaybeBad ReadValue(ondemand::value& value, uint32_t node, Scratch* scratch) const {
    if (!parts_.tree()[node].parts.empty()) return ReadParts(value, node, scratch);
    ondemand::json_type type;
    if (const auto error = value.type().get(type)) return Broken(error);
    if (type == ondemand::json_type::object) {
      ondemand::object object;
      if (const auto error = value.get_object().get(object)) return Broken(error);
      return ReadObject(object, node, scratch);
    }
    if (type != ondemand::json_type::array) return std::nullopt;
    ondemand::array array;
    if (const auto error = value.get_array().get(array)) return Broken(error);
    size_t index = 0;
    for (auto entry : array) {
      ondemand::value element;
      if (const auto error = std::move(entry).get(element)) return Broken(error);
      char digits[20];
      const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), index++);
      const uint32_t* child = parts_.tree()[node].Find({digits, end});
      if (child == nullptr) continue;
      if (MaybeBad reason = ReadValue(element, *child, scratch)) return reason;
    }
    return std::nullopt;
  }

  MaybeBad ReadParts(ondemand::value& value, uint32_t node, Scratch* scratch) const {
    const std::vector<uint32_t>& parts = parts_.tree()[node].parts;
    if (MaybeBad reason = parts_.Tell(parts, scratch)) return reason;
    Scalar scalar;
    simdjson::error_code broken = simdjson::SUCCESS;
    if (ReadScalar(value, &scalar, &broken)) {
      for (const uint32_t part : parts)
        if (MaybeBad reason = parts_.Set(part, scalar, scratch)) return reason;
      return std::nullopt;
    }
    if (broken) return Broken(broken);
    // A list is good for sets alone.
    if (MaybeBad reason = parts_.CheckList(parts)) return reason;
    ondemand::array array;
    if (value.get_array().get(array)) return parts_.Wrong(parts[0], "is an object");
    scratch->values.clear();
    for (auto entry : array) {
      ondemand::value element;
      if (const auto error = std::move(entry).get(element)) return Broken(error);
      if (!ReadScalar(element, &scalar, &broken))
        return broken ? Broken(broken) : parts_.Wrong(parts[0], "has a list or an object in it");
      if (!parts_.IsMissingIn(parts[0], scalar.text)) scratch->values.push_back(scalar.text);
    }
    parts_.SetList(parts, scratch);
    return std::nullopt;
  }

  const PlacedParts parts_;
};

}  // namespace

Status CheckShape(const JsonShape& shape, const FeatureSchema& schema, std::string_view key) {
  TACIT_RETURN_IF_ERROR(CheckShapeRules(key, shape, schema));
  TACIT_ASSIGN([[maybe_unused]] const auto tree, MakePlaceTree(key, PlacedPartsOf(shape, schema)));
  return {};
}

std::unique_ptr<Codec> MakeShapedJsonCodec(const FeatureTransform& transform, JsonShape shape,
                                           const InteractionOptions& options) {
  return std::make_unique<ShapedJsonCodec>(transform, std::move(shape), options);
}

}  // namespace tacit::event
