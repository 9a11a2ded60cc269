#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <iterator>
#include <optional>

#include "base/log.h"
#include "serve/loop.h"

namespace tacit::serve {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr size_t kReadBytes = 8 << 10;
constexpr size_t kBodyReadBytes = 64 << 10;
constexpr size_t kInlineBody = 16 << 10;  // bodies up to here are sent from one buffer
constexpr std::chrono::milliseconds kLingerTimeout{1000};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

// One HTTP/1.1 connection: receive, handle, send, and again. Kept alive by its pending operation,
// of which there is at most one.
class HttpSession final : public Session, public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(Loop& loop, Socket socket, Role role);
  ~HttpSession() override;

  void BeginRequest();
  void Tick(SteadyTime now) override;
  void Drain() override;
  void Cut() override;

 private:
  // kIdle: waiting for the first byte of a request. kLingering: the answer is sent and the rest of
  // what the client sends is thrown away, because closing on unread bytes would reset the
  // connection and could lose the answer.
  enum class State { kIdle, kReceiving, kSending, kLingering };

  void Enter(State state);
  void Read();
  void OnRead(error_code error, size_t bytes);
  void Parse();
  bool ParseSome();
  bool CheckHeader();
  bool ChargeBody();
  void SendContinue();
  void Answer();
  void Refuse(uint32_t status, std::string_view message);
  void Send(bool head_only, bool keep_alive);
  void OnSent(error_code error, bool keep_alive);
  void Linger();
  void RenderHead(bool keep_alive, bool is_http10);

  using Parser = http::request_parser<http::string_body>;

  Loop& loop_;
  Shared& shared_;
  Socket socket_;
  const Role role_;
  State state_ = State::kIdle;
  SteadyTime since_;  // when the state was entered
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  size_t header_bytes_ = 0;
  uint64_t charged_body_bytes_ = 0;
  bool header_checked_ = false;
  bool timed_out_ = false;
  Reply reply_;
  std::string out_;
};

HttpSession::HttpSession(Loop& loop, Socket socket, Role role)
    : loop_(loop),
      shared_(loop.shared()),
      socket_(std::move(socket)),
      role_(role),
      buffer_(shared_.options.max_header_bytes + kBodyReadBytes) {
  loop_.Add(this);
  shared_.open_connections.Add(1);
}

HttpSession::~HttpSession() {
  shared_.body_bytes.fetch_sub(charged_body_bytes_, std::memory_order_relaxed);
  shared_.open_connections.Add(-1);
  loop_.Remove(this);
  error_code ignored;
  socket_.close(ignored);
  shared_.connections.Leave();
}

void HttpSession::Enter(State state) {
  state_ = state;
  since_ = std::chrono::steady_clock::now();
}

void HttpSession::BeginRequest() {
  shared_.body_bytes.fetch_sub(charged_body_bytes_, std::memory_order_relaxed);
  charged_body_bytes_ = 0;
  header_bytes_ = 0;
  header_checked_ = false;
  parser_.emplace();
  parser_->header_limit(shared_.options.max_header_bytes);
  parser_->body_limit(shared_.options.max_body_bytes);
  if (buffer_.size() == 0 && buffer_.capacity() > 2 * kReadBytes) buffer_.shrink_to_fit();
  Enter(State::kIdle);
  if (buffer_.size() > 0) return Parse();  // pipelined
  Read();
}

void HttpSession::Read() {
  const size_t wanted = parser_->is_header_done() ? kBodyReadBytes : kReadBytes;
  const size_t room = buffer_.max_size() - buffer_.size();
  socket_.async_read_some(
      buffer_.prepare(std::min(wanted, room)),
      [self = shared_from_this()](error_code error, size_t bytes) { self->OnRead(error, bytes); });
}

void HttpSession::OnRead(error_code error, size_t bytes) {
  if (timed_out_) return Refuse(408, "the request took too long to arrive");
  if (error) return;  // closed, by either side
  buffer_.commit(bytes);
  Parse();
}

