#include "wiring/codec.h"

#include <cstdint>
#include <utility>

#include "event/json_shape.h"

namespace tacit::wiring {

namespace {

// The units of both rooms have the same order.
event::JsonShape ShapeOf(const config::JsonPlaces& places) {
  event::JsonShape shape{
      .label = places.label,
      .label_values = {},
      .label_at_least = places.label_at_least,
      .user = places.user,
      .item = places.item,
      .event_id = places.event_id,
      .timestamp = places.timestamp,
      .timestamp_unit = static_cast<event::JsonShape::TimeUnit>(places.timestamp_unit),
      .features = places.features,
      .features_at = places.features_at};
  for (const auto& [value, label] : places.label_values)
    shape.label_values.emplace_back(value, label == "1");
  return shape;
}

}  // namespace

Status CheckJsonPlaces(const config::Source& source, const event::FeatureSchema& schema) {
  if (source.format != "json" || !source.json.is_own()) return {};
  return event::CheckShape(ShapeOf(source.json), schema);
}

std::unique_ptr<event::Codec> MakeCodec(const config::Source& source,
                                        const event::FeatureTransform& transform,
                                        std::shared_ptr<const event::ItemCatalogue> items,
                                        event::LabelUse label) {
  const event::InteractionOptions options{
      .label = label,
      .missing = source.missing == config::Source::Missing::kReject
                     ? event::MissingPolicy::kReject
                     : event::MissingPolicy::kDefault,
      .ahead_max_ms = int64_t{source.ahead_max_hours} * 3'600'000,
      .items = std::move(items)};
  if (source.format == "json" && source.json.is_own())
    return event::MakeShapedJsonCodec(transform, ShapeOf(source.json), options);
  if (source.format == "json") return event::MakeJsonCodec(transform, options);
  if (source.format == "protobuf") return event::MakeProtobufCodec(transform, options);
  return event::MakeCriteoTsvCodec(transform, label);
}

}  // namespace tacit::wiring
