#include "wiring/plans/source.h"

#include <fmt/format.h>

#include <utility>

#include "base/files/standard_input.h"
#include "base/kind_table.h"
#include "stream/generator/criteo_generator.h"
#include "stream/log/log_source.h"
#include "wiring/plans/kafka.h"

namespace tacit::wiring {
namespace {

using Opened = Result<std::unique_ptr<stream::Source>>;

Opened OpenLog(const config::Source& source, const LiveParts* live) {
  stream::LogSourceOptions options;
  options.files = source.files;
  options.max_record_bytes = source.max_record_bytes;
  if (source.format == config::FormatKind::kAvro) options.avro = source.avro_schemas;
  if (live != nullptr) {
    options.waits_for_rest = !live->until_end && !IsStandardInput(source.files);
    options.past_cut = live->past_cut;
  }
  return stream::OpenLogSource(std::move(options));
}

Opened OpenGenerator(const config::Source& source, const LiveParts*) {
  return stream::MakeGeneratorSource({.days = source.generator.days,
                                      .rows_per_day = source.generator.rows_per_day,
                                      .seed = source.generator.seed});
}

Opened OpenTopic(const config::Source& source, const LiveParts* live) {
  if (live != nullptr) return OpenKafka(source, *live);
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("source.kind: kafka: topic '{}' is read by tacitd alone; this reads log "
                          "files",
                          source.topic));
}

constexpr SourceOpener kOpeners[] = {
    {.kind = config::SourceKind::kLog, .open = OpenLog},
    {.kind = config::SourceKind::kGenerator, .open = OpenGenerator},
    {.kind = config::SourceKind::kKafka, .open = OpenTopic}};
static_assert(CoversKinds(kOpeners, config::kLastSource));

}  // namespace

std::span<const SourceOpener> AllSources() { return kOpeners; }

std::string TopicOf(const config::Source& source) {
  return source.topic.empty() ? std::string(source.traits().name) : source.topic;
}

Result<std::unique_ptr<stream::Source>> OpenSource(const config::Source& source,
                                                   const LiveParts* live,
                                                   std::span<const SourceOpener> kinds) {
  return RowOf(kinds, source.kind).open(source, live);
}

}  // namespace tacit::wiring
