#include "event/places/placed_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tacit::event {
namespace {

std::string AsKey(std::string_view name) {
  std::string key;
  for (const char c : name) {
    if (c == '~') key += "~0";
    if (c == '/') key += "~1";
    if (c != '~' && c != '/') key.push_back(c);
  }
  return key;
}

std::vector<ShapePart> PartsRead(std::vector<ShapePart> parts, const InteractionOptions& options) {
  if (options.label == LabelUse::kPassedOver)
    std::erase_if(parts, [](const ShapePart& part) {
      return part.kind == PartKind::kLabel || part.kind == PartKind::kWeight;
    });
  return parts;
}

std::vector<PlaceNode> CheckedTree(const std::vector<ShapePart>& parts) {
  auto tree = MakePlaceTree("", parts);
  TACIT_CHECK(tree.has_value(), "a shape is checked before a codec is made");
  return *std::move(tree);
}

}  // namespace

std::vector<ShapePart> PlacedPartsOf(const JsonShape& shape, const FeatureSchema& schema) {
  return PartsOf(shape, FeatureNames(schema),
                 [&](const std::string& name, FeatureNames::Place place) {
                   const bool single = !place.dense && !schema.categorical[place.index].multi_hot;
                   if (single && name == "user" && !shape.user.empty()) return shape.user;
                   if (single && name == "item" && !shape.item.empty()) return shape.item;
                   return shape.features_at + "/" + AsKey(name);
                 });
}

PlacedParts::PlacedParts(const FeatureTransform& transform, JsonShape shape,
                         InteractionOptions options)
    : transform_(transform),
      names_(transform.schema()),
      shape_(std::move(shape)),
      options_(std::move(options)),
      parts_(PartsRead(PlacedPartsOf(shape_, transform.schema()), options_)),
      tree_(CheckedTree(parts_)) {}

PlacedParts::Scratch PlacedParts::MakeScratch(const Batch& batch) const {
  TACIT_CHECK(batch.dense_width == transform_.schema().dense.size() &&
                  batch.slots == transform_.schema().categorical.size(),
              "the batch is not started");
  return {.example = ExampleBuilder(transform_, names_, options_.missing),
          .told = std::vector<uint8_t>(parts_.size()),
          .values = {},
          .own = {}};
}

void PlacedParts::Start(Scratch* scratch) const {
  scratch->example.Start();
  SetConstants(shape_.constants, &scratch->example);
  std::ranges::fill(scratch->told, uint8_t{0});
  scratch->own = {};
  if (shape_.label.empty()) scratch->own.label = kMetLabel;
}

MaybeBad PlacedParts::Tell(const std::vector<uint32_t>& parts, Scratch* scratch) const {
  for (const uint32_t part : parts)
    if (std::exchange(scratch->told[part], uint8_t{1}) != 0) return Wrong(part, "is there twice");
  return std::nullopt;
}

MaybeBad PlacedParts::Set(uint32_t part, const Scalar& scalar, Scratch* scratch) const {
  if (scalar.kind == Scalar::Kind::kNull || IsMissingIn(part, scalar.text)) return std::nullopt;
  const bool is_text = scalar.kind == Scalar::Kind::kText;
  RecordParts& own = scratch->own;
  switch (parts_[part].kind) {
    case PartKind::kLabel:
      own.label = LabelOf(shape_.label_rule, scalar.text,
                          is_text ? std::nullopt : std::optional(scalar.number));
      if (!own.label) return Wrong(part, WhyNoLabel(shape_.label_rule));
      return std::nullopt;
    case PartKind::kUser:
      own.user = scalar.text;
      return std::nullopt;
    case PartKind::kItem:
      if (options_.items) own.item = options_.items->Find(scalar.text);
      return std::nullopt;
    case PartKind::kEventId:
      own.event_id = scalar.text;
      return std::nullopt;
    case PartKind::kTime:
      own.timestamp_ms = ReadTime(scalar.text, shape_);
      if (!own.timestamp_ms) return Wrong(part, WhyNoTime(scalar.text));
      return std::nullopt;
    case PartKind::kWeight: {
      const auto weight =
          WeightOf(is_text ? ReadNumber(scalar.text) : std::optional(scalar.number));
      if (!weight) return Wrong(part, "is no number of at least 0");
      own.weight = *weight;
      return std::nullopt;
    }
    case PartKind::kFeature:
      return SetFeature(part, scalar, scratch);
  }
  CheckFailed(__FILE__, __LINE__, "kind", "an unknown part");
}

MaybeBad PlacedParts::SetFeature(uint32_t part, const Scalar& scalar, Scratch* scratch) const {
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

MaybeBad PlacedParts::CheckList(const std::vector<uint32_t>& parts) const {
  for (const uint32_t part : parts)
    if (!IsSet(part)) return Wrong(part, "is a list or an object");
  return std::nullopt;
}

void PlacedParts::SetList(const std::vector<uint32_t>& parts, Scratch* scratch) const {
  for (const uint32_t part : parts) {
    scratch->example.Tell(parts_[part].place);
    scratch->example.SetValues(parts_[part].place.index, scratch->values);
  }
}

MaybeBad PlacedParts::Append(const RawRecords& records, size_t i, const Scratch& scratch,
                             Batch* batch) const {
  return AppendExample(records, i, scratch.own, scratch.example, options_, shape_.label, batch);
}

bool PlacedParts::IsSet(uint32_t part) const {
  const FeatureNames::Place place = parts_[part].place;
  return parts_[part].kind == PartKind::kFeature && !place.dense &&
         transform_.schema().categorical[place.index].multi_hot;
}

MaybeBad PlacedParts::Wrong(uint32_t part, std::string_view what) const {
  const PartKind kind = parts_[part].kind;
  return BadRecord(fmt::format("{} ({}): {}", parts_[part].name, parts_[part].where, what),
                   kind == PartKind::kLabel  ? BadPart::kLabel
                   : kind == PartKind::kTime ? BadPart::kTime
                                             : BadPart::kField);
}

}  // namespace tacit::event
