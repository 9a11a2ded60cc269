#pragma once

#include <cstddef>

#include "config/config.h"

namespace tacit::config {

// That memory.total_bytes has room for the windows of de-duplication of so many partitions beside
// the smallest caches. PlanMemory knows of one partition: how many a topic has is known only once
// its brokers have been asked.
Status CheckPartitions(const Config& config, size_t partitions);

}  // namespace tacit::config
