#include "http/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>

#include "base/check.h"
#include "base/files/log.h"
#include "base/files/unique_fd.h"
#include "base/threads/named_thread.h"
#include "http/address.h"
#include "http/loop.h"

namespace tacit::http {
namespace {

using boost::system::error_code;
using Protocol = asio::generic::stream_protocol;
using Acceptor = asio::basic_socket_acceptor<Protocol, asio::io_context::executor_type>;

tl::unexpected<Error> ListenError(const Address& address, const error_code& error) {
  ErrorCode code = ErrorCode::kIo;
  if (error == asio::error::address_in_use) code = ErrorCode::kUnavailable;
  if (error == boost::system::errc::address_not_available) code = ErrorCode::kInvalidArgument;
  return Fail(code, fmt::format("cannot listen on {}: {}", address.ToString(), error.message()));
}

Result<Protocol::endpoint> EndpointOf(asio::io_context& io, const Address& address) {
  if (address.is_unix())
    return Protocol::endpoint(asio::local::stream_protocol::endpoint(address.unix_path));
  error_code error;
  asio::ip::tcp::resolver resolver(io);
  const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                      asio::ip::tcp::resolver::numeric_service, error);
  if (error || found.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("cannot listen on {}: the host is not known", address.ToString()));
  return Protocol::endpoint(found.begin()->endpoint());
}

// Removes a socket file on which no process answers: a process that died left it. The probe does
// not wait: a listener whose backlog is full is there, however long it leaves callers waiting.
void RemoveStaleSocket(const Protocol::endpoint& endpoint, const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (probe.get() < 0) return;
  if (::connect(probe.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 &&
      errno == ECONNREFUSED)
    ::unlink(path.c_str());
}

// The threads that serve a role's connections, and the memory that those connections share.
struct Lane {
  explicit Lane(uint64_t bytes) : pool(bytes) {}

  BytePool pool;
  std::vector<std::unique_ptr<Loop>> loops;
  size_t next_loop = 0;
};

// One listening socket. Its callbacks run on its lane's first loop.
struct Listening {
  Listening(Lane& l, Address a)
      : lane(l),
        acceptor(l.loops.front()->io()),
        pause(l.loops.front()->io()),
        address(std::move(a)) {}

  ~Listening() {
    if (bound && address.is_unix()) ::unlink(address.unix_path.c_str());
  }

  Status Open();
  void Close();

  Lane& lane;
  Acceptor acceptor;
  asio::steady_timer pause;
  Address address;
  Door* door = nullptr;
  bool bound = false;
};

// Opens the socket to everybody in its group, under any umask of the process. If a link to another
// file replaced it between bind and here, chmod does not follow the link. No client can connect
// before listen.
Status OpenToGroup(const Address& address) {
  if (::fchmodat(AT_FDCWD, address.unix_path.c_str(), 0660, AT_SYMLINK_NOFOLLOW) == 0) return {};
  return ListenError(address, error_code(errno, boost::system::system_category()));
}

Status Listening::Open() {
  asio::io_context& io = lane.loops.front()->io();
  TACIT_ASSIGN(const Protocol::endpoint endpoint, EndpointOf(io, address));
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (error) return ListenError(address, error);
  if (address.is_unix()) {
    RemoveStaleSocket(endpoint, address.unix_path);
    // bind creates the socket file with this mode at most, further cut by the umask.
    if (::fchmod(acceptor.native_handle(), 0600) != 0)
      return ListenError(address, error_code(errno, boost::system::system_category()));
  } else {
    acceptor.set_option(asio::socket_base::reuse_address(true), error);
  }
  acceptor.bind(endpoint, error);
  bound = !error;
  if (bound && address.is_unix()) TACIT_RETURN_IF_ERROR(OpenToGroup(address));
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return ListenError(address, error);
  if (address.is_unix()) return {};
  const Protocol::endpoint bound = acceptor.local_endpoint(error);
  if (error) return ListenError(address, error);
  asio::ip::tcp::endpoint tcp;
  TACIT_CHECK(bound.size() <= tcp.capacity());
  std::memcpy(tcp.data(), bound.data(), bound.size());
  address.port = tcp.port();
  return {};
}

void Listening::Close() {
  error_code ignored;
  acceptor.close(ignored);
  pause.cancel();
}

// Answers a connection over the limit with 503, without waiting for anything, and closes it.
// Returns the length of the answer's body.
size_t TurnAway(Socket socket) {
  Reply reply;
  SetError(503, "too many connections at once", &reply);
  const std::string answer = fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
      "Retry-After: 1\r\nConnection: close\r\n\r\n{}",
      reply.content_type, reply.body.size(), reply.body);
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.send(asio::buffer(answer), 0, ignored);
  socket.shutdown(Socket::shutdown_send, ignored);
  char unread[4096];  // closing on unread bytes would reset the connection
  socket.receive(asio::buffer(unread), 0, ignored);
  return reply.body.size();
}

class AsioServer final : public Server {
 public:
  AsioServer(ServerOptions options, HandlerFactory make_handler, metrics::Registry& metrics);
  ~AsioServer() override { Stop(std::chrono::milliseconds(0)); }

