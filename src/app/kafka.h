#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "config/config.h"
#include "event/envelope.h"
#include "metrics/registry.h"
#include "stream/source.h"

// The topic of a configuration, with everything around it.
namespace tacit::app {

// What takes off what producers put around a record.
Result<std::unique_ptr<event::Envelope>> MakeEnvelope(const config::Source& source,
                                                      const Clock& clock);

// REQUIRES source.kind kafka. With `until_end` the source ends once everything there is has been
// read. The references must outlive the source.
Result<std::unique_ptr<stream::Source>> OpenKafka(const config::Config& config, bool until_end,
                                                  const Clock& clock, metrics::Registry& registry);

}  // namespace tacit::app
