// `tacitd --serve-only`.
#include <fmt/format.h>

#include <functional>
#include <string_view>

#include "base/files/log.h"
#include "console/stop_signals.h"
#include "daemon/daemon.h"
#include "daemon/gpu_choice.h"
#include "daemon/plan_text.h"
#include "daemon/reloader.h"
#include "daemon/served_versions.h"
#include "daemon/service_manager.h"
#include "daemon/service_metrics.h"
#include "daemon/start_server.h"
#include "metrics/families.h"
#include "train/ledger_metrics.h"
#include "wiring/plans/code_version.h"
#include "wiring/plans/use_limits.h"

namespace tacit::daemon {
namespace {

// Moves what is served, tells of it, and has the figures follow. Whatever fails, what is served
// goes on being served. Thread-safe.
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

void TellWhatIsServed(const std::string& config, const ServedVersions& served) {
  const uint64_t commit = served.table()->contents()->serving;
  LogEvent(spdlog::level::info, "start",
           {{"version", wiring::CodeVersion()},
            {"configuration", config},
            {"store", served.folder()},
            {"commit", commit}},
           fmt::format("{}: configuration {}, serving {} at commit {}", wiring::CodeVersion(),
                       config, served.folder(), commit));
}

}  // namespace

Result<int> ServeCheckpoint(const wiring::Assembly& assembly, const std::string& config,
                            const std::function<Result<config::Config>()>& read,
                            const std::string& directory, GpuOpener open_gpu) {
  std::function<void()> on_hangup;
  console::StopSignals signals([&on_hangup] { on_hangup(); });
  TACIT_ASSIGN(const wiring::FilePlan files, MakeFilePlan(assembly.config.serve));
  metrics::Registry registry;
  TACIT_ASSIGN(GpuChoice gpu, GpuChoice::MakeToServe(assembly, std::move(open_gpu)));
  const std::vector<serve::RecommendModel> recommenders = wiring::MakeRecommendModels(assembly);
  TACIT_ASSIGN(const uint64_t reader_bytes, wiring::PlanReaders(assembly));
  TACIT_ASSIGN(const auto served,
               ServedVersions::Open(directory, {.open_most = assembly.config.serve.versions.open,
                                                .choice_file = assembly.config.serve.versions.file,
                                                .layouts = wiring::MakeLayouts(assembly),
                                                .reader_bytes = reader_bytes,
                                                .recommenders = recommenders,
                                                .registry = &registry}));
  TellWhatIsServed(config, *served);
  for (const std::string& warning : ConfigurationWarnings(assembly)) spdlog::warn("{}", warning);
  TellOfFiles(assembly.config.serve, files);
  std::vector<train::LedgerMetrics::Learner> promised;
  for (const wiring::LearnerPlan& plan : assembly.learners)
    promised.push_back({plan.id, plan.promise.epsilon, plan.promise.delta});
  train::LedgerMetrics metrics(registry, promised, assembly.total_budget);
  Mover mover(*served, metrics, registry);
  ShowServiceMetrics(registry, {.readiness =
                                    [] {
                                      return serve::Readiness{true, ""};
                                    },
                                .places = {{"checkpoint", directory}}});
  TACIT_ASSIGN(const auto front, Front::Open(assembly.config.serve, registry));
  TACIT_ASSIGN(config::Config written, read());
  Reloader reloader(std::move(written), read, [&front](const config::Config& running) -> Status {
    TACIT_RETURN_IF_ERROR(front->Change(running.serve));
    SetLogLevel(running.log.level);
    return {};
  });
  on_hangup = [&] {
    NotifyReloading();
    reloader.Reload();
    front->Reload();
    (void)mover.MoveOn("SIGHUP");
    NotifyReloaded();
  };
  TACIT_RETURN_IF_ERROR(StartServer(
      assembly, files,
      {.latest = [table = served->table()] { return table->Newest(); },
       .versions = served->table(),
       .models = gpu.ScoringModels(registry),
       .recommenders = recommenders,
       .readiness =
           [] {
             return serve::Readiness{true, ""};
           },
       .budget_exhausted = [](LearnerIndex) { return false; },
       .qualities = wiring::ServedQualities(assembly),
       .total_budget = assembly.total_budget,
       .repository =
           serve::RepositoryCommands{.move_on = [&mover] { return mover.MoveOn("load"); }},
       .version_commands =
           serve::VersionCommands{
               .set = [&mover](const serve::VersionOrder& order) { return mover.Set(order); },
               .report = [&served] { return served->Report(); }},
       .dashboard = {.activity = [] { return "serving a checkpoint"; },
                     .limits = wiring::LimitsByAccount(assembly.config)},
       .metrics = &registry},
      registry, *front));
  const SystemClock clock;
  TACIT_RETURN_IF_ERROR(
      ServeUntilStopped(signals, clock, *front, {.ready = "serving a checkpoint"}));
  return console::kExitDone;
}

}  // namespace tacit::daemon
