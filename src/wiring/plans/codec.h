#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "event/codec.h"
#include "event/feature_transform.h"
#include "event/schema.h"

namespace tacit::wiring {

// The features of a configuration in the transform's form.
event::FeatureSchema MakeSchema(const std::vector<config::Feature>& features);

// The schema by which the source's records are read, checked together with source.json,
// source.csv or source.avro. Fills in source.csv.columns where they are not configured, out of the
// first file's first line, and checks that each file begins with that line; not where files were
// not looked for. Makes source.avro_schemas for Avro, which the source and the codec share.
// kInvalidArgument names the file, the part or the feature.
Result<event::FeatureSchema> PlanReading(config::Source* source,
                                         const std::vector<config::Feature>& features);

// A codec for the source's records, by source.format, which is Criteo's for kinds without that
// key. It looks items up in `items` unless that is null. `transform` must outlive it. REQUIRES
// PlanReading.
std::unique_ptr<event::Codec> MakeCodec(const config::Source& source,
                                        const event::FeatureTransform& transform,
                                        std::shared_ptr<const event::ItemCatalogue> items = nullptr,
                                        event::LabelUse label = event::LabelUse::kLearnt);

// A digest of how records are read (config::DumpReading); never 0.
uint64_t ReadingOf(const config::Config& config);

}  // namespace tacit::wiring
