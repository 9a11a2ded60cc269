#include "daemon/start_server.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace tacit::daemon {

Result<wiring::FilePlan> MakeFilePlan(const config::Serve& config) {
  TACIT_ASSIGN(const wiring::FilePlan files, wiring::PlanFiles(config, wiring::RaiseFileLimit()));
  spdlog::info("files: at most {} open, {} of them the store's, {} for connections",
               WithThousands(files.limit), WithThousands(files.store), files.connections);
  if (!config.listen.empty() && files.connections < config.max_connections)
    spdlog::warn(
        "the limit on open files leaves {} connections instead of serve.max_connections, which is "
        "{}: raise the hard limit (ulimit -Hn, or LimitNOFILE= in the unit)",
        files.connections, config.max_connections);
  return files;
}

Result<std::unique_ptr<serve::Server>> StartServer(const wiring::Assembly& assembly,
                                                   const wiring::FilePlan& files,
                                                   serve::Services services,
                                                   metrics::Registry& registry) {
  const config::Serve& config = assembly.config.serve;
  serve::ServerOptions options;
  if (!config.listen.empty()) options.listeners.push_back({config.listen, serve::Role::kPublic});
  if (!config.operator_listen.empty())
    options.listeners.push_back({config.operator_listen, serve::Role::kOperator});
  if (options.listeners.empty()) return std::unique_ptr<serve::Server>();
  options.threads = config.threads;
  options.max_connections = files.connections;
  options.max_body_bytes = config.max_body_bytes;
  options.max_held_bytes = assembly.memory.held_bytes;
  options.max_operator_held_bytes = assembly.memory.operator_held_bytes;
  options.hosts = config.hosts;
  auto server =
      serve::Server::Start(std::move(options), serve::MakeApi(std::move(services)), registry);
  if (!server) {
    // A busy port must not look like a store that refuses: scripts tell them apart by exit code.
    return Fail(ErrorCode::kIo, std::move(server.error().message));
  }
  for (const std::string& address : (*server)->addresses()) spdlog::info("serving on {}", address);
  if (!config.operator_listen.empty() && !serve::IsLocalAddress(config.operator_listen))
    spdlog::warn(
        "serve.operator_listen is {}: any caller who reaches it reads values without noise, and no "
        "caller has to log in. Let it listen on 127.0.0.1 or unix:PATH, or close the network "
        "around it",
        config.operator_listen);
  return server;
}

}  // namespace tacit::daemon
