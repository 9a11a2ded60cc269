#pragma once

#include <memory>

#include "config/config.h"
#include "event/codec.h"
#include "event/feature_transform.h"

namespace tacit::app {

// What reads the source's records, by source.format, and looks their items up in `items`, where
// there are such. `transform` must outlive it.
std::unique_ptr<event::Codec> MakeCodec(
    const config::Source& source, const event::FeatureTransform& transform,
    std::shared_ptr<const event::ItemCatalogue> items = nullptr);

}  // namespace tacit::app
