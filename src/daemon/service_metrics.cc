#include "daemon/service_metrics.h"

#include <filesystem>
#include <utility>

#include "metrics/families.h"
#include "metrics/process_metrics.h"
#include "wiring/plans/code_version.h"

namespace tacit::daemon {
namespace {

namespace fs = std::filesystem;
using metrics::Gauge;

void ShowReadiness(metrics::Registry& registry,
                   const std::function<serve::Readiness()>& readiness) {
  const Gauge ready = registry.AddGauge("tacit_ready");
  const Gauge degraded = registry.AddGauge("tacit_degraded");
  registry.BeforeScrape([=] {
    const serve::Readiness now = readiness();
    ready.Set(now.ready ? 1 : 0);
    degraded.Set(now.ready && now.degraded_for_operators.empty() ? 0 : 1);
  });
}

void ShowSource(metrics::Registry& registry, const ServiceParts& parts) {
  const Gauge connected = registry.AddGauge("tacit_source_connected");
  const Gauge ahead = registry.AddGauge("tacit_source_records_ahead");
  registry.BeforeScrape([=, health = parts.source, records = parts.records_ahead] {
    connected.Set(health().connected ? 1 : 0);
    ahead.Set(static_cast<double>(records()));
  });
}

// Registers the room of the disk that a place is on. A place that comes later is shown from then
// on.
void ShowDisk(metrics::Registry& registry, const ServiceParts::Place& place) {
  const auto gauge = [&](metrics::GaugeName name) {
    return registry.AddGauge(name, {{"of", place.of}});
  };
  const Gauge free = gauge("tacit_disk_free_bytes");
  const Gauge size = gauge("tacit_disk_size_bytes");
  registry.BeforeScrape([=, path = fs::path(place.path)] {
    std::error_code error;
    fs::space_info space = fs::space(path, error);
    if (error) space = fs::space(path.parent_path(), error);
    if (error) return;
    free.Set(static_cast<double>(space.available));
    size.Set(static_cast<double>(space.capacity));
  });
}

void ShowEngine(metrics::Registry& registry,
                const std::function<store::Store::EngineStats()>& engine) {
  const auto gauge = [&](metrics::GaugeName name) { return registry.AddGauge(name); };
  const Gauge tables = gauge("tacit_store_table_bytes");
  const Gauge blobs = gauge("tacit_store_blob_bytes");
  const Gauge cache = gauge("tacit_rocksdb_block_cache_bytes");
  const Gauge memtables = gauge("tacit_rocksdb_memtable_bytes");
  const Gauge level0 = gauge("tacit_rocksdb_level0_files");
  const Gauge pending = gauge("tacit_rocksdb_pending_compaction_bytes");
  const Gauge compactions = gauge("tacit_rocksdb_running_compactions");
  const Gauge flushes = gauge("tacit_rocksdb_running_flushes");
  const Gauge stopped = gauge("tacit_rocksdb_writes_stopped");
  const Gauge delayed = gauge("tacit_rocksdb_delayed_write_bytes_per_second");
  const metrics::Counter errors = registry.AddCounter("tacit_rocksdb_background_errors_total");
  registry.BeforeScrape([=] {
    const store::Store::EngineStats now = engine();
    tables.Set(static_cast<double>(now.table_bytes));
    blobs.Set(static_cast<double>(now.blob_bytes));
    cache.Set(static_cast<double>(now.block_cache_bytes));
    memtables.Set(static_cast<double>(now.memtable_bytes));
    level0.Set(static_cast<double>(now.level0_files));
    pending.Set(static_cast<double>(now.pending_compaction_bytes));
    compactions.Set(static_cast<double>(now.running_compactions));
    flushes.Set(static_cast<double>(now.running_flushes));
    stopped.Set(now.writes_stopped ? 1 : 0);
    delayed.Set(static_cast<double>(now.delayed_write_bytes_per_second));
    errors.RaiseTo(static_cast<double>(now.background_errors));
  });
}

}  // namespace

void ShowServiceMetrics(metrics::Registry& registry, const ServiceParts& parts) {
  metrics::ShowProcess(registry, wiring::CodeVersion());
  ShowReadiness(registry, parts.readiness);
  if (parts.source) ShowSource(registry, parts);
  if (parts.engine) ShowEngine(registry, parts.engine);
  for (const ServiceParts::Place& place : parts.places) ShowDisk(registry, place);
}

}  // namespace tacit::daemon
