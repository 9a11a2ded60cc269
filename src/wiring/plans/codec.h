#pragma once

#include <memory>

#include "base/result.h"
#include "config/config.h"
#include "event/codec.h"
#include "event/feature_transform.h"
#include "event/schema.h"

namespace tacit::wiring {

// Checks source.json or source.csv against the schema.
Status CheckPlaces(const config::Source& source, const event::FeatureSchema& schema);

// Lines of values: fills in source.csv.columns where they are not configured, out of the first
// file's first line, and checks that each file begins with that line. Does nothing where files were
// not looked for. kInvalidArgument names the file.
Status ReadCsvHeaders(config::Source* source);

// A codec for the source's records, by source.format, which is Criteo's for kinds without that
// key. It looks items up in `items` unless that is
// null. `transform` must outlive it. REQUIRES columns where there are lines of values.
std::unique_ptr<event::Codec> MakeCodec(const config::Source& source,
                                        const event::FeatureTransform& transform,
                                        std::shared_ptr<const event::ItemCatalogue> items = nullptr,
                                        event::LabelUse label = event::LabelUse::kLearnt);

// A digest of how records are read (config::DumpReading); never 0.
uint64_t ReadingOf(const config::Config& config);

}  // namespace tacit::wiring
