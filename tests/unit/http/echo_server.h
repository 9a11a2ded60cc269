#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "http/client.h"
#include "http/server.h"
#include "raw_connection.h"
#include "support/eventually.h"
#include "support/held_clock.h"

namespace tacit::http {

using test::Eventually;
using test::HeldClock;
using test::kPatience;

// Answers with what it saw, or with what the test says.
class EchoHandler final : public Handler {
 public:
  using Function = std::function<void(const Request&, Reply*)>;
  explicit EchoHandler(Function function) : function_(std::move(function)) {}
  void Handle(const Request& request, Reply* reply) override {
    if (function_) return function_(request, reply);
    reply->content_type = "text/plain";
    reply->body.append(request.method).append(" ").append(request.path).append("?");
    reply->body.append(request.query).append(" ").append(request.body);
    reply->body += request.role == Role::kOperator ? " operator" : " public";
  }

 private:
  Function function_;
};

inline ServerOptions OnLoopback() {
  ServerOptions options;
  options.listeners = {{"127.0.0.1:0", Role::kPublic}};
  options.hosts = {"x"};  // as raw requests here have it
  return options;
}

inline std::string SocketPath(const std::string& name) {
  return "/tmp/tacit_serve_" + std::to_string(getpid()) + "_" + name + ".sock";
}

// A server on an address the system chose. For its timeouts no time passes but what the test says.
class EchoServer {
 public:
  explicit EchoServer(ServerOptions options, EchoHandler::Function function = {}) {
    options.clock = &clock_;
    auto started = Server::Start(
        std::move(options), [function] { return std::make_unique<EchoHandler>(function); },
        registry_);
    if (started) server_ = std::move(*started);
    if (!started) error_ = started.error();
  }

  const std::string& address(size_t i = 0) const { return server_->addresses()[i]; }
  Server& operator*() { return *server_; }
  Server* operator->() { return server_.get(); }
  bool started() const { return server_ != nullptr; }
  const Error& error() const { return error_; }
  metrics::Registry& registry() { return registry_; }

  void Pass(std::chrono::milliseconds time) { clock_.Pass(time); }
  // Waits until the loop has enforced the timeouts as of now. REQUIRES one loop and no request
  // under way, or the looks are not all those of ticks.
  void AwaitTick() {
    // The first look may have been of a tick that had begun before; the third is behind the whole
    // of the second.
    const int64_t before = clock_.looks();
    EXPECT_TRUE(Eventually("the loop ticks", [&] { return clock_.looks() >= before + 3; }));
  }

 private:
  HeldClock clock_;
  metrics::Registry registry_;
  std::unique_ptr<Server> server_;
  Error error_;
};

}  // namespace tacit::http
