#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "config/config.h"
#include "stream/kafka/properties.h"
#include "stream/kafka/range_source.h"
#include "stream/source.h"
#include "wiring/plans/source.h"

// Opens the topic of a configuration, with its envelope and schemas.
namespace tacit::wiring {

// The brokers' settings, with secrets fetched.
Result<stream::KafkaProperties> KafkaPropertiesOf(const config::Kafka& kafka);

// REQUIRES source.kind kafka.
Result<std::unique_ptr<stream::Source>> OpenKafka(const config::Source& source,
                                                  const LiveParts& live);
// The same topic, of which ranges are read that others have cut. Records wait until their
// registry answers, for another process may reach it. REQUIRES source.kind
// kafka.
Result<std::unique_ptr<stream::RangeSource>> OpenRanges(const config::Source& source,
                                                        const LiveParts& live);

}  // namespace tacit::wiring
