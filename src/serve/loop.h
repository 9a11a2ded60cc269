#pragma once

#include <atomic>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "serve/server.h"

// Private to this room: one server thread and what it serves.
namespace tacit::serve {

namespace asio = boost::asio;
using SteadyTime = std::chrono::steady_clock::time_point;
// TCP and UNIX sockets alike.
using Socket =
    asio::basic_stream_socket<asio::generic::stream_protocol, asio::io_context::executor_type>;

// Counts who is inside, so that a stop can wait for all to leave. Thread-safe.
class Gate {
 public:
  explicit Gate(size_t capacity) : capacity_(capacity) {}
  // False when it is full; then Leave must not be called.
  bool Enter();
  void Leave();
  // False at the deadline, with somebody still inside.
  bool WaitEmpty(SteadyTime deadline);

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable empty_;
  size_t inside_ = 0;
};

// What the threads of one server share.
struct Shared {
  Shared(ServerOptions o, metrics::Registry& metrics);

  const ServerOptions options;
  Gate connections;
  std::atomic<uint64_t> body_bytes{0};  // of requests being received
  std::atomic<bool> draining{false};    // every answer from now on closes its connection
  metrics::Gauge open_connections;
  metrics::Counter refused;  // requests that never reached a handler
};

// One connection, as its loop sees it.
class Session {
 public:
  virtual ~Session() = default;
  virtual void Tick(SteadyTime now) = 0;  // time has passed: enforce the timeouts
  virtual void Drain() = 0;               // finish what has begun, then close
  virtual void Cut() = 0;                 // close now
};

// One thread, its event loop, handler and connections. All but Post belongs to the thread.
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
  const std::string& date() const { return date_; }  // of the Date header

  void Add(Session* session) { sessions_.insert(session); }
  void Remove(Session* session) { sessions_.erase(session); }

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
};

// Serves a connection that has entered the gate; leaves the gate when it ends. Runs on the loop.
void StartSession(Loop& loop, Socket socket, Role role);

}  // namespace tacit::serve
