#pragma once

#include <memory>

#include "config/config.h"
#include "event/codec.h"
#include "event/feature_transform.h"

namespace tacit::wiring {

// A codec for the source's records, by source.format, which is Criteo's for kinds without that
// key. It looks items up in `items` unless that is
// null. `transform` must outlive it.
std::unique_ptr<event::Codec> MakeCodec(
    const config::Source& source, const event::FeatureTransform& transform,
    std::shared_ptr<const event::ItemCatalogue> items = nullptr);

}  // namespace tacit::wiring
