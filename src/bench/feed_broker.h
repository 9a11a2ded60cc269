#pragma once

#include <string>
#include <vector>

#include "bench/feed_model.h"
#include "bench/suite.h"

namespace tacit::bench {

// Publishes a synthetic model into the request's topic, which must be empty and have
// SyntheticModel::kPartitions partitions; a replica in `folder` begins with it, and follows some
// versions more. Then asks for a while how much compaction leaves. Adds rows, and puts the rates
// through brokers in the place of those without.
Status BenchFeedBroker(const BenchRequest& request, const std::string& folder, FeedRates* rates,
                       std::vector<BenchRow>* rows);

}  // namespace tacit::bench
