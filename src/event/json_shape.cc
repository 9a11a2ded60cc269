#include "event/json_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/check.h"
#include "base/json_pointer.h"
#include "event/example_builder.h"
#include "event/json_values.h"
#include "event/record_parts.h"
#include "event/run_codec.h"
#include "event/shape_rules.h"

namespace tacit::event {
namespace {

tl::unexpected<Error> WrongPlace(const ShapePart& part, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("source.json, {}: '{}' {}", part.name, part.where, what));
}

std::string AsKey(std::string_view name) {
  std::string key;
  for (const char c : name) {
    if (c == '~') key += "~0";
    if (c == '/') key += "~1";
    if (c != '~' && c != '/') key.push_back(c);
  }
  return key;
}

// Lists what is to be read, and from where.
std::vector<ShapePart> PartsOf(const JsonShape& shape, const FeatureNames& names,
                               const FeatureSchema& schema) {
  return PartsOf(shape, names, [&](const std::string& name, FeatureNames::Place place) {
    const bool single = !place.dense && !schema.categorical[place.index].multi_hot;
    if (single && name == "user" && !shape.user.empty()) return shape.user;
    if (single && name == "item" && !shape.item.empty()) return shape.item;
    return shape.features_at + "/" + AsKey(name);
  });
}

// The places as a tree of keys.
struct PlaceNode {
  std::vector<std::pair<std::string, uint32_t>> children;  // ascending by key; indices of nodes
  std::vector<uint32_t> parts;                             // read here

  const uint32_t* Find(std::string_view key) const {
    const auto child = std::ranges::lower_bound(
        children, key, {}, [](const auto& c) { return std::string_view(c.first); });
    return child != children.end() && child->first == key ? &child->second : nullptr;
  }
};

// Builds the tree. A place inside of another one's value would have to be read from an object that
// is a value as well.
Result<std::vector<PlaceNode>> TreeOf(const std::vector<ShapePart>& parts) {
  struct Growing {
    std::map<std::string, uint32_t> children;
    std::vector<uint32_t> parts;
  };
  std::vector<Growing> nodes(1);
  for (uint32_t p = 0; p < parts.size(); ++p) {
    const auto keys = KeysOfPointer(parts[p].where);
    if (!keys) return WrongPlace(parts[p], keys.error().message);
    uint32_t at = 0;
    for (const std::string& key : *keys) {
      const auto [child, fresh] =
          nodes[at].children.emplace(key, static_cast<uint32_t>(nodes.size()));
      at = child->second;
      if (fresh) nodes.emplace_back();
    }
    nodes[at].parts.push_back(p);
  }
  std::vector<PlaceNode> tree(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    tree[i].children.assign(nodes[i].children.begin(), nodes[i].children.end());
    tree[i].parts = nodes[i].parts;
    if (tree[i].parts.empty() || tree[i].children.empty()) continue;
    uint32_t below = tree[i].children[0].second;
    while (nodes[below].parts.empty()) below = nodes[below].children.begin()->second;
    const ShapePart& around = parts[tree[i].parts[0]];
    return WrongPlace(
        parts[nodes[below].parts[0]],
        fmt::format("lies inside of '{}', the value of {}", around.where, around.name));
  }
  return tree;
}

// One value: what is written, and what it is as a number.
struct Scalar {
  enum class Kind : uint8_t { kNull, kText, kNumber, kFlag };
  Kind kind = Kind::kNull;
  std::string_view text;  // a number as it is written
  double number = 0;      // kNumber, kFlag
};

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
  struct Scratch {
    explicit Scratch(const ShapedJsonCodec& codec)
        : example(codec.transform_, codec.names_, codec.options_.missing),
          told(codec.parts_.size()) {}

    ExampleBuilder example;
    RecordParser parser;
    std::vector<uint8_t> told;  // by part
    std::vector<std::string_view> values;
    RecordParts own;  // all but the features
  };

  ShapedJsonCodec(const FeatureTransform& transform, JsonShape shape, InteractionOptions options)
      : transform_(transform),
        names_(transform.schema()),
        shape_(std::move(shape)),
        options_(std::move(options)),
        parts_(PartsRead()) {
    auto tree = TreeOf(parts_);
    TACIT_CHECK(tree.has_value(), "a shape is checked before a codec is made");
    nodes_ = *std::move(tree);
  }

