// `tacitd --serve-only`.
#include <fmt/format.h>

#include <string_view>

#include "base/files/log.h"
#include "daemon/daemon.h"
#include "daemon/gpu_choice.h"
#include "daemon/served_versions.h"
#include "daemon/service.h"
#include "metrics/families.h"

namespace tacit::daemon {
namespace {

// Switches the served version, logs it, updates the gauges. After a failure the old
// version stays. Thread-safe.
class Mover {
 public:
  Mover(ServedVersions& served, train::LedgerMetrics& metrics, metrics::Registry& registry)
      : served_(served), metrics_(metrics) {
    serving_ = registry.AddGauge("tacit_serving_version");
    canary_ = registry.AddGauge("tacit_canary_version");
    share_ = registry.AddGauge("tacit_canary_share");
    Show();
  }

  // Returns true if a newer commit is served now; `why` begins the log's line.
  Result<bool> MoveOn(std::string_view why) {
    const auto moved = served_.MoveOn();
    if (!moved) {
      spdlog::error("{}: {} goes on being served: {}", why, served_.folder(),
                    moved.error().message);
    } else if (!*moved) {
      const bool held = IsHeld();
      spdlog::info("{}: {} commit {} of {}", why,
                   held ? "the operator has chosen" : "nothing newer than", Serving(),
                   served_.folder());
    } else {
      Show();
      spdlog::info("{}: serving commit {} of {} now", why, Serving(), served_.folder());
    }
    return moved;
  }

  // Follows an operator's order, which the log then has.
  Result<serve::VersionReport> Set(const serve::VersionOrder& order) {
    auto report = served_.Set(order);
    if (!report) {
      spdlog::error("versions stay as they are: {}", report.error().message);
      return report;
    }
    Show();
    spdlog::info("serving commit {}{}, canary {}", report->serving,
                 report->held ? " until an operator says otherwise" : "",
                 report->canary ? fmt::format("{} for {:g} of requests", report->canary->version,
                                              report->canary->share)
                                : "none");
    return report;
  }

 private:
  uint64_t Serving() const { return served_.table()->contents()->serving; }
  bool IsHeld() const {
    const auto report = served_.Report();
    return report && report->held;
  }
  void Show() {
    const auto contents = served_.table()->contents();
    metrics_.Show(*served_.table()->Newest());
    serving_.Set(static_cast<double>(contents->serving));
    canary_.Set(contents->canary ? static_cast<double>(contents->canary->version) : 0);
    share_.Set(contents->canary ? contents->canary->share : 0);
  }

  ServedVersions& served_;
  train::LedgerMetrics& metrics_;
  metrics::Gauge serving_, canary_, share_;
};

}  // namespace

Result<int> ServeCheckpoint(const wiring::Assembly& assembly, const Start& start,
                            const std::string& directory) {
  console::StopSignals signals;
  metrics::Registry registry;
  TACIT_ASSIGN(const auto service, Service::OpenToServe(assembly, start, registry, signals));
  TACIT_ASSIGN(GpuChoice gpu, GpuChoice::MakeToServe(assembly, start.open_gpu));
  TACIT_ASSIGN(const uint64_t reader_bytes, wiring::PlanReaders(assembly));
  const config::Versions& versions = assembly.config.serve.versions;
  TACIT_ASSIGN(
      const auto served,
      ServedVersions::Open(directory, {.open_most = versions.open,
                                       .choice_file = versions.file,
                                       .layouts = wiring::MakeLayouts(assembly),
                                       .reader_bytes = reader_bytes,
                                       .recommenders = wiring::MakeRecommendModels(assembly),
                                       .registry = &registry}));
  const uint64_t commit = served->table()->contents()->serving;
  service->TellStart(served->folder(), commit,
                     fmt::format("serving {} at commit {}", served->folder(), commit));
  train::LedgerMetrics metrics = service->MakeLedgerMetrics();
  Mover mover(*served, metrics, registry);
  TACIT_RETURN_IF_ERROR(service->Answer(
      {.latest = [table = served->table()] { return table->Newest(); },
       .versions = served->table(),
       .models = gpu.ScoringModels(registry),
       .repository =
           serve::RepositoryCommands{.move_on = [&mover] { return mover.MoveOn("load"); }},
       .version_commands = serve::VersionCommands{
           .set = [&mover](const serve::VersionOrder& order) { return mover.Set(order); },
           .report = [&served] { return served->Report(); }},
       .dashboard = {.activity = [] { return "serving a checkpoint"; }}},
      {.places = {{"checkpoint", directory}}}));
  service->Run(
      {.ready = "serving a checkpoint", .reload = [&mover] { (void)mover.MoveOn("SIGHUP"); }});
  return console::kExitDone;
}

}  // namespace tacit::daemon
