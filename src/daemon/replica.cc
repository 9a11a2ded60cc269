// `tacitd --replica`.
#include <fmt/format.h>

#include <functional>

#include "base/files/log.h"
#include "console/stop_signals.h"
#include "daemon/daemon.h"
#include "daemon/feed_follower.h"
#include "daemon/gpu_choice.h"
#include "daemon/service_manager.h"
#include "daemon/service_metrics.h"
#include "daemon/start_server.h"
#include "serve/items/commit_signal.h"
#include "train/ledger_metrics.h"
#include "wiring/plans/code_version.h"
#include "wiring/plans/feed.h"
#include "wiring/plans/use_limits.h"

namespace tacit::daemon {
namespace {

store::ReplicaOptions ReplicaOptionsOf(const wiring::Assembly& assembly,
                                       const wiring::FilePlan& files) {
  store::StoreOptions trainer = wiring::MakeStoreOptions(assembly);
  store::ReplicaOptions options{.path = trainer.path, .learners = std::move(trainer.learners)};
  options.memory_bytes = trainer.memory_bytes;
  if (trainer.shards > 0) options.shards = trainer.shards;
  options.overlay_bytes = trainer.overlay_bytes;
  options.open_files_most = files.store;
  return options;
}

void TellOfReplica(const std::string& config, const std::string& topic,
                   const store::ReplicaStore& store, const std::string& path) {
  const auto latest = store.Latest();
  const uint64_t version = latest ? latest->version().value : 0;
  LogEvent(spdlog::level::info, "start",
           {{"version", wiring::CodeVersion()},
            {"configuration", config},
            {"store", path},
            {"commit", version}},
           fmt::format("{}: configuration {}, a replica of topic '{}' in store {}, {}",
                       wiring::CodeVersion(), config, topic, path,
                       latest ? fmt::format("at version {}", version) : "without a version yet"));
}

}  // namespace

Result<int> RunReplica(const wiring::Assembly& assembly, const std::string& config,
                       const std::string& checkpoint, std::function<Status()> check_feed,
                       GpuOpener open_gpu) {
  std::function<void()> on_hangup;
  console::StopSignals signals([&on_hangup] { on_hangup(); });
  TACIT_ASSIGN(const wiring::FilePlan files, MakeFilePlan(assembly.config.serve));
  metrics::Registry registry;
  TACIT_ASSIGN(GpuChoice gpu, GpuChoice::MakeToServe(assembly, std::move(open_gpu)));
  const SystemClock clock;
  feed::ReplicaSource source{.topic = assembly.config.feed.topic,
                             .check_topic = std::move(check_feed),
                             .checkpoint = checkpoint};
  TACIT_ASSIGN(source.properties, wiring::FeedProperties(assembly.config));
  store::ReplicaOptions options = ReplicaOptionsOf(assembly, files);
  const std::vector<store::LearnerLayout> layouts = options.learners;
  const std::string path = options.path;
  TACIT_ASSIGN(const auto store, store::ReplicaStore::Open(std::move(options)));
  TellOfReplica(config, source.topic, *store, path);
  TellOfFiles(assembly.config.serve, files);
  std::vector<train::LedgerMetrics::Learner> promised;
  for (const wiring::LearnerPlan& plan : assembly.learners)
    promised.push_back({plan.id, plan.promise.epsilon, plan.promise.delta});
  train::LedgerMetrics metrics(registry, promised, assembly.total_budget);
  if (const auto latest = store->Latest()) metrics.Show(*latest);
  serve::CommitSignal commits;
  TACIT_ASSIGN(const auto front, Front::Open(assembly.config.serve, registry));
  on_hangup = [&] {
    NotifyReloading();
    front->Reload();
    NotifyReloaded();
  };
  FeedFollower follower(*store, assembly.config.feed, layouts, std::move(source), clock, registry,
                        [&](int64_t published_ms) {
                          metrics.Show(*store->Latest(), published_ms);
                          commits.Tell();
                        });
  ShowServiceMetrics(registry, {.readiness = [&follower] { return follower.readiness(); },
                                .places = {{"store", path}}});
  TACIT_RETURN_IF_ERROR(
      StartServer(assembly, files,
                  {.latest = [&store] { return store->Latest(); },
                   .commits = &commits,
                   .models = gpu.ScoringModels(registry),
                   .recommenders = wiring::MakeRecommendModels(assembly),
                   .readiness = [&follower] { return follower.readiness(); },
                   .budget_exhausted = [](LearnerIndex) { return false; },
                   .qualities = wiring::ServedQualities(assembly),
                   .breaker = wiring::ServedBreaker(assembly),
                   .total_budget = assembly.total_budget,
                   .dashboard = {.activity = [] { return "serving a feed"; },
                                 .limits = wiring::LimitsByAccount(assembly.config)},
                   .metrics = &registry},
                  registry, *front));
  TACIT_RETURN_IF_ERROR(
      ServeUntilStopped(signals, clock, *front,
                        {.ready = "following a feed",
                         .stages = {{"the feed", [&] { return follower.heartbeat().Look(); }}},
                         .stop_first = [&] { follower.Stop(); }}));
  if (const Status settled = store->Settle(); !settled) spdlog::warn("{}", settled.error().message);
  return console::kExitDone;
}

}  // namespace tacit::daemon