  Scratch MakeScratch(const Batch& batch) const {
    TACIT_CHECK(batch.dense_width == transform_.schema().dense.size() &&
                    batch.slots == transform_.schema().categorical.size(),
                "the batch is not started");
    return Scratch(*this);
  }

  MaybeBad DecodeRecord(const RawRecords& records, size_t i, Scratch* scratch, Batch* batch) const {
    scratch->example.Start();
    SetConstants(shape_.constants, &scratch->example);
    std::ranges::fill(scratch->told, uint8_t{0});
    scratch->own = {};
    if (shape_.label.empty()) scratch->own.label = kMetLabel;
    if (MaybeBad reason = scratch->parser.ReadObject(
            records, i, [&](ondemand::object& object) { return ReadObject(object, 0, scratch); }))
      return reason;
    return AppendExample(records, i, scratch->own, scratch->example, options_, shape_.label, batch);
  }

 private:
  std::vector<ShapePart> PartsRead() const {
    std::vector<ShapePart> parts = PartsOf(shape_, names_, transform_.schema());
    if (options_.label == LabelUse::kPassedOver)
      std::erase_if(parts, [](const ShapePart& part) {
        return part.kind == PartKind::kLabel || part.kind == PartKind::kWeight;
      });
    return parts;
  }

  MaybeBad ReadObject(ondemand::object& object, uint32_t node, Scratch* scratch) const {
    for (auto entry : object) {
      if (const auto error = entry.error()) return Broken(error);
      ondemand::field& field = entry.value_unsafe();
      std::string_view key;
      if (const auto error = field.unescaped_key().get(key)) return Broken(error);
      const uint32_t* child = nodes_[node].Find(key);
      if (child == nullptr) continue;
      if (MaybeBad reason = ReadValue(field.value(), *child, scratch)) return reason;
    }
    return std::nullopt;
  }

