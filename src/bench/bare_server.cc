#include "bench/bare_server.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <thread>
#include <utility>

namespace tacit::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using BareSocket = asio::basic_stream_socket<Tcp, asio::io_context::executor_type>;
using BareAcceptor = asio::basic_socket_acceptor<Tcp, asio::io_context::executor_type>;

// Runs the same kind of loop as http's sessions, with Beast's own functions.
class BareSession : public std::enable_shared_from_this<BareSession> {
 public:
  BareSession(BareSocket socket, const std::string& answer)
      : socket_(std::move(socket)), answer_(answer) {}

  void Read() {
    parser_.emplace();
    beast::http::async_read(socket_, buffer_, *parser_,
                            [self = shared_from_this()](error_code error, size_t) {
                              if (!error) self->Write();
                            });
  }

 private:
  void Write() {
    asio::async_write(socket_, asio::buffer(answer_),
                      [self = shared_from_this()](error_code error, size_t) {
                        if (!error) self->Read();
                      });
  }

  BareSocket socket_;
  const std::string& answer_;
  beast::flat_buffer buffer_;
  std::optional<beast::http::request_parser<beast::http::string_body>> parser_;
};

class AsioBareServer final : public BareServer {
 public:
  explicit AsioBareServer(const std::string& body)
      : answer_(fmt::format("HTTP/1.1 200 OK\r\nServer: bare\r\nContent-Type: application/json\r\n"
                            "Content-Length: {}\r\n\r\n{}",
                            body.size(), body)),
        acceptor_(io_, Tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    Accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~AsioBareServer() override {
    io_.stop();
    thread_.join();
  }

  uint16_t port() const override { return acceptor_.local_endpoint().port(); }

 private:
  void Accept() {
    acceptor_.async_accept(io_, [this](error_code error, BareSocket socket) {
      if (error) return;
      if (socket.set_option(Tcp::no_delay(true), error)) return;
      std::make_shared<BareSession>(std::move(socket), answer_)->Read();
      Accept();
    });
  }

  const std::string answer_;
  asio::io_context io_{1};
  BareAcceptor acceptor_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<BareServer>> BareServer::Start(const std::string& body) {
  try {
    return std::make_unique<AsioBareServer>(body);
  } catch (const boost::system::system_error& e) {
    return Fail(ErrorCode::kIo, fmt::format("cannot start a bare server: {}", e.what()));
  }
}

}  // namespace tacit::bench
