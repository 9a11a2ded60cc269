#include "serve/server.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "serve/address.h"
#include "serve/loop.h"

namespace tacit::serve {
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

// A socket file that nobody answers on was left by a process that died.
void RemoveStaleSocket(asio::io_context& io, const Address& address) {
  struct stat info {};
  if (::stat(address.unix_path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  asio::local::stream_protocol::socket probe(io);
  error_code error;
  probe.connect(asio::local::stream_protocol::endpoint(address.unix_path), error);
  if (error == asio::error::connection_refused) ::unlink(address.unix_path.c_str());
}

// One listening socket. Its callbacks run on the first loop.
struct Listening {
  Listening(asio::io_context& io, Address a, Role r)
      : acceptor(io), pause(io), address(std::move(a)), role(r) {}

  ~Listening() {
    if (bound && address.is_unix()) ::unlink(address.unix_path.c_str());
  }

  Status Open(asio::io_context& io);
  void Close();

  Acceptor acceptor;
  asio::steady_timer pause;
  Address address;
  const Role role;
  bool bound = false;
};

Status Listening::Open(asio::io_context& io) {
  TACIT_ASSIGN(const Protocol::endpoint endpoint, EndpointOf(io, address));
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (error) return ListenError(address, error);
  if (address.is_unix()) {
    RemoveStaleSocket(io, address);
    // Before bind, so that there is no moment at which others may connect.
    if (::fchmod(acceptor.native_handle(), 0660) != 0)
      return ListenError(address, error_code(errno, boost::system::system_category()));
  } else {
    acceptor.set_option(asio::socket_base::reuse_address(true), error);
  }
  acceptor.bind(endpoint, error);
  bound = !error;
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

// Tells a connection over the limit so, without waiting for anything, and closes it.
void TurnAway(Socket socket) {
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
}

class AsioServer final : public Server {
 public:
  AsioServer(ServerOptions options, HandlerFactory make_handler, metrics::Registry& metrics);
  ~AsioServer() override { Stop(std::chrono::milliseconds(0)); }

  Status Open();
  void Run();
  const std::vector<std::string>& addresses() const override { return addresses_; }
  size_t Stop(std::chrono::milliseconds deadline) override;

 private:
  void Accept(Listening& listening);
  void OnAccept(Loop& loop, Role role, bool is_unix, Socket socket);

  Shared shared_;
  const HandlerFactory make_handler_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<std::unique_ptr<Listening>> listening_;
  std::vector<std::string> addresses_;
  std::vector<std::thread> threads_;
  size_t next_loop_ = 0;
};

AsioServer::AsioServer(ServerOptions options, HandlerFactory make_handler,
                       metrics::Registry& metrics)
    : shared_(std::move(options), metrics), make_handler_(std::move(make_handler)) {
  for (uint32_t i = 0; i < shared_.options.threads; ++i)
    loops_.push_back(std::make_unique<Loop>(shared_));
}

Status AsioServer::Open() {
  asio::io_context& io = loops_.front()->io();
  for (const Listener& listener : shared_.options.listeners) {
    TACIT_ASSIGN(Address address, ParseAddress(listener.address));
    auto listening = std::make_unique<Listening>(io, std::move(address), listener.role);
    TACIT_RETURN_IF_ERROR(listening->Open(io));
    addresses_.push_back(listening->address.ToString());
    listening_.push_back(std::move(listening));
  }
  return {};
}

void AsioServer::Run() {
  for (auto& listening : listening_) Accept(*listening);
  for (auto& loop : loops_) {
    threads_.emplace_back([this, &loop] { loop->Run(make_handler_); });
    pthread_setname_np(threads_.back().native_handle(), "tacit-http");
  }
}

// Connections go to the loops in turn.
void AsioServer::Accept(Listening& listening) {
  Loop& loop = *loops_[next_loop_++ % loops_.size()];
  // The handler runs on the listener's loop, the socket belongs to its own.
  listening.acceptor.async_accept(
      loop.io(), [this, &listening, &loop](const error_code& error, Socket socket) {
        // Closed while this was on its way: whoever asked again would ask for ever.
        if (error == asio::error::operation_aborted || (error && !listening.acceptor.is_open()))
          return;
        if (error) {  // no file descriptors left, most likely: let some be closed
          listening.pause.expires_after(std::chrono::milliseconds(100));
          listening.pause.async_wait([this, &listening](const error_code& cancelled) {
            if (!cancelled && listening.acceptor.is_open()) Accept(listening);
          });
          return;
        }
        OnAccept(loop, listening.role, listening.address.is_unix(), std::move(socket));
        if (listening.acceptor.is_open()) Accept(listening);
      });
}

void AsioServer::OnAccept(Loop& loop, Role role, bool is_unix, Socket socket) {
  if (!shared_.connections.Enter()) {
    shared_.refused.Add();
    return TurnAway(std::move(socket));
  }
  error_code ignored;
  if (!is_unix) socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  asio::post(loop.io(), [&loop, role, socket = std::move(socket)]() mutable {
    StartSession(loop, std::move(socket), role);
  });
}

size_t AsioServer::Stop(std::chrono::milliseconds deadline) {
  if (threads_.empty()) return 0;
  const SteadyTime until = std::chrono::steady_clock::now() + deadline;
  shared_.draining = true;
  asio::post(loops_.front()->io(), [this] {
    for (auto& listening : listening_) listening->Close();
  });
  for (auto& loop : loops_) asio::post(loop->io(), [&loop] { loop->Drain(); });
  shared_.connections.WaitEmpty(until);
  std::atomic<size_t> cut{0};
  for (auto& loop : loops_)
    asio::post(loop->io(), [&loop, &cut] {
      cut += loop->Cut();
      loop->Finish();
    });
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  listening_.clear();
  return cut;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options, HandlerFactory make_handler,
                                              metrics::Registry& metrics) {
  TACIT_CHECK(options.threads > 0 && make_handler);
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

}  // namespace tacit::serve
