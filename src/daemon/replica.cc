// `tacitd --replica`.
#include <fmt/format.h>

#include "daemon/daemon.h"
#include "daemon/feed_follower.h"
#include "daemon/gpu_choice.h"
#include "daemon/service.h"
#include "serve/items/commit_signal.h"
#include "wiring/plans/feed.h"

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

}  // namespace

Result<int> RunReplica(const wiring::Assembly& assembly, const Start& start,
                       const std::string& checkpoint) {
  console::StopSignals signals;
  metrics::Registry registry;
  TACIT_ASSIGN(const auto service, Service::OpenToServe(assembly, start, registry, signals));
  TACIT_ASSIGN(GpuChoice gpu, GpuChoice::MakeToServe(assembly, start.open_gpu));
  const SystemClock clock;
  feed::ReplicaSource source{.topic = assembly.config.feed.topic,
                             .check_topic = start.check_feed,
                             .checkpoint = checkpoint};
  TACIT_ASSIGN(source.properties, wiring::FeedProperties(assembly.config));
  store::ReplicaOptions options = ReplicaOptionsOf(assembly, service->files());
  const std::vector<store::LearnerLayout> layouts = options.learners;
  const std::string path = options.path;
  TACIT_ASSIGN(const auto store, store::ReplicaStore::Open(std::move(options)));
  const auto opened = store->Latest();
  const uint64_t version = opened ? opened->version().value : 0;
  service->TellStart(
      path, version,
      fmt::format("a replica of topic '{}' in store {}, {}", source.topic, path,
                  opened ? fmt::format("at version {}", version) : "without a version yet"));
  train::LedgerMetrics metrics = service->MakeLedgerMetrics();
  if (opened) metrics.Show(*opened);
  serve::CommitSignal commits;
  FeedFollower follower(*store, assembly.config.feed, layouts, std::move(source), clock, registry,
                        [&](int64_t published_ms) {
                          metrics.Show(*store->Latest(), published_ms);
                          commits.Tell();
                        });
  TACIT_RETURN_IF_ERROR(
      service->Answer({.latest = [&store] { return store->Latest(); },
                       .commits = &commits,
                       .models = gpu.ScoringModels(registry),
                       .readiness = [&follower] { return follower.readiness(); },
                       .dashboard = {.activity = [] { return "serving a feed"; }}},
                      {.places = {{"store", path}}}));
  service->Run({.ready = "following a feed",
                .stages = {{"the feed", [&] { return follower.heartbeat().Look(); }}},
                .stop = [&] { follower.Stop(); }});
  if (const Status settled = store->Settle(); !settled) spdlog::warn("{}", settled.error().message);
  return console::kExitDone;
}

}  // namespace tacit::daemon