  Status Open();
  void Run();
  const std::vector<std::string>& addresses() const override { return addresses_; }
  uint64_t held_bytes(Role role) const override {
    return (role == Role::kOperator ? operators_ : public_).pool.held();
  }
  std::vector<uint64_t> beats() const override {
    std::vector<uint64_t> beats;
    for (const Lane* lane : {&public_, &operators_})
      for (const auto& loop : lane->loops) beats.push_back(loop->beats());
    return beats;
  }
  void SetAccessLog(bool on) override { shared_.access_log = on; }
  size_t Stop(std::chrono::milliseconds deadline) override;

 private:
  Lane& LaneOf(Role role) { return role == Role::kOperator ? operators_ : public_; }
  Door& MakeDoor(const Listening& listening, Role role);
  void Accept(Listening& listening);
  void OnAccept(Loop& loop, Door& door, Socket socket);
  // Calls `post` with each loop.
  template <class Post>
  void ForEachLoop(Post post) {
    for (Lane* lane : {&public_, &operators_})
      for (auto& loop : lane->loops) post(*loop);
  }

  Shared shared_;
  const HandlerFactory make_handler_;
  std::deque<Door> doors_;  // before the loops: sessions refer to them
  Lane public_, operators_;
  std::vector<std::unique_ptr<Listening>> listening_;
  std::vector<std::string> addresses_;
  std::vector<std::thread> threads_;
};

AsioServer::AsioServer(ServerOptions options, HandlerFactory make_handler,
                       metrics::Registry& metrics)
    : shared_(std::move(options), metrics),
      make_handler_(std::move(make_handler)),
      public_(shared_.options.max_held_bytes),
      operators_(shared_.options.max_operator_held_bytes) {
  for (const Listener& listener : shared_.options.listeners) {
    Lane& lane = LaneOf(listener.role);
    const uint32_t threads = listener.role == Role::kOperator ? 1 : shared_.options.threads;
    while (lane.loops.size() < threads) lane.loops.push_back(std::make_unique<Loop>(shared_));
  }
}

Door& AsioServer::MakeDoor(const Listening& listening, Role role) {
  const ServerOptions& options = shared_.options;
  std::vector<std::string> hosts = options.hosts;
  hosts.push_back(listening.address.host);
  return doors_.emplace_back(
      role, listening.address.is_unix(), listening.address.is_unix() ? nullptr : options.tls.get(),
      role == Role::kOperator ? options.max_operator_connections : options.max_connections,
      LaneOf(role).pool, Hosts(std::move(hosts)));
}

Status AsioServer::Open() {
  for (const Listener& listener : shared_.options.listeners) {
    TACIT_ASSIGN(Address address, ParseAddress(listener.address));
    auto listening = std::make_unique<Listening>(LaneOf(listener.role), std::move(address));
    TACIT_RETURN_IF_ERROR(listening->Open());
    listening->door = &MakeDoor(*listening, listener.role);
    addresses_.push_back(listening->address.ToString());
    listening_.push_back(std::move(listening));
  }
  return {};
}

void AsioServer::Run() {
  for (auto& listening : listening_) Accept(*listening);
  ForEachLoop([this](Loop& loop) {
    threads_.push_back(NamedThread("tacit-http", [this, &loop] { loop.Run(make_handler_); }));
  });
}

// Assigns connections to the loops in turn.
void AsioServer::Accept(Listening& listening) {
  Lane& lane = listening.lane;
  Loop& loop = *lane.loops[lane.next_loop++ % lane.loops.size()];
  // The accept handler runs on the listener's loop; the socket belongs to its own.
  listening.acceptor.async_accept(
      loop.io(), [this, &listening, &loop](const error_code& error, Socket socket) {
        // The listener was closed meanwhile; another accept would fail and repeat forever.
        if (error == asio::error::operation_aborted || (error && !listening.acceptor.is_open()))
          return;
        if (error) {  // no file descriptors left, most likely: let some be closed
          listening.pause.expires_after(std::chrono::milliseconds(100));
          listening.pause.async_wait([this, &listening](const error_code& cancelled) {
            if (!cancelled && listening.acceptor.is_open()) Accept(listening);
          });
          return;
        }
        OnAccept(loop, *listening.door, std::move(socket));
        if (listening.acceptor.is_open()) Accept(listening);
      });
}

void AsioServer::OnAccept(Loop& loop, Door& door, Socket socket) {
  if (!door.gate.Enter()) {
    shared_.refused.Add();
    if (door.tls != nullptr) return;  // it is closed: no words without keys
    const size_t bytes = TurnAway(std::move(socket));
    // Nothing of the request was read, so it has no ids.
    if (shared_.access_log.load(std::memory_order_relaxed))
      spdlog::info("access: {} - - 503 0 bytes in, {} bytes out, 0.000 ms, id -, trace -",
                   door.role == Role::kOperator ? "operator" : "public", bytes);
    return;
  }
  error_code ignored;
  if (!door.is_unix) socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  asio::post(loop.io(), [&loop, &door, socket = std::move(socket)]() mutable {
    StartSession(loop, std::move(socket), door);
  });
}

size_t AsioServer::Stop(std::chrono::milliseconds deadline) {
  if (threads_.empty()) return 0;
  const SteadyTime until = std::chrono::steady_clock::now() + deadline;
  shared_.draining = true;
  for (auto& listening : listening_)
    asio::post(listening->lane.loops.front()->io(), [&listening] { listening->Close(); });
  ForEachLoop([](Loop& loop) { asio::post(loop.io(), [&loop] { loop.Drain(); }); });
  for (Door& door : doors_) door.gate.WaitEmpty(until);
  std::atomic<size_t> cut{0};
  ForEachLoop([&cut](Loop& loop) {
    asio::post(loop.io(), [&loop, &cut] {
      cut += loop.Cut();
      loop.Finish();
    });
  });
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  listening_.clear();
  return cut;
}

}  // namespace

bool IsLocalAddress(std::string_view address) {
  const auto parsed = ParseAddress(address);
  return parsed && parsed->is_local();
}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options, HandlerFactory make_handler,
                                              metrics::Registry& metrics) {
  TACIT_CHECK(options.threads > 0 && !options.listeners.empty() && make_handler);
  try {
    auto server =
        std::make_unique<AsioServer>(std::move(options), std::move(make_handler), metrics);
    TACIT_RETURN_IF_ERROR(server->Open());
    server->Run();
    return server;
  } catch (const boost::system::system_error& e) {
    return Fail(ErrorCode::kIo, fmt::format("cannot start the HTTP server: {}", e.what()));
  }
}

}  // namespace tacit::http
