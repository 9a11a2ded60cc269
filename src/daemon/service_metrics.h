#pragma once

#include <functional>
#include <string>
#include <vector>

#include "metrics/registry.h"
#include "serve/api.h"
#include "store/store.h"
#include "stream/source.h"

namespace tacit::daemon {

// The parts of a service that say at a scrape how they are. What the functions use must live as
// long as anybody scrapes. An empty function has nothing to say, and no metric.
struct ServiceParts {
  std::function<serve::Readiness()> readiness = {};
  std::function<stream::SourceHealth()> source = {};
  std::function<uint64_t()> records_ahead = {};
  std::function<store::Store::EngineStats()> engine = {};
  // A folder, or a file in it, by what it is of: "store". One that is not there is left out.
  struct Place {
    std::string of, path;
  };
  std::vector<Place> places = {};
};

// Registers metrics of the service as a whole: the process and its build, whether it is ready, the
// source, disks, and the database's own figures.
void ShowServiceMetrics(metrics::Registry& registry, const ServiceParts& parts);

}  // namespace tacit::daemon
