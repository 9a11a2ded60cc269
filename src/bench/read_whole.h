#pragma once

#include "base/result.h"
#include "event/codec.h"
#include "event/feature_transform.h"
#include "stream/source.h"
#include "train/intake.h"

namespace tacit::bench {

struct IntakeReading {
  uint64_t records = 0, dead = 0;
  double seconds = 0;  // from the start of the threads to the last record decoded
};

// Reads `source` to its end with the daemon's threads and queues, decodes it, and makes no steps.
// `options` has no learners; one that looks on is added.
Result<IntakeReading> ReadWhole(train::IntakeOptions options, stream::Source& source,
                                const event::Codec& codec,
                                const event::FeatureTransform& transform);

}  // namespace tacit::bench
