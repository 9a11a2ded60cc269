#include "wiring/plans/codec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/hash.h"
#include "config/text_file.h"
#include "event/avro/codec.h"
#include "event/csv_codec.h"
#include "event/json_shape.h"
#include "stream/log/log_source.h"

namespace tacit::wiring {

namespace {

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
    bad = event::SplitCsvLine(records[0], source.csv.separator, &text, &names);
  if (bad) return Fail(ErrorCode::kInvalidArgument, fmt::format("{}:1: {}", file, bad->reason));
  return std::vector<std::string>(names.begin(), names.end());
}

Status ReadCsvHeaders(config::Source* source) {
  if (source->format != config::Source::Format::kCsv || !source->csv.header || !source->files_found)
    return {};
  event::CsvShape& csv = source->csv;
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

Status PlanAvro(config::Source* source, const event::FeatureSchema& schema) {
  TACIT_RETURN_IF_ERROR(event::CheckShape(source->avro, schema, "source.avro"));
  const std::string& file = source->avro.schema_file;
  std::string reader;
  if (!file.empty()) {
    TACIT_ASSIGN(reader, config::ReadTextFile(file));
  }
  auto schemas = event::AvroSchemas::Make(reader, event::AvroPlacesOf(source->avro, schema));
  if (!schemas) return Fail(std::move(schemas.error()).Context("source.avro.schema_file: " + file));
  // A source that was opened before puts its schemas into those that were made then.
  if (source->avro_schemas == nullptr) source->avro_schemas = *std::move(schemas);
  return {};
}

}  // namespace

event::FeatureSchema MakeSchema(const std::vector<config::Feature>& features) {
  event::FeatureSchema schema;
  for (const config::Feature& f : features) {
    if (f.kind == config::Feature::Kind::kDense) {
      schema.dense.push_back({f.name, f.transform == "identity"
                                          ? event::DenseTransform::kIdentity
                                          : event::DenseTransform::kSignedLog1p});
      continue;
    }
    const bool multi_hot = f.kind == config::Feature::Kind::kMultiHot;
    schema.categorical.push_back({.name = f.name,
                                  .buckets = f.buckets,
                                  .dim = f.dim != 0 ? f.dim : event::DefaultEmbeddingDim(f.buckets),
                                  .multi_hot = multi_hot,
                                  .max_values = multi_hot ? f.max_values : 1});
  }
  return schema;
}

Result<event::FeatureSchema> PlanReading(config::Source* source,
                                         const std::vector<config::Feature>& features) {
  event::FeatureSchema schema = MakeSchema(features);
  TACIT_RETURN_IF_ERROR(schema.Validate());
  TACIT_RETURN_IF_ERROR(ReadCsvHeaders(source));
  using Format = config::Source::Format;
  if (source->format == Format::kCsv && !source->csv.columns.empty())
    TACIT_RETURN_IF_ERROR(event::CheckCsvShape(source->csv, schema));
  if (source->format == Format::kJson && source->json.is_own())
    TACIT_RETURN_IF_ERROR(event::CheckShape(source->json, schema));
  if (source->format == Format::kAvro) TACIT_RETURN_IF_ERROR(PlanAvro(source, schema));
  return schema;
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
      .weight_most =
          label == event::LabelUse::kLearnt && source.weighs() ? source.shape()->weight_most : 0,
      .items = std::move(items)};
  switch (source.format) {
    case config::Source::Format::kCriteoTsv:
      return event::MakeCriteoTsvCodec(transform, label);
    case config::Source::Format::kJson:
      return source.json.is_own() ? event::MakeShapedJsonCodec(transform, source.json, options)
                                  : event::MakeJsonCodec(transform, options);
    case config::Source::Format::kCsv:
      return event::MakeCsvCodec(transform, source.csv, options);
    case config::Source::Format::kAvro:
      return event::MakeAvroCodec(
          transform, source.avro, source.avro_schemas,
          source.traits().has_lines || source.framing == config::Source::Framing::kConfluent,
          options);
    case config::Source::Format::kProtobuf:
      break;
  }
  return event::MakeProtobufCodec(transform, options);
}

uint64_t ReadingOf(const config::Config& config) {
  std::string reading = config::DumpReading(config);
  if (config.source.avro_schemas != nullptr) reading += config.source.avro_schemas->reader();
  return std::max<uint64_t>(BucketHash(reading, 0), 1);
}

}  // namespace tacit::wiring
