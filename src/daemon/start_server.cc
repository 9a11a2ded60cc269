#include "daemon/start_server.h"

#include <fmt/format.h>

#include <utility>

#include "base/files/log.h"
#include "base/text.h"
#include "daemon/service_manager.h"
#include "wiring/plans/code_version.h"

namespace tacit::daemon {

Result<wiring::FilePlan> MakeFilePlan(const config::Serve& config) {
  return wiring::PlanFiles(config, wiring::RaiseFileLimit());
}

void TellOfFiles(const config::Serve& config, const wiring::FilePlan& files) {
  spdlog::info("files: at most {} open, {} of them the store's, {} for connections",
               WithThousands(files.limit), WithThousands(files.store), files.connections);
  if (!config.listen.empty() && files.connections < config.max_connections)
    spdlog::warn(
        "the limit on open files leaves {} connections instead of serve.max_connections, which is "
        "{}: raise the hard limit (ulimit -Hn, or LimitNOFILE= in the unit)",
        files.connections, config.max_connections);
}

namespace {

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

}  // namespace

Status StartServer(const wiring::Assembly& assembly, const wiring::FilePlan& files,
                   serve::Services services, metrics::Registry& registry, Front& front) {
  const config::Serve& config = assembly.config.serve;
  http::ServerOptions options;
  if (!config.listen.empty()) options.listeners.push_back({config.listen, http::Role::kPublic});
  if (!config.operator_listen.empty())
    options.listeners.push_back({config.operator_listen, http::Role::kOperator});
  if (options.listeners.empty()) return {};
  options.threads = config.threads;
  options.max_connections = files.connections;
  options.max_body_bytes = config.max_body_bytes;
  options.max_held_bytes = assembly.memory.held_bytes;
  options.max_operator_held_bytes = assembly.memory.operator_held_bytes;
  options.hosts = config.hosts;
  options.access_log = config.access_log;
  front.FillIn(&options);
  services.code_version = wiring::CodeVersion();
  auto server =
      http::Server::Start(std::move(options), serve::MakeApi(std::move(services)), registry);
  if (!server) {
    // A busy port must not look like a store that refuses: scripts tell them apart by exit code.
    return Fail(ErrorCode::kIo, std::move(server.error().message));
  }
  for (const std::string& address : (*server)->addresses())
    LogEvent(spdlog::level::info, "serving", {{"address", address}}, "serving on " + address);
  WarnOfOpenDoors(config);
  front.Take(std::move(*server));
  return {};
}

Status ServeUntilStopped(console::StopSignals& signals, const Clock& clock, Front& front,
                         Serving serving) {
  if (front.server() == nullptr)
    return Fail(ErrorCode::kInvalidArgument,
                "serve.listen is empty: no caller could reach the server");
  NotifyReady(serving.ready);
  AddServerStages(front.server(), &serving.stages);
  Watchdog watchdog(clock, WatchdogPatience(), std::move(serving.stages), NotifyAlive);
  while (!signals.WaitFor(std::chrono::milliseconds(100))) {
    front.Look();
    watchdog.Look();
  }
  NotifyStopping();
  serving.stop_first();
  front.server()->Stop(kDrain);
  return {};
}

}  // namespace tacit::daemon
