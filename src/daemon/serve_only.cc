// `tacitd --serve-only`.
#include <functional>

#include "base/log.h"
#include "console/stop_signals.h"
#include "daemon/daemon.h"
#include "daemon/served_copy.h"
#include "daemon/service_manager.h"
#include "daemon/start_server.h"
#include "serve/commit_signal.h"
#include "train/ledger_metrics.h"

namespace tacit::daemon {
namespace {

// Moves to a newer copy when SIGHUP comes. Whatever fails, what is served goes on being served.
void MoveOn(ServedCopy& served, train::LedgerMetrics& metrics, serve::CommitSignal& commits) {
  const auto moved = served.MoveOn();
  if (!moved) {
    spdlog::error("SIGHUP: {} goes on being served: {}", served.folder(), moved.error().message);
  } else if (!*moved) {
    spdlog::info("SIGHUP: nothing newer than commit {} of {}", served.Latest()->version().value,
                 served.folder());
  } else {
    metrics.Show(*served.Latest());
    commits.Tell();
    spdlog::info("SIGHUP: serving commit {} of {} now", served.Latest()->version().value,
                 served.folder());
  }
}

}  // namespace

Result<int> ServeCheckpoint(const wiring::Assembly& assembly, const std::string& directory) {
  std::function<void()> on_hangup;
  console::StopSignals signals([&on_hangup] { on_hangup(); });
  TACIT_ASSIGN(const wiring::FilePlan files, MakeFilePlan(assembly.config.serve));
  metrics::Registry registry;
  TACIT_ASSIGN(const auto served, ServedCopy::Open(directory, wiring::MakeLayouts(assembly)));
  std::vector<train::LedgerMetrics::Learner> promised;
  for (const wiring::LearnerPlan& plan : assembly.learners)
    promised.push_back({plan.id, plan.promise.epsilon, plan.promise.delta});
  train::LedgerMetrics metrics(registry, promised, assembly.total_budget);
  metrics.Show(*served->Latest());
  serve::CommitSignal commits;
  on_hangup = [&] { MoveOn(*served, metrics, commits); };
  TACIT_ASSIGN(const auto server,
               StartServer(assembly, files,
                           {.latest = [&served] { return served->Latest(); },
                            .commits = &commits,
                            .models = wiring::MakeScoringModels(assembly),
                            .recommenders = wiring::MakeRecommendModels(assembly),
                            .readiness =
                                [] {
                                  return serve::Readiness{true, ""};
                                },
                            .budget_exhausted = [](LearnerIndex) { return false; },
                            .total_budget = assembly.total_budget,
                            .metrics = &registry},
                           registry));
  if (!server)
    return Fail(ErrorCode::kInvalidArgument,
                "serve.listen is empty: no caller could reach the server");
  NotifyReady("serving a checkpoint");
  while (!signals.WaitFor(std::chrono::milliseconds(1000))) {
  }
  NotifyStopping();
  server->Stop(kDrain);
  return console::kExitDone;
}

}  // namespace tacit::daemon
