#include "daemon/service.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/text.h"
#include "daemon/plan_text.h"
#include "daemon/reloader.h"
#include "daemon/service_manager.h"
#include "wiring/plans/code_version.h"
#include "wiring/plans/use_limits.h"

namespace tacit::daemon {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kTick(100);
// The time that answers under way have once a stop was asked for.
constexpr milliseconds kLastAnswers(2000);

void TellOfFiles(const config::Serve& config, const wiring::FilePlan& files) {
  spdlog::info("files: at most {} open, {} of them the store's, {} for connections",
               WithThousands(files.limit), WithThousands(files.store), files.connections);
  if (!config.listen.empty() && files.connections < config.max_connections)
    spdlog::warn(
        "the limit on open files leaves {} connections instead of serve.max_connections, which is "
        "{}: raise the hard limit (ulimit -Hn, or LimitNOFILE= in the unit)",
        files.connections, config.max_connections);
}

// Warns of what a caller from elsewhere could do or see.
void WarnOfOpenDoors(const config::Serve& config) {
  if (!config.operator_listen.empty() && !http::IsLocalAddress(config.operator_listen) &&
      config.callers.empty())
    spdlog::warn(
        "serve.operator_listen is {}: any caller who reaches it reads values without noise, and no "
        "caller has to log in. Name serve.callers, let it listen on 127.0.0.1 or unix:PATH, or "
        "close the network around it",
        config.operator_listen);
  for (const std::string& address : {config.listen, config.operator_listen})
    if (!config.callers.empty() && config.tls.certificate.empty() && !address.empty() &&
        !http::IsLocalAddress(address))
      spdlog::warn(
          "{} is open to other machines without TLS: tokens cross the network as they are "
          "(serve.tls)",
          address);
}

std::vector<http::Listener> ListenersOf(const config::Serve& config) {
  std::vector<http::Listener> listeners;
  if (!config.listen.empty()) listeners.push_back({config.listen, http::Role::kPublic});
  if (!config.operator_listen.empty())
    listeners.push_back({config.operator_listen, http::Role::kOperator});
  return listeners;
}

// Goes on answering for serve.drain_ms, while /readyz says no; another signal ends it.
void Drain(console::StopSignals& signals, const Clock& clock, Front& front, Watchdog& watchdog) {
  const milliseconds time = front.BeginDraining();
  if (time.count() == 0) return;
  spdlog::info(
      "asked to stop: answers go on for {} ms (serve.drain_ms), /readyz says no, and another "
      "SIGTERM ends that",
      time.count());
  signals.WaitForAnother();
  const auto end = clock.Now() + time;
  do {
    NotifyStopping();
    watchdog.Look();
  } while (!signals.WaitFor(kTick) && clock.Now() < end);
}

}  // namespace

Result<std::unique_ptr<Service>> Service::Open(const wiring::Assembly& assembly, const Start& start,
                                               metrics::Registry& registry,
                                               console::StopSignals& signals) {
  std::unique_ptr<Service> service(new Service(assembly, start, registry, signals));
  TACIT_ASSIGN(service->written_, start.read());
  const config::Serve& config = assembly.config.serve;
  TACIT_ASSIGN(service->files_, wiring::PlanFiles(config, wiring::RaiseFileLimit()));
  TACIT_ASSIGN(service->front_, Front::Open(config, registry));
  return service;
}

Result<std::unique_ptr<Service>> Service::OpenToServe(const wiring::Assembly& assembly,
                                                      const Start& start,
                                                      metrics::Registry& registry,
                                                      console::StopSignals& signals) {
  if (ListenersOf(assembly.config.serve).empty())
    return Fail(ErrorCode::kInvalidArgument,
                "serve.listen is empty: no caller could reach the server");
  return Open(assembly, start, registry, signals);
}

train::LedgerMetrics Service::MakeLedgerMetrics() const {
  std::vector<train::LedgerMetrics::Learner> promised;
  for (const wiring::LearnerPlan& plan : assembly_.learners)
    promised.push_back({plan.id, plan.promise.epsilon, plan.promise.delta});
  return {registry_, promised, assembly_.total_budget};
}

void Service::TellStart(const std::string& store, uint64_t commit, std::string_view text,
                        std::vector<LogField> more) const {
  std::vector<LogField> fields = {{"version", wiring::CodeVersion()},
                                  {"configuration", start_.config},
                                  {"store", store},
                                  {"commit", commit}};
  fields.insert(fields.end(), more.begin(), more.end());
  LogEvent(spdlog::level::info, "start", fields,
           fmt::format("{}: configuration {}, {}", wiring::CodeVersion(), start_.config, text));
  for (const std::string& warning : ConfigurationWarnings(assembly_)) spdlog::warn("{}", warning);
  TellOfFiles(assembly_.config.serve, files_);
}

Status Service::Answer(serve::Services services, ServiceParts parts) {
  const config::Serve& config = assembly_.config.serve;
  services.recommenders = wiring::MakeRecommendModels(assembly_);
  services.qualities = wiring::ServedQualities(assembly_);
  services.breaker = wiring::ServedBreaker(assembly_);
  services.total_budget = assembly_.total_budget;
  services.dashboard.limits = wiring::LimitsByAccount(assembly_.config);
  services.code_version = wiring::CodeVersion();
  services.metrics = &registry_;
  services.readiness = [front = front_.get(), own = std::move(services.readiness)] {
    return front->Readiness(own());
  };
  parts.readiness = services.readiness;
  ShowServiceMetrics(registry_, parts);

  http::ServerOptions options;
  options.listeners = ListenersOf(config);
  if (options.listeners.empty()) return {};
  options.threads = config.threads;
  options.max_connections = files_.connections;
  options.max_body_bytes = config.max_body_bytes;
  options.max_held_bytes = assembly_.memory.held_bytes;
  options.max_operator_held_bytes = assembly_.memory.operator_held_bytes;
  options.hosts = config.hosts;
  options.access_log = config.access_log;
  front_->FillIn(&options);
  auto server =
      http::Server::Start(std::move(options), serve::MakeApi(std::move(services)), registry_);
  // A busy port must not look like a store that refuses: scripts tell them apart by exit code.
  if (!server) return Fail(ErrorCode::kIo, std::move(server.error().message));
  for (const std::string& address : (*server)->addresses())
    LogEvent(spdlog::level::info, "serving", {{"address", address}}, "serving on " + address);
  WarnOfOpenDoors(config);
  front_->Take(std::move(*server));
  return {};
}

bool Service::Run(const Work& work) {
  Reloader reloader(written_, start_.read, [&](const config::Config& running) -> Status {
    TACIT_RETURN_IF_ERROR(front_->Change(running.serve));
    SetLogLevel(running.log.level);
    work.change(running);
    return {};
  });
  NotifyReady(work.ready);
  signals_.OnHangup([&] {
    NotifyReloading();
    reloader.Reload();
    front_->Reload();
    work.reload();
    NotifyReloaded();
  });
  std::vector<Watchdog::Stage> stages = work.stages;
  AddServerStages(front_->server(), &stages);
  Watchdog watchdog(clock_, WatchdogPatience(), std::move(stages), NotifyAlive);
  bool asked = false;
  while (!(asked = signals_.WaitFor(work.look)) && work.goes_on()) {
    front_->Look();
    watchdog.Look();
  }
  signals_.OnHangup({});
  NotifyStopping();
  if (asked) Drain(signals_, clock_, *front_, watchdog);
  work.stop();
  if (front_->server() != nullptr) front_->server()->Stop(kLastAnswers);
  front_.reset();  // it holds functions of the mode's parts
  return asked;
}

}  // namespace tacit::daemon
