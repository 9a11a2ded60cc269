#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "config/config.h"
#include "metrics/registry.h"
#include "stream/kafka/period_share.h"
#include "stream/source.h"

// Opens the source of a configuration, of any kind.
namespace tacit::wiring {

// The parts that a source needs which is read while others write it. The references must outlive
// the source.
struct LiveParts {
  const config::Kafka& kafka;
  bool until_end = false;  // the source ends once all present records are read
  const Clock& clock;
  metrics::Registry& registry;
  stream::PeriodShare* share = nullptr;  // of a topic's periods; if null, they are not shared
  std::string past_cut = {};             // a log file that is cut for good, as the operator says
};

struct SourceOpener {
  config::SourceKind kind;
  // `live` is null where only what lies still is read; a kind that needs it refuses.
  Result<std::unique_ptr<stream::Source>> (*open)(const config::Source& source,
                                                  const LiveParts* live);
};

std::span<const SourceOpener> AllSources();

// The name under which the ledger has this source's records, as stream::Source::topic() tells it.
std::string TopicOf(const config::Source& source);

// Opens the source by the opener of its kind.
Result<std::unique_ptr<stream::Source>> OpenSource(
    const config::Source& source, const LiveParts* live = nullptr,
    std::span<const SourceOpener> kinds = AllSources());

}  // namespace tacit::wiring
