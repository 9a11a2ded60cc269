#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/callers.h"
#include "http/http.h"
#include "metrics/registry.h"

namespace tacit::http {

struct Listener {
  std::string address;  // "127.0.0.1:8980", "[::1]:0", "localhost:80", "unix:/path"
  Role role = Role::kPublic;
};

// The files of TLS, in PEM.
struct TlsFiles {
  std::string certificate;     // and those that it hangs on, behind it
  std::string key;             // without a passphrase; closed to others
  std::string client_ca = {};  // signs clients' certificates; if empty, none is asked for
};

// TLS at the TCP listeners. Its files are read again while connections go on. Thread-safe.
class Tls {
 public:
  // kInvalidArgument names the key of the configuration, the file, and what is wrong: it cannot be
  // read, is no PEM, has expired, or is not the certificate's key.
  static Result<std::shared_ptr<Tls>> Open(TlsFiles files);
  virtual ~Tls() = default;

  // Reads all files again, for connections from then on. After a failure all is as before.
  virtual Status Reload() = 0;
  // Does the same if one of them has changed since. Returns true if so.
  virtual Result<bool> ReloadIfChanged() = 0;
  // Goes on as `other`, which nobody uses: with its files, and what was read of them.
  virtual void TakeOver(const Tls& other) = 0;
  // The Unix time at which the first of the certificates ends.
  virtual int64_t expires_s() const = 0;
};

// The bytes of a connection, for plans of memory: its read buffer, the unsent rest of its last
// answer and its state.
inline constexpr uint64_t kConnectionBytes = 16 << 10;

struct ServerOptions {
  std::vector<Listener> listeners;
  uint32_t threads = 1;  // for the public's listeners; the operator's share one more
  // Limits per listener; a further connection is answered 503 and closed.
  uint32_t max_connections = 1024;
  uint32_t max_operator_connections = 64;
  uint32_t max_header_bytes = 16 << 10;  // chunks' extensions and trailers among them; 431
  uint32_t max_body_bytes = 8 << 20;     // 413
  // Memory for requests being received and answers being sent, shared by the public's listeners and
  // by the operator's; 503 beyond it.
  uint64_t max_held_bytes = 64 << 20;
  uint64_t max_operator_held_bytes = 16 << 20;
  std::chrono::milliseconds idle_timeout{30'000};     // between requests
  std::chrono::milliseconds request_timeout{10'000};  // first to last byte of a request; 408
  std::chrono::milliseconds write_timeout{30'000};    // for a client that does not read its answer
  // The least rate of a request while more than half of max_held_bytes is held; 408 below it.
  uint32_t min_bytes_a_second = 16 << 10;
  // Names that TCP listeners answer to besides loopback names, numeric addresses and the listener's
  // own host; ".example.org" means all names below it, "any" means all. A request for another name
  // is answered 421.
  std::vector<std::string> hosts = {};
  // The callers that are answered, by their tokens; if null, everybody is. Read again by whom it
  // belongs to, at any time.
  std::shared_ptr<const Callers> callers = {};
  // TLS for TCP listeners; null if none. UNIX sockets have none.
  std::shared_ptr<Tls> tls = {};
  // Logs a line for each answer: method, route, status, bytes and time, and the ids that the
  // request came with; nothing of what was asked or answered.
  bool access_log = false;
  const Clock* clock = nullptr;  // for the timeouts; outlives the server; if null, the system's
};

// Returns true if only this machine can reach a listener's address.
bool IsLocalAddress(std::string_view address);

// An HTTP/1.1 server: keep-alive, pipelining, limits on everything. Each thread has its own event
// loop and connections. The public's listeners share only the process with the operator's: neither
// threads, nor connection limits, nor memory for requests. So an answer to the operator never waits
// for one to the public. The server knows nothing of what it serves.
class Server {
 public:
  // Binds every address, then starts the threads. kUnavailable: an address is in use;
  // kInvalidArgument: it is not an address; kIo: the system refused. The message names it.
  // `metrics` outlives the server.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options, HandlerFactory make_handler,
                                               metrics::Registry& metrics);
  virtual ~Server() = default;  // as Stop(0)

  // The addresses bound: as in the options, but with the port chosen for ":0".
  virtual const std::vector<std::string>& addresses() const = 0;

  // The memory that requests and answers of the listeners of `role` hold now. Any thread.
  virtual uint64_t held_bytes(Role role) const = 0;

  // A number for each thread, which changes at least twice a second while it answers. Any thread.
  virtual std::vector<uint64_t> beats() const = 0;

  // Logs answers from now on, or does not (ServerOptions::access_log). Any thread.
  virtual void SetAccessLog(bool on) = 0;

  // Stops accepting, closes idle connections, lets requests in flight finish, and closes the rest
  // at the deadline. Returns the number of connections cut. A handler is never interrupted: Stop
  // waits for one that runs past the deadline. Later calls do nothing and return 0.
  virtual size_t Stop(std::chrono::milliseconds deadline) = 0;
};

}  // namespace tacit::http
