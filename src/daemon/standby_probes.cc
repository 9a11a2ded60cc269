#include "daemon/standby_probes.h"

#include <utility>

#include "base/files/log.h"

namespace tacit::daemon {
namespace {

constexpr std::string_view kStandsBy = "standing by: another daemon has the store";

class ProbeHandler final : public http::Handler {
 public:
  void Handle(const http::Request& request, http::Reply* reply) override {
    if (request.path != "/healthz" && request.path != "/readyz")
      return http::SetError(503, kStandsBy, reply);
    if (request.method != "GET") return http::SetError(405, "a probe is a GET", reply);
    const bool ready = request.path == "/healthz";
    reply->status = ready ? 200 : 503;
    reply->body = R"({"status":")" + std::string(kStandsBy) + R"("})";
  }
};

}  // namespace

Result<std::unique_ptr<http::Server>> AnswerProbes(const std::string& address,
                                                   metrics::Registry& registry) {
  if (address.empty()) return std::unique_ptr<http::Server>();
  http::ServerOptions options;
  options.listeners.push_back({address, http::Role::kPublic});
  options.hosts = {"any"};  // any name that a probe has for this machine: all answers are public
  options.max_connections = 64;
  options.max_body_bytes = 1024;
  options.max_held_bytes = 1 << 20;
  auto server = http::Server::Start(
      std::move(options), [] { return std::make_unique<ProbeHandler>(); }, registry);
  // A busy port must not look like a store that refuses.
  if (!server) return Fail(ErrorCode::kIo, std::move(server.error().message));
  for (const std::string& bound : (*server)->addresses())
    spdlog::info("probes are answered on {} while another daemon has the store", bound);
  return server;
}

}  // namespace tacit::daemon
