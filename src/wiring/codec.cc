#include "wiring/codec.h"

#include <cstdint>
#include <utility>

namespace tacit::wiring {

std::unique_ptr<event::Codec> MakeCodec(const config::Source& source,
                                        const event::FeatureTransform& transform,
                                        std::shared_ptr<const event::ItemCatalogue> items) {
  const event::InteractionOptions options{
      .missing = source.missing == config::Source::Missing::kReject
                     ? event::MissingPolicy::kReject
                     : event::MissingPolicy::kDefault,
      .ahead_max_ms = int64_t{source.ahead_max_hours} * 3'600'000,
      .items = std::move(items)};
  if (source.format == "json") return event::MakeJsonCodec(transform, options);
  if (source.format == "protobuf") return event::MakeProtobufCodec(transform, options);
  return event::MakeCriteoTsvCodec(transform);
}

}  // namespace tacit::wiring
