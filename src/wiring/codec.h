#pragma once

#include <memory>

#include "base/result.h"
#include "config/config.h"
#include "event/codec.h"
#include "event/feature_transform.h"
#include "event/schema.h"

namespace tacit::wiring {

// Checks source.json against the schema.
Status CheckJsonPlaces(const config::Source& source, const event::FeatureSchema& schema);

// A codec for the source's records, by source.format, which is Criteo's for kinds without that
// key. It looks items up in `items` unless that is
// null. `transform` must outlive it.
std::unique_ptr<event::Codec> MakeCodec(const config::Source& source,
                                        const event::FeatureTransform& transform,
                                        std::shared_ptr<const event::ItemCatalogue> items = nullptr,
                                        event::LabelUse label = event::LabelUse::kLearnt);

}  // namespace tacit::wiring
