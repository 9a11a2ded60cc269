#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "config/config.h"
#include "event/dead_letters.h"
#include "event/envelope.h"
#include "metrics/registry.h"
#include "stream/source.h"

// The topic of a configuration, with everything around it.
namespace tacit::app {

// Runs of records that wait for the decode thread (train::FeedOptions::queued_records_max): so many
// that a core which is taken from it or from the poll thread for a moment does not stop the other.
inline constexpr size_t kKafkaRunsQueued = 16;

// What takes off what producers put around a record.
Result<std::unique_ptr<event::Envelope>> MakeEnvelope(const config::Source& source,
                                                      const Clock& clock);

// REQUIRES source.kind kafka. With `until_end` the source ends once everything there is has been
// read. The references must outlive the source.
Result<std::unique_ptr<stream::Source>> OpenKafka(const config::Config& config, bool until_end,
                                                  const Clock& clock, metrics::Registry& registry);

// The topic of dead letters, or their file where none is named. `lineage`: of the store.
Result<std::unique_ptr<event::DeadLetterSink>> OpenDeadLetters(const config::Config& config,
                                                               const std::string& lineage);
// Its name, for people.
const std::string& PlaceOfDeadLetters(const config::Config& config);

}  // namespace tacit::app
