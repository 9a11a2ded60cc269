#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "config/config.h"
#include "http/callers.h"
#include "http/server.h"
#include "metrics/registry.h"
#include "serve/routes/services.h"

namespace tacit::daemon {

// The server, and the files that it reads again while it answers. Used by one thread, except
// Readiness.
class Front {
 public:
  // Reads the files that the configuration names. kInvalidArgument names what is wrong with them.
  // `registry` outlives it.
  static Result<std::unique_ptr<Front>> Open(const config::Serve& config,
                                             metrics::Registry& registry);

  // Hands the files to the server's options.
  void FillIn(http::ServerOptions* options) const;
  void Take(std::unique_ptr<http::Server> server) { server_ = std::move(server); }

  // Null where the configuration names no address.
  http::Server* server() const { return server_.get(); }

  // Answers `other`, until draining has begun: no from then on. Any thread.
  serve::Readiness Readiness(serve::Readiness other) const;
  // Begins to drain, and returns the time for which answers go on (serve.drain_ms). Zero, and
  // nothing begun, where there is no server.
  std::chrono::milliseconds BeginDraining();

  // Goes on with these rates of callers, with a log of answers or without, with this time to drain,
  // and with the files that are named. Those of other names are read first: where one of them is
  // bad, nothing is changed, and kInvalidArgument names what is wrong with it.
  Status Change(const config::Serve& config);

  // Reads all files again, on SIGHUP. What cannot be read stays as it was, and is logged.
  void Reload();
  // Does the same for those that have changed, about once a second.
  void Look();

 private:
  Front() = default;

  // Tells when the certificate ends; warns, once a day at most, where that is soon.
  void TellCertificate();

  std::shared_ptr<http::Callers> callers_;
  std::shared_ptr<http::Tls> tls_;
  config::TlsFiles tls_files_;
  metrics::Gauge expires_;
  std::optional<int64_t> warned_s_;
  std::unique_ptr<http::Server> server_;
  uint32_t looks_ = 0;
  std::chrono::milliseconds drain_{0};
  std::atomic<bool> draining_ = false;
};

}  // namespace tacit::daemon
