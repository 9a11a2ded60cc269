#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "raw_connection.h"
#include "serve/client.h"
#include "serve/server.h"

namespace tacit::serve {

constexpr std::chrono::milliseconds kPatience{10'000};

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
  return options;
}

inline std::string SocketPath(const std::string& name) {
  return "/tmp/tacit_serve_" + std::to_string(getpid()) + "_" + name + ".sock";
}

// A server on an address the system chose.
class EchoServer {
 public:
  explicit EchoServer(ServerOptions options, EchoHandler::Function function = {}) {
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

 private:
  metrics::Registry registry_;
  std::unique_ptr<Server> server_;
  Error error_;
};

}  // namespace tacit::serve
