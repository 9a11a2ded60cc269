#include "wiring/plans/codec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/hash.h"
#include "event/csv_codec.h"
#include "event/json_shape.h"
#include "stream/log/log_source.h"

namespace tacit::wiring {

namespace {

// The units of both rooms have the same order.
event::JsonShape ShapeOf(const config::JsonPlaces& places) {
  event::JsonShape shape{.label = places.label,
                         .label_values = {},
                         .label_at_least = places.label_at_least,
                         .user = places.user,
                         .item = places.item,
                         .event_id = places.event_id,
                         .timestamp = places.timestamp,
                         .timestamp_unit = static_cast<event::TimeUnit>(places.timestamp_unit),
                         .weight = places.weight,
                         .features = places.features,
                         .features_at = places.features_at,
                         .constants = places.constants};
  for (const auto& [value, label] : places.label_values)
    shape.label_values.emplace_back(value, label == "1");
  return shape;
}

event::CsvShape ShapeOf(const config::CsvPlaces& places) {
  event::CsvShape shape{.columns = places.columns,
                        .separator = places.separator[0],
                        .set_separator = places.set_separator[0],
                        .header = places.header,
                        .label = places.label,
                        .label_rule = {.values = {}, .at_least = places.label_at_least},
                        .user = places.user,
                        .item = places.item,
                        .event_id = places.event_id,
                        .timestamp = places.timestamp,
                        .weight = places.weight,
                        .timestamp_unit = static_cast<event::TimeUnit>(places.timestamp_unit),
                        .features = places.features,
                        .constants = places.constants};
  for (const auto& [value, label] : places.label_values)
    shape.label_rule.values.emplace_back(value, label == "1");
  return shape;
}

// The weight from which on records count alike; 0: they have none.
double LargestWeight(const config::Source& source) {
  if (!source.weighs()) return 0;
  return source.format == "json" ? source.json.weight_most : source.csv.weight_most;
}

// The names in a file's first line.
Result<std::vector<std::string>> HeaderOf(const std::string& file, const config::Source& source) {
  TACIT_ASSIGN(const auto log, stream::OpenLogSource({.files = {file},
                                                      .max_record_bytes = source.max_record_bytes,
                                                      .records_per_poll = 1}));
  event::RawRecords records;
  TACIT_ASSIGN(const stream::PollOutcome outcome,
               log->Poll(std::chrono::milliseconds(0), &records));
  std::string text;
  std::vector<std::string_view> names;
  event::MaybeBad bad;
  if (outcome != stream::PollOutcome::kRecords || records.size() == 0)
    bad.emplace("it is empty, and its first line should name the columns");
  else
    bad = event::SplitCsvLine(records[0], source.csv.separator[0], &text, &names);
  if (bad) return Fail(ErrorCode::kInvalidArgument, fmt::format("{}:1: {}", file, bad->reason));
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace

Status CheckPlaces(const config::Source& source, const event::FeatureSchema& schema) {
  if (source.format == "csv" && !source.csv.columns.empty())
    return event::CheckCsvShape(ShapeOf(source.csv), schema);
  if (source.format != "json" || !source.json.is_own()) return {};
  return event::CheckShape(ShapeOf(source.json), schema);
}

Status ReadCsvHeaders(config::Source* source) {
  if (source->format != "csv" || !source->csv.header || !source->files_found) return {};
  config::CsvPlaces& csv = source->csv;
  for (const std::string& file : source->files) {
    TACIT_ASSIGN(const std::vector<std::string> columns, HeaderOf(file, *source));
    if (csv.columns.empty()) csv.columns = columns;
    if (columns == csv.columns) continue;
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}:1: the columns are {}, and not {}, as in {}", file,
                    fmt::join(columns, ", "), fmt::join(csv.columns, ", "),
                    file == source->files.front() ? "source.csv.columns" : source->files.front()));
  }
  return {};
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
      .weight_most = label == event::LabelUse::kLearnt ? LargestWeight(source) : 0,
      .items = std::move(items)};
  if (source.format == "json" && source.json.is_own())
    return event::MakeShapedJsonCodec(transform, ShapeOf(source.json), options);
  if (source.format == "csv") {
    event::CsvShape shape = ShapeOf(source.csv);
    // Each line to score gets a score.
    shape.header &= label == event::LabelUse::kLearnt;
    return event::MakeCsvCodec(transform, std::move(shape), options);
  }
  if (source.format == "json") return event::MakeJsonCodec(transform, options);
  if (source.format == "protobuf") return event::MakeProtobufCodec(transform, options);
  return event::MakeCriteoTsvCodec(transform, label);
}

uint64_t ReadingOf(const config::Config& config) {
  return std::max<uint64_t>(BucketHash(config::DumpReading(config), 0), 1);
}

}  // namespace tacit::wiring
