#include "serve/client.h"

#include <fmt/format.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <limits>

#include "serve/address.h"

namespace tacit::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Protocol = asio::generic::stream_protocol;

// Runs one exchange as a chain of callbacks, so that a single run_for limits all of it.
class Exchange {
 public:
  Exchange(const Url& url, const std::string& method, std::string_view body);

  Result<Response> Run(std::chrono::milliseconds timeout);

 private:
  void Connect(Protocol::endpoint endpoint);
  void Write();
  void Read();
  tl::unexpected<Error> Failure() const;

  const Url& url_;
  asio::io_context io_{1};
  Protocol::socket socket_{io_};
  http::request<http::string_body> request_;
  http::response_parser<http::string_body> parser_;
  beast::flat_buffer buffer_;
  error_code error_ = asio::error::timed_out;  // until the chain has ended
};

Exchange::Exchange(const Url& url, const std::string& method, std::string_view body) : url_(url) {
  request_.version(11);
  request_.method_string(method);
  request_.target(url.target);
  const Address& address = url.address;
  request_.set(http::field::host, address.is_unix() ? "localhost" : address.ToString());
  request_.set(http::field::connection, "close");
  if (!body.empty()) request_.set(http::field::content_type, "application/json");
  request_.body() = body;
  request_.prepare_payload();
  parser_.body_limit(std::numeric_limits<uint64_t>::max());
  if (method == "HEAD") parser_.skip(true);
}

void Exchange::Connect(Protocol::endpoint endpoint) {
  socket_.async_connect(endpoint, [this](error_code error) {
    error_ = error;
    if (!error) Write();
  });
}

void Exchange::Write() {
  error_ = asio::error::timed_out;
  // A server may refuse a request before it has read all of it; the client still reads the answer.
  http::async_write(socket_, request_, [this](error_code, size_t) { Read(); });
}

void Exchange::Read() {
  http::async_read(socket_, buffer_, parser_, [this](error_code error, size_t) { error_ = error; });
}

tl::unexpected<Error> Exchange::Failure() const {
  const bool is_http =
      error_.category() == http::make_error_code(http::error::bad_value).category();
  const bool closed = error_ == http::error::end_of_stream;
  return Fail(is_http && !closed ? ErrorCode::kIo : ErrorCode::kUnavailable,
              fmt::format("{}: {}", url_.address.ToString(), error_.message()));
}

Result<Response> Exchange::Run(std::chrono::milliseconds timeout) {
  const Address& address = url_.address;
  if (address.is_unix()) {
    Connect(asio::local::stream_protocol::endpoint(address.unix_path));
  } else {
    asio::ip::tcp::resolver resolver(io_);
    const auto found = resolver.resolve(address.host, std::to_string(address.port), error_);
    if (error_ || found.empty()) return Failure();
    Connect(found.begin()->endpoint());
  }
  error_ = asio::error::timed_out;
  io_.run_for(timeout);
  if (error_) return Failure();
  Response response;
  const auto& message = parser_.get();
  response.status = message.result_int();
  response.body = message.body();
  for (const auto& field : message)
    response.headers.emplace_back(field.name_string(), field.value());
  return response;
}

}  // namespace

std::string_view Response::Header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (beast::iequals({key.data(), key.size()}, {name.data(), name.size()})) return value;
  return {};
}

Result<Response> Fetch(const std::string& url, const std::string& method, std::string_view body,
                       std::chrono::milliseconds timeout) {
  TACIT_ASSIGN(const Url parsed, ParseUrl(url));
  try {
    return Exchange(parsed, method, body).Run(timeout);
  } catch (const std::exception& e) {  // Asio without descriptors, a method that is no token
    return Fail(ErrorCode::kInternal, fmt::format("{}: {}", url, e.what()));
  }
}

std::string JoinUrl(std::string_view base, std::string_view path) {
  while (base.ends_with('/')) base.remove_suffix(1);
  // unix:/socket/path takes a colon before the request's path.
  const bool is_unix = base.starts_with("unix:");
  if (is_unix && base.ends_with(':')) base.remove_suffix(1);
  const bool is_bare_unix = is_unix && base.find(":/", 5) == base.npos;
  return fmt::format("{}{}{}", base, is_bare_unix ? ":" : "", path);
}

}  // namespace tacit::serve