  // Reads what lies below a place, or is read there.
  MaybeBad ReadValue(ondemand::value& value, uint32_t node, Scratch* scratch) const {
    if (!nodes_[node].parts.empty()) return ReadParts(value, node, scratch);
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
      const uint32_t* child = nodes_[node].Find({digits, end});
      if (child == nullptr) continue;
      if (MaybeBad reason = ReadValue(element, *child, scratch)) return reason;
    }
    return std::nullopt;
  }

  MaybeBad ReadParts(ondemand::value& value, uint32_t node, Scratch* scratch) const {
    const std::vector<uint32_t>& parts = nodes_[node].parts;
    for (const uint32_t part : parts)
      if (std::exchange(scratch->told[part], uint8_t{1}) != 0) return Wrong(part, "is there twice");
    Scalar scalar;
    simdjson::error_code broken = simdjson::SUCCESS;
    if (ReadScalar(value, &scalar, &broken)) {
      for (const uint32_t part : parts)
        if (MaybeBad reason = Set(part, scalar, scratch)) return reason;
      return std::nullopt;
    }
    if (broken) return Broken(broken);
    // A list is good for sets alone.
    for (const uint32_t part : parts)
      if (!IsSet(part)) return Wrong(part, "is a list or an object");
    ondemand::array array;
    if (value.get_array().get(array)) return Wrong(parts[0], "is an object");
    scratch->values.clear();
    for (auto entry : array) {
      ondemand::value element;
      if (const auto error = std::move(entry).get(element)) return Broken(error);
      if (!ReadScalar(element, &scalar, &broken))
        return broken ? Broken(broken) : Wrong(parts[0], "has a list or an object in it");
      if (!IsMissing(shape_, parts_[parts[0]], scalar.text)) scratch->values.push_back(scalar.text);
    }
    for (const uint32_t part : parts) {
      scratch->example.Tell(parts_[part].place);
      scratch->example.SetValues(parts_[part].place.index, scratch->values);
    }
    return std::nullopt;
  }

  MaybeBad Set(uint32_t part, const Scalar& scalar, Scratch* scratch) const {
    if (scalar.kind == Scalar::Kind::kNull || IsMissing(shape_, parts_[part], scalar.text))
      return std::nullopt;
    switch (parts_[part].kind) {
      case PartKind::kLabel:
        return SetLabel(part, scalar, scratch);
      case PartKind::kUser:
        scratch->own.user = scalar.text;
        return std::nullopt;
      case PartKind::kItem:
        if (options_.items) scratch->own.item = options_.items->Find(scalar.text);
        return std::nullopt;
      case PartKind::kEventId:
        scratch->own.event_id = scalar.text;
        return std::nullopt;
      case PartKind::kTime:
        scratch->own.timestamp_ms = ReadTime(scalar.text, shape_);
        if (!scratch->own.timestamp_ms) return Wrong(part, WhyNoTime(scalar.text));
        return std::nullopt;
      case PartKind::kWeight:
        return SetWeight(part, scalar, scratch);
      case PartKind::kFeature:
        return SetFeature(part, scalar, scratch);
    }
    CheckFailed(__FILE__, __LINE__, "kind", "an unknown part");
  }

  MaybeBad SetLabel(uint32_t part, const Scalar& scalar, Scratch* scratch) const {
    const bool is_number = scalar.kind != Scalar::Kind::kText;
    scratch->own.label = LabelOf(shape_.label_rule, scalar.text,
                                 is_number ? std::optional(scalar.number) : std::nullopt);
    if (scratch->own.label) return std::nullopt;
    return Wrong(part, WhyNoLabel(shape_.label_rule));
  }

  MaybeBad SetWeight(uint32_t part, const Scalar& scalar, Scratch* scratch) const {
    const bool is_text = scalar.kind == Scalar::Kind::kText;
    const auto weight = WeightOf(is_text ? ReadNumber(scalar.text) : std::optional(scalar.number));
    if (!weight) return Wrong(part, "is no number of at least 0");
    scratch->own.weight = *weight;
    return std::nullopt;
  }

  MaybeBad SetFeature(uint32_t part, const Scalar& scalar, Scratch* scratch) const {
    const FeatureNames::Place place = parts_[part].place;
    scratch->example.Tell(place);
    if (!place.dense) {
      scratch->example.SetValues(place.index, {&scalar.text, 1});
      return std::nullopt;
    }
    if (scalar.kind != Scalar::Kind::kText) {
      scratch->example.SetNumber(place.index, scalar.number);
      return std::nullopt;
    }
    if (scalar.text.empty()) return std::nullopt;
    const auto number = ReadNumber(scalar.text);
    if (!number) return Wrong(part, "is no number");
    scratch->example.SetNumber(place.index, *number);
    return std::nullopt;
  }

  bool IsSet(uint32_t part) const {
    const FeatureNames::Place place = parts_[part].place;
    return parts_[part].kind == PartKind::kFeature && !place.dense &&
           transform_.schema().categorical[place.index].multi_hot;
  }

  MaybeBad Wrong(uint32_t part, std::string_view what) const {
    const PartKind kind = parts_[part].kind;
    return Said(fmt::format("{} ({})", parts_[part].name, parts_[part].where), what,
                kind == PartKind::kLabel  ? BadPart::kLabel
                : kind == PartKind::kTime ? BadPart::kTime
                                          : BadPart::kField);
  }

  const FeatureTransform& transform_;
  const FeatureNames names_;
  const JsonShape shape_;
  const InteractionOptions options_;
  const std::vector<ShapePart> parts_;
  std::vector<PlaceNode> nodes_;  // the first is the record itself
};

}  // namespace

Status CheckShape(const JsonShape& shape, const FeatureSchema& schema) {
  TACIT_RETURN_IF_ERROR(CheckShapeRules("source.json", shape, schema));
  const FeatureNames names(schema);
  TACIT_ASSIGN([[maybe_unused]] const auto tree, TreeOf(PartsOf(shape, names, schema)));
  return {};
}

std::unique_ptr<Codec> MakeShapedJsonCodec(const FeatureTransform& transform, JsonShape shape,
                                           const InteractionOptions& options) {
  return std::make_unique<ShapedJsonCodec>(transform, std::move(shape), options);
}

}  // namespace tacit::event