// Feeds the parser until the request is whole, more bytes are needed, or something is wrong.
void HttpSession::Parse() {
  if (state_ == State::kIdle) Enter(State::kReceiving);
  while (!parser_->is_done()) {
    if (buffer_.size() == 0) return Read();
    if (!ParseSome()) return;
  }
  Answer();
}

// One stage of parsing; false when Parse has nothing more to do.
bool HttpSession::ParseSome() {
  const bool in_header = !parser_->is_header_done();
  error_code error;
  const size_t used = parser_->put(buffer_.data(), error);
  buffer_.consume(used);
  // The parser's own limit is for one call; headers that drip in must not add up beyond it.
  if (in_header) header_bytes_ += used;
  if (header_bytes_ > shared_.options.max_header_bytes) error = http::error::header_limit;
  if (error == http::error::need_more && buffer_.size() < buffer_.max_size()) {
    Read();
    return false;
  }
  if (error == http::error::body_limit) {
    Refuse(413, fmt::format("a body has at most {} bytes", shared_.options.max_body_bytes));
  } else if (error == http::error::header_limit || error == http::error::need_more) {
    Refuse(431, fmt::format("a header has at most {} bytes", shared_.options.max_header_bytes));
  } else if (error) {
    Refuse(400, fmt::format("not HTTP: {}", error.message()));
  } else {
    if (!parser_->is_header_done()) return true;
    if (!header_checked_ && !CheckHeader()) return false;
    return ChargeBody();
  }
  return false;
}

// What the parser lets through. False when the request is refused or a 100 is on its way.
bool HttpSession::CheckHeader() {
  header_checked_ = true;
  const auto& message = parser_->get();
  if (message.version() >= 11 && message.count(http::field::host) != 1) {
    Refuse(400, "HTTP/1.1 wants one Host field");
    return false;
  }
  // Taken for a request without a body, its body would be taken for the next request.
  if (message.count(http::field::transfer_encoding) > 0 && !parser_->chunked()) {
    Refuse(501, "the only transfer encoding here is chunked");
    return false;
  }
  if (parser_->is_done() || buffer_.size() > 0) return true;
  if (!beast::iequals(message[http::field::expect], "100-continue")) return true;
  if (!ChargeBody()) return false;
  SendContinue();
  return false;
}

// Counts the body, announced or received, against what all connections may hold together.
bool HttpSession::ChargeBody() {
  const auto announced = parser_->content_length();
  const uint64_t bytes =
      std::max<uint64_t>(announced ? *announced : 0, parser_->get().body().size());
  if (bytes <= charged_body_bytes_) return true;
  const uint64_t added = bytes - charged_body_bytes_;
  charged_body_bytes_ = bytes;
  const uint64_t total = shared_.body_bytes.fetch_add(added, std::memory_order_relaxed) + added;
  // A request alone is always let in.
  if (total <= std::max(shared_.options.max_body_bytes_total, bytes)) return true;
  Refuse(503, "too many bytes of requests at once");
  return false;
}

void HttpSession::SendContinue() {
  asio::async_write(socket_, asio::buffer(kContinue.data(), kContinue.size()),
                    [self = shared_from_this()](error_code error, size_t) {
                      if (!error) self->Parse();
                    });
}

void HttpSession::Answer() {
  const auto& message = parser_->get();
  const std::string_view target = View(message.target());
  const size_t mark = std::min(target.find('?'), target.size());
  const bool is_head = message.method() == http::verb::head;
  Request request;
  request.role = role_;
  request.method = is_head ? "GET" : View(message.method_string());
  request.path = target.substr(0, mark);
  request.query = target.substr(std::min(mark + 1, target.size()));
  request.body = message.body();
  reply_ = Reply();
  try {
    loop_.handler().Handle(request, &reply_);
  } catch (const std::exception& e) {  // of a library, or out of memory; the process goes on
    spdlog::error("answering {} failed: {}", request.path.substr(0, 100), e.what());
    reply_ = Reply();
    SetError(500, "internal error", &reply_);
  }
  Send(is_head, parser_->keep_alive() && !loop_.draining());
}

