#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "metrics/registry.h"
#include "serve/http.h"

namespace tacit::serve {

struct Listener {
  std::string address;  // "127.0.0.1:8980", "[::1]:0", "localhost:80", "unix:/path"
  Role role = Role::kPublic;
};

struct ServerOptions {
  std::vector<Listener> listeners;
  uint32_t threads = 1;
  uint32_t max_connections = 1024;                 // one more is answered 503 and closed
  uint32_t max_header_bytes = 16 << 10;            // 431
  uint32_t max_body_bytes = 8 << 20;               // 413
  uint64_t max_body_bytes_total = 64 << 20;        // of all requests being received together; 503
  std::chrono::milliseconds idle_timeout{30'000};  // between requests
  std::chrono::milliseconds request_timeout{10'000};  // first to last byte of a request; 408
  std::chrono::milliseconds write_timeout{30'000};    // a reader that does not take its answer
};

// An HTTP/1.1 server: keep-alive, pipelining, limits on everything. Each thread has its own event
// loop and connections. Knows nothing of what is served.
class Server {
 public:
  // Binds every address, then starts the threads. kUnavailable: an address is in use;
  // kInvalidArgument: it cannot be one; kIo: the system refused. The message names it.
  // `metrics` outlives the server.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options, HandlerFactory make_handler,
                                               metrics::Registry& metrics);
  virtual ~Server() = default;  // as Stop(0)

  // The addresses really bound, as in the options but with the port chosen for ":0".
  virtual const std::vector<std::string>& addresses() const = 0;

  // Stops accepting, closes idle connections, lets requests in flight finish, closes the rest at
  // the deadline. Returns the number of connections that were cut. A handler is never interrupted:
  // one that runs past the deadline is waited for. Later calls do nothing and return 0.
  virtual size_t Stop(std::chrono::milliseconds deadline) = 0;
};

}  // namespace tacit::serve
