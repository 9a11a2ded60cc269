#include "http/client.h"

#include <fmt/format.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <memory>
#include <type_traits>

#include "http/address.h"

namespace tacit::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
namespace ssl = asio::ssl;
using Protocol = asio::generic::stream_protocol;
using PlainClient = Protocol::socket;
using TlsClient = beast::ssl_stream<Protocol::socket>;

PlainClient& SocketIn(PlainClient& stream) { return stream; }
PlainClient& SocketIn(TlsClient& stream) { return stream.next_layer(); }

// Runs one exchange as a chain of callbacks, so that a single run_for limits all of it.
template <class Stream>
class Exchange {
 public:
  // `more` is what the stream needs besides its loop.
  template <class... More>
  Exchange(const Url& url, const std::string& method, std::string_view body,
           const FieldList& fields, More&... more);

  Result<Response> Run(std::chrono::milliseconds timeout);

 private:
  void Connect(const Protocol::endpoint& endpoint);
  void Agree();
  void Write();
  void Read();
  tl::unexpected<Error> Failure() const;

  const Url& url_;
  asio::io_context io_{1};
  Stream stream_;
  http::request<http::string_body> request_;
  http::response_parser<http::string_body> parser_;
  beast::flat_buffer buffer_;
  error_code error_ = asio::error::timed_out;  // until the chain has ended
};

template <class Stream>
template <class... More>
Exchange<Stream>::Exchange(const Url& url, const std::string& method, std::string_view body,
                           const FieldList& fields, More&... more)
    : url_(url), stream_(io_, more...) {
  request_.version(11);
  request_.method_string(method);
  request_.target(url.target);
  const Address& address = url.address;
  request_.set(http::field::host, address.is_unix() ? "localhost" : address.ToString());
  request_.set(http::field::connection, "close");
  if (!body.empty()) request_.set(http::field::content_type, "application/json");
  for (const auto& [name, value] : fields) request_.set(name, value);
  request_.body() = body;
  request_.prepare_payload();
  parser_.body_limit(kAnswerBytesMost);
  if (method == "HEAD") parser_.skip(true);
}

template <class Stream>
void Exchange<Stream>::Connect(const Protocol::endpoint& endpoint) {
  SocketIn(stream_).async_connect(endpoint, [this](error_code error) {
    error_ = error;
    if (!error) Agree();
  });
}

// Agrees on keys, where the stream has any.
template <class Stream>
void Exchange<Stream>::Agree() {
  if constexpr (std::is_same_v<Stream, PlainClient>) {
    Write();
  } else {
    error_ = asio::error::timed_out;
    // A server is asked for by its name; an address has none (RFC 6066, 3).
    SSL_set_tlsext_host_name(stream_.native_handle(), url_.address.host.c_str());
    stream_.set_verify_callback(ssl::host_name_verification(url_.address.host));
    stream_.async_handshake(ssl::stream_base::client, [this](error_code error) {
      error_ = error;
      if (!error) Write();
    });
  }
}

template <class Stream>
void Exchange<Stream>::Write() {
  error_ = asio::error::timed_out;
  // A server may refuse a request before it has read all of it; the client still reads the answer.
  http::async_write(stream_, request_, [this](error_code, size_t) { Read(); });
}

template <class Stream>
void Exchange<Stream>::Read() {
  http::async_read(stream_, buffer_, parser_, [this](error_code error, size_t) { error_ = error; });
}

template <class Stream>
tl::unexpected<Error> Exchange<Stream>::Failure() const {
  if (error_ == http::error::body_limit)
    return Fail(ErrorCode::kIo,
                fmt::format("{}: its answer is larger than {} MiB, which no answer of tacitd is: "
                            "is this the address of one?",
                            url_.address.ToString(), kAnswerBytesMost >> 20));
  const bool is_http =
      error_.category() == http::make_error_code(http::error::bad_value).category();
  const bool closed = error_ == http::error::end_of_stream;
  const bool is_tls = error_.category() == asio::error::get_ssl_category() ||
                      error_ == ssl::error::stream_truncated;
  return Fail((is_http && !closed) || is_tls ? ErrorCode::kIo : ErrorCode::kUnavailable,
              fmt::format("{}: {}", url_.address.ToString(), error_.message()));
}

template <class Stream>
Result<Response> Exchange<Stream>::Run(std::chrono::milliseconds timeout) {
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

// A client's context: whom it trusts, and what it shows. Fails with the file that cannot be used.
Result<std::unique_ptr<ssl::context>> MakeClientContext(const ClientTls& tls) {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  error_code error;
  const auto use = [&](const std::string& path, auto&& load) -> Status {
    if (path.empty()) return {};
    load();
    if (!error) return {};
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, error.message()));
  };
  context->set_verify_mode(ssl::verify_peer);
  if (tls.ca_file.empty()) context->set_default_verify_paths();
  TACIT_RETURN_IF_ERROR(use(tls.ca_file, [&] { context->load_verify_file(tls.ca_file, error); }));
  TACIT_RETURN_IF_ERROR(
      use(tls.certificate, [&] { context->use_certificate_chain_file(tls.certificate, error); }));
  TACIT_RETURN_IF_ERROR(
      use(tls.key, [&] { context->use_private_key_file(tls.key, ssl::context::pem, error); }));
  return context;
}

}  // namespace

std::string_view Response::Header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (beast::iequals({key.data(), key.size()}, {name.data(), name.size()})) return value;
  return {};
}

Result<Response> Fetch(const std::string& url, const std::string& method, std::string_view body,
                       std::chrono::milliseconds timeout, const FieldList& fields,
                       const ClientTls& tls) {
  TACIT_ASSIGN(const Url parsed, ParseUrl(url));
  try {
    if (!parsed.tls) return Exchange<PlainClient>(parsed, method, body, fields).Run(timeout);
    TACIT_ASSIGN(const auto context, MakeClientContext(tls));
    return Exchange<TlsClient>(parsed, method, body, fields, *context).Run(timeout);
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

}  // namespace tacit::http