void HttpSession::Refuse(uint32_t status, std::string_view message) {
  shared_.refused.Add();
  reply_ = Reply();
  SetError(status, message, &reply_);
  if (status == 503) reply_.headers.emplace_back("Retry-After", "1");
  Send(false, false);
}

void HttpSession::RenderHead(bool keep_alive, bool is_http10) {
  out_.clear();
  const beast::string_view reason = http::obsolete_reason(http::int_to_status(reply_.status));
  fmt::format_to(std::back_inserter(out_),
                 "HTTP/1.1 {} {}\r\nServer: tacit\r\nDate: {}\r\nContent-Type: {}\r\n"
                 "Content-Length: {}\r\n",
                 reply_.status, View(reason), loop_.date(), reply_.content_type,
                 reply_.body.size());
  for (const auto& [name, value] : reply_.headers)
    fmt::format_to(std::back_inserter(out_), "{}: {}\r\n", name, value);
  if (!keep_alive) out_ += "Connection: close\r\n";
  if (keep_alive && is_http10) out_ += "Connection: keep-alive\r\n";
  out_ += "\r\n";
}

void HttpSession::Send(bool head_only, bool keep_alive) {
  RenderHead(keep_alive, parser_->is_header_done() && parser_->get().version() < 11);
  if (head_only) reply_.body.clear();
  if (reply_.body.size() <= kInlineBody) {
    out_ += reply_.body;
    reply_.body.clear();
  }
  Enter(State::kSending);
  const std::array<asio::const_buffer, 2> parts = {asio::buffer(out_), asio::buffer(reply_.body)};
  asio::async_write(socket_, parts,
                    [self = shared_from_this(), keep_alive](error_code error, size_t) {
                      self->OnSent(error, keep_alive);
                    });
}

void HttpSession::OnSent(error_code error, bool keep_alive) {
  if (error) return;
  // A drain that began while the answer was on its way could not be announced in it.
  if (keep_alive && !(loop_.draining() && buffer_.size() == 0)) return BeginRequest();
  if (parser_->is_done() && buffer_.size() == 0) return;  // nothing unread: close at once
  socket_.shutdown(Socket::shutdown_send, error);
  Enter(State::kLingering);
  buffer_.clear();
  Linger();
}

void HttpSession::Linger() {
  socket_.async_read_some(buffer_.prepare(kReadBytes),
                          [self = shared_from_this()](error_code error, size_t) {
                            if (!error) self->Linger();
                          });
}

void HttpSession::Tick(SteadyTime now) {
  const auto waited = now - since_;
  const ServerOptions& options = shared_.options;
  if (state_ == State::kReceiving && waited > options.request_timeout && !timed_out_) {
    timed_out_ = true;
    error_code ignored;
    socket_.cancel(ignored);  // the pending read ends and answers 408
  } else if ((state_ == State::kIdle && waited > options.idle_timeout) ||
             (state_ == State::kSending && waited > options.write_timeout) ||
             (state_ == State::kLingering && waited > kLingerTimeout)) {
    Cut();
  }
}

void HttpSession::Drain() {
  error_code error;
  const bool has_unread = socket_.available(error) > 0 && !error;
  if (state_ == State::kIdle && !has_unread) Cut();
}

void HttpSession::Cut() {
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace

void StartSession(Loop& loop, Socket socket, Role role) {
  const auto session = std::make_shared<HttpSession>(loop, std::move(socket), role);
  if (loop.finished()) return;  // accepted a moment too late
  session->BeginRequest();
  if (loop.draining()) session->Drain();
}

}  // namespace tacit::serve
