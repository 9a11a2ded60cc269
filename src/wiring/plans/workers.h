#pragma once

#include "base/result.h"
#include "base/siphash.h"
#include "config/config.h"
#include "workers/seal.h"

namespace tacit::wiring {

// Reads the key that a trainer and its workers share for their topics. kInvalidArgument: the file
// is not there, others may read or change it, or it holds no key. REQUIRES workers.topic.
Result<workers::SharedKey> ReadWorkersKey(const config::Workers& config);

// The key that versions of the feed are marked under for workers, out of the key of their topics.
SipHash::Key FeedMarkKey(const workers::SharedKey& key);

}  // namespace tacit::wiring
