#pragma once

#include <atomic>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "http/gate.h"
#include "http/header_check.h"
#include "http/server.h"

// Private to this room: one server thread and its connections.
namespace tacit::http {

namespace asio = boost::asio;
// A socket for both TCP and UNIX addresses.
using Socket =
    asio::basic_stream_socket<asio::generic::stream_protocol, asio::io_context::executor_type>;

// State shared by all threads of one server.
struct Shared {
  Shared(ServerOptions o, metrics::Registry& metrics);
  SteadyTime Now() const { return clock->Now(); }
  // A time that is up to some milliseconds older, for timeouts: each request asks three times,
  // and the exact time costs seven times as much.
  SteadyTime About() const;

  const ServerOptions options;
  const Clock* const clock;
  std::atomic<bool> access_log;       // as in the options until it is changed
  std::atomic<bool> draining{false};  // every answer from now on closes its connection
  metrics::Gauge open_connections;
  metrics::Counter refused;  // requests that never reached a handler
};

// A listener, as its connections see it. Outlives them.
struct Door {
  Door(Role r, bool unix, Tls* t, size_t connections, BytePool& p, Hosts h)
      : role(r), is_unix(unix), tls(t), gate(connections), pool(p), hosts(std::move(h)) {}

  const Role role;
  const bool is_unix;
  Tls* const tls;  // if null, what is sent is not encrypted
  Gate gate;
  BytePool& pool;  // shared by all listeners of this role
  const Hosts hosts;
};

// One connection, as its loop sees it.
class Session {
 public:
  virtual ~Session() = default;
  virtual void Tick(SteadyTime now) = 0;  // time has passed: enforce the timeouts
  virtual void Drain() = 0;               // finish what has begun, then close
  virtual void Cut() = 0;                 // close now
};

// One thread, its event loop, handler and connections. Other threads may only post to io().
class Loop {
 public:
  explicit Loop(Shared& shared);

  // The thread's body: serves until Finish.
  void Run(const HandlerFactory& make_handler);

  asio::io_context& io() { return io_; }
  Shared& shared() { return shared_; }
  Handler& handler() { return *handler_; }
  bool draining() const { return shared_.draining.load(std::memory_order_relaxed); }
  bool finished() const { return finished_; }
  const std::string& date() const { return date_; }  // for the Date header

  void Add(Session* session) { sessions_.insert(session); }
  void Remove(Session* session) { sessions_.erase(session); }

  // Changes with each look at the timeouts. Any thread.
  uint64_t beats() const { return beats_.load(std::memory_order_relaxed); }

  void Drain();
  size_t Cut();  // returns how many connections there were
  void Finish();

 private:
  void Tick();

  Shared& shared_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  asio::steady_timer timer_{io_};
  const std::chrono::milliseconds tick_;
  std::unique_ptr<Handler> handler_;
  std::unordered_set<Session*> sessions_;
  std::string date_;
  bool finished_ = false;
  std::atomic<uint64_t> beats_{0};
};

// Serves a connection that has entered the door's gate, and leaves the gate at the end. Runs on the
// loop.
void StartSession(Loop& loop, Socket socket, Door& door);

}  // namespace tacit::http
