#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <functional>
#include <optional>
#include <type_traits>

#include "base/files/log.h"
#include "http/gzip.h"
#include "http/held_body.h"
#include "http/loop.h"
#include "http/reply_head.h"
#include "http/request_ids.h"
#include "http/seen_fields.h"
#include "http/tls.h"
#include "http/token.h"

namespace tacit::http {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr size_t kReadBytes = 8 << 10;
constexpr size_t kBodyReadBytes = 16 << 10;
constexpr size_t kInlineBody = 16 << 10;  // bodies up to here are sent from one buffer
constexpr size_t kKeptOutput = 4 << 10;   // of that buffer's memory, between requests
constexpr size_t kFreeHeader = 4 << 10;   // longer headers count as held memory
constexpr size_t kMethodBytesMost = 32;
constexpr std::chrono::milliseconds kLingerTimeout{1000};
constexpr std::chrono::seconds kProgressSpan{1};  // the span of a rate check
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

// The reason to refuse a header; status 0: not refused.
struct Refusal {
  uint32_t status = 0;
  std::string message = {};
};

// The fields of a header that the parser holds.
class ParsedFields final : public HeaderFields {
 public:
  explicit ParsedFields(const http::fields& fields) : fields_(fields) {}
  std::string_view Find(std::string_view name) const override {
    return View(fields_[beast::string_view(name.data(), name.size())]);
  }

 private:
  const http::fields& fields_;
};

// The part of a target before its query.
std::string_view PathOf(std::string_view target) { return target.substr(0, target.find('?')); }

// Asio's stream, not Beast's around it: that of Boost 1.81 never sends a head and a large body
// which are written together, as two buffers.
using TlsStream = asio::ssl::stream<Socket>;

Socket& SocketOf(Socket& stream) { return stream; }
Socket& SocketOf(TlsStream& stream) { return stream.next_layer(); }

// One HTTP/1.1 connection, with TLS or without: receive, handle, send, and again. Kept alive by its
// pending operation, of which there is at most one.
template <class Stream>
class HttpSession final : public Session, public std::enable_shared_from_this<HttpSession<Stream>> {
 public:
  // `more` is what the stream needs besides its socket.
  template <class... More>
  HttpSession(Loop& loop, Door& door, Socket socket, More&... more);
  ~HttpSession() override;

  void Start();
  void BeginRequest();
  void Tick(SteadyTime now) override;
  void Drain() override;
  void Cut() override;

 private:
  static constexpr bool kIsTls = std::is_same_v<Stream, TlsStream>;

  // kShaking: agreeing on keys. kIdle: waiting for the first byte of a request. kLingering: the
  // answer is sent and further input is discarded, because closing on unread bytes would reset the
  // connection and could lose the answer.
  enum class State { kShaking, kIdle, kReceiving, kSending, kLingering };

  void Enter(State state);
  void Read();
  void OnRead(error_code error, size_t bytes);
  void Parse();
  bool ParseSome();
  bool CheckHeader();
  Refusal HeaderRefusal();
  Refusal CallerRefusal();
  Refusal CodingRefusal();
  size_t HeldBesideBody() const;
  bool Hold();
  bool IsTooSlow(SteadyTime now);
  void SendContinue();
  void Answer();
  bool UnpackBody();
  RequestIds Ids() const;
  void PassIds(const Request& request, bool is_logged, SteadyTime begin);
  void Refuse(uint32_t status, std::string_view message);
  void Send(bool head_only, bool keep_alive);
  void OnSent(error_code error, bool keep_alive);
  void Close();
  void Linger();
  auto Self() { return this->shared_from_this(); }

  using Parser = http::request_parser<HeldBody>;
  using OnChunk = std::function<void(uint64_t, beast::string_view, error_code&)>;

  Loop& loop_;
  Shared& shared_;
  Stream stream_;
  Door& door_;
  State state_ = State::kIdle;
  SteadyTime since_;  // when the state was entered
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  Holding holding_;
  KnownCaller known_;
  const Caller* caller_ = nullptr;  // of this request
  size_t header_bytes_ = 0;
  int64_t framing_bytes_ =
      0;  // bytes of a chunked body beyond what its chunks need: extensions, trailers
  OnChunk on_chunk_;
  bool header_checked_ = false;
  SeenFields seen_;             // of a header that was checked
  bool is_packed_ = false;      // the body is gzip
  BodyBuffer unpacked_;         // what such a body holds
  std::string_view cut_short_;  // why the request's time is over
  SteadyTime progress_since_;
  size_t received_ = 0, received_before_ = 0;  // bytes of the request; at progress_since_
  Reply reply_;
  std::string out_;
};

template <class Stream>
template <class... More>
HttpSession<Stream>::HttpSession(Loop& loop, Door& door, Socket socket, More&... more)
    : loop_(loop),
      shared_(loop.shared()),
      stream_(std::move(socket), more...),
      door_(door),
      buffer_(shared_.options.max_header_bytes + kBodyReadBytes),
      holding_(door.pool),
      on_chunk_([this](uint64_t size, beast::string_view, error_code&) {
        framing_bytes_ -= static_cast<int64_t>(ChunkFraming(size));
      }) {
  loop_.Add(this);
  shared_.open_connections.Add(1);
}

template <class Stream>
HttpSession<Stream>::~HttpSession() {
  shared_.open_connections.Add(-1);
  loop_.Remove(this);
  error_code ignored;
  SocketOf(stream_).close(ignored);
  door_.gate.Leave();
}

template <class Stream>
void HttpSession<Stream>::Enter(State state) {
  state_ = state;
  since_ = shared_.About();
  if (state != State::kReceiving) return;
  progress_since_ = since_;
  received_before_ = received_;
}

template <class Stream>
void HttpSession<Stream>::Start() {
  if constexpr (!kIsTls) {
    BeginRequest();
  } else {
    Enter(State::kShaking);
    stream_.async_handshake(asio::ssl::stream_base::server, [self = Self()](error_code error) {
      if (error) return;  // no TLS, other versions than ours, or no certificate that we ask for
      self->BeginRequest();
      if (self->loop_.draining()) self->Drain();
    });
  }
}

template <class Stream>
void HttpSession<Stream>::BeginRequest() {
  holding_.Set(0);
  header_bytes_ = received_ = 0;
  framing_bytes_ = 0;
  header_checked_ = is_packed_ = false;
  caller_ = nullptr;
  parser_.emplace();
  parser_->header_limit(shared_.options.max_header_bytes);
  parser_->body_limit(shared_.options.max_body_bytes);
  if (buffer_.size() == 0 && buffer_.capacity() > kReadBytes) buffer_.shrink_to_fit();
  if (out_.capacity() > kKeptOutput) std::string().swap(out_);
  reply_ = Reply();
  Enter(State::kIdle);
  if (buffer_.size() > 0) return Parse();  // pipelined
  Read();
}

template <class Stream>
void HttpSession<Stream>::Read() {
  const size_t wanted = parser_->is_header_done() ? kBodyReadBytes : kReadBytes;
  const size_t room = buffer_.max_size() - buffer_.size();
  stream_.async_read_some(
      buffer_.prepare(std::min(wanted, room)),
      [self = Self()](error_code error, size_t bytes) { self->OnRead(error, bytes); });
}

template <class Stream>
void HttpSession<Stream>::OnRead(error_code error, size_t bytes) {
  if (!cut_short_.empty()) return Refuse(408, cut_short_);
  if (error) return;  // closed, by either side
  buffer_.commit(bytes);
  received_ += bytes;
  Parse();
}

// Feeds the parser until the request is complete, more bytes are needed, or an error occurs.
template <class Stream>
void HttpSession<Stream>::Parse() {
  if (state_ == State::kIdle) Enter(State::kReceiving);
  while (!parser_->is_done()) {
    if (buffer_.size() == 0) return Read();
    if (!ParseSome()) return;
  }
  Answer();
}

// Runs one stage of parsing; returns false when Parse has nothing more to do.
template <class Stream>
bool HttpSession<Stream>::ParseSome() {
  const bool in_header = !parser_->is_header_done();
  const size_t body_before = parser_->get().body().size();
  error_code error;
  const size_t used = parser_->put(buffer_.data(), error);
  const bool folded =
      in_header && HasFoldedLine({static_cast<const char*>(buffer_.data().data()), used});
  buffer_.consume(used);
  if (in_header)
    header_bytes_ += used;
  else if (parser_->chunked())
    framing_bytes_ += static_cast<int64_t>(used - (parser_->get().body().size() - body_before));
  // The parser's own limit is per call; input that arrives in small pieces must not exceed it in
  // sum.
  const size_t header = header_bytes_ + static_cast<size_t>(std::max<int64_t>(framing_bytes_, 0));
  if (header > shared_.options.max_header_bytes) error = http::error::header_limit;
  if (folded) {
    Refuse(400, "not HTTP: a line of the header continues in the next");
  } else if (error == http::error::need_more && buffer_.size() < buffer_.max_size()) {
    if (Hold()) Read();
  } else if (error == http::error::body_limit) {
    Refuse(413, fmt::format("a body has at most {} bytes", shared_.options.max_body_bytes));
  } else if (error == http::error::header_limit || error == http::error::need_more) {
    Refuse(431, fmt::format("a header has at most {} bytes, chunks' extensions and trailers "
                            "among them",
                            shared_.options.max_header_bytes));
  } else if (error == http::error::buffer_overflow) {
    Refuse(503, "no memory for the request");
  } else if (error) {
    Refuse(400, fmt::format("not HTTP: {}", error.message()));
  } else {
    if (!parser_->is_header_done()) return true;
    if (!header_checked_ && !CheckHeader()) return false;
    return Hold();
  }
  return false;
}

// Checks a header that the parser accepted. Returns false when the request is refused or a 100 is
// being sent.
template <class Stream>
bool HttpSession<Stream>::CheckHeader() {
  header_checked_ = true;
  if (const Refusal refusal = HeaderRefusal(); refusal.status != 0) {
    Refuse(refusal.status, refusal.message);
    return false;
  }
  if (parser_->chunked()) parser_->on_chunk_header(on_chunk_);
  if (parser_->is_done() || buffer_.size() > 0) return true;
  if (!beast::iequals(parser_->get()[http::field::expect], "100-continue")) return true;
  SendContinue();
  return false;
}

template <class Stream>
Refusal HttpSession<Stream>::HeaderRefusal() {
  const auto& message = parser_->get();
  seen_ = LookAt(message);
  if (message.method_string().size() > kMethodBytesMost)
    return {400, fmt::format("a method has at most {} bytes", kMethodBytesMost)};
  if (seen_.host.count > 1 || (seen_.host.count == 0 && message.version() >= 11))
    return {400, "HTTP/1.1 requires one Host field"};
  if (seen_.transfer_encoding.count > 0) {
    if (message.version() < 11) return {400, "HTTP/1.0 has no transfer encodings"};
    // If the request were read as one without a body, its body would be read as the next request.
    if (!parser_->chunked()) return {501, "the only transfer encoding here is chunked"};
  }
  const SeenFields::Field& length = seen_.content_length;
  if (length.count > 1 || (length.count == 1 && !IsPlainLength(length.value)))
    return {400, "Content-Length must be one number"};
  const std::string_view host = seen_.host.value;
  if (!door_.is_unix && seen_.host.count == 1 && !door_.hosts.Answers(host))
    return {421, fmt::format("this server does not answer as '{}': name it in serve.hosts if it "
                             "should",
                             host.substr(0, 100))};
  if (door_.role == Role::kOperator &&
      IsCrossSite(host, seen_.origin.value, seen_.fetch_site.value))
    return {403, "the operator's listener does not answer to pages of other sites"};
  if (shared_.options.callers != nullptr)
    if (Refusal refusal = CallerRefusal(); refusal.status != 0) return refusal;
  return CodingRefusal();
}

template <class Stream>
Refusal HttpSession<Stream>::CodingRefusal() {
  const BodyCoding coding = seen_.content_encoding.count > 1
                                ? BodyCoding::kUnknown
                                : CodingOf(seen_.content_encoding.value);
  if (coding == BodyCoding::kUnknown)
    return {415, "the only Content-Encoding of a body here is gzip, once"};
  is_packed_ = coding == BodyCoding::kGzip;
  return {};
}

// Finds out whose token came. Without a token only a request without a body goes on to the
// handler, so strangers cannot make the server hold one.
template <class Stream>
Refusal HttpSession<Stream>::CallerRefusal() {
  const SeenFields::Field& field = seen_.authorization;
  if (field.count == 0) {
    if (parser_->is_done()) return {};
    return {401, "a token is needed: Authorization: Bearer TOKEN"};
  }
  if (field.count > 1) return {400, "more than one Authorization field"};
  const std::string_view token = BearerToken(field.value);
  if (token.empty()) return {401, "Authorization must be Bearer TOKEN"};
  caller_ = known_.Find(*shared_.options.callers, token);
  if (caller_ == nullptr) return {401, "the token is nobody's here"};
  return {};
}

template <class Stream>
size_t HttpSession<Stream>::HeldBesideBody() const {
  size_t bytes = 0;
  if (header_bytes_ > kFreeHeader) bytes += 2 * header_bytes_;  // as they came, and as fields
  if (buffer_.capacity() > kBodyReadBytes) bytes += buffer_.capacity();
  return bytes;
}

// Counts the request's memory so far against the memory that all requests share.
template <class Stream>
bool HttpSession<Stream>::Hold() {
  if (holding_.Set(parser_->get().body().size() + HeldBesideBody())) return true;
  Refuse(503, "too many bytes of requests at once");
  return false;
}

// Returns true if fewer bytes have come lately than a request must send while memory is short.
template <class Stream>
bool HttpSession<Stream>::IsTooSlow(SteadyTime now) {
  const auto span = now - progress_since_;
  if (span < kProgressSpan) return false;
  const double wanted = std::chrono::duration<double>(span).count() *
                        static_cast<double>(shared_.options.min_bytes_a_second);
  const bool slow = static_cast<double>(received_ - received_before_) < wanted;
  progress_since_ = now;
  received_before_ = received_;
  return slow && holding_.pressed();
}

template <class Stream>
void HttpSession<Stream>::SendContinue() {
  asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                    [self = Self()](error_code error, size_t) {
                      if (!error) self->Parse();
                    });
}

// Unpacks a body that came as gzip, and refuses one that is none or too long.
template <class Stream>
bool HttpSession<Stream>::UnpackBody() {
  BodyBuffer& body = parser_->get().body();
  if (!is_packed_ || body.size() == 0) return true;
  const uint32_t most = shared_.options.max_body_bytes;
  const size_t packed = body.size() + HeldBesideBody();
  const auto hold = [&](uint64_t bytes) { return holding_.Set(packed + bytes); };
  const Unpacked how = Unpack(body.view(), most, hold, &unpacked_);
  if (how == Unpacked::kNotGzip)
    Refuse(400, "the body is not gzip, as its Content-Encoding says, or is cut off");
  if (how == Unpacked::kTooLong)
    Refuse(413, fmt::format("a body has at most {} bytes, unpacked too", most));
  if (how == Unpacked::kNoRoom) Refuse(503, "too many bytes of requests at once");
  if (how != Unpacked::kWhole) return false;
  body.Clear();
  holding_.Set(unpacked_.size() + HeldBesideBody());
  return true;
}

template <class Stream>
void HttpSession<Stream>::Answer() {
  if (!UnpackBody()) return;
  const auto& message = parser_->get();
  const std::string_view target = View(message.target());
  const ParsedFields fields(message);
  const bool is_head = message.method() == http::verb::head;
  Request request;
  request.role = door_.role;
  request.method = is_head ? "GET" : View(message.method_string());
  request.path = PathOf(target);
  request.query = target.substr(std::min(request.path.size() + 1, target.size()));
  request.body = is_packed_ ? unpacked_.view() : message.body().view();
  request.fields = &fields;
  request.asks_token = shared_.options.callers != nullptr;
  request.caller = caller_;
  const bool is_logged = shared_.access_log.load(std::memory_order_relaxed);
  const SteadyTime begin = is_logged ? shared_.Now() : SteadyTime();
  reply_ = ReplyFor(request.path);
  try {
    loop_.handler().Handle(request, &reply_);
    if (reply_.same_for_all) PackAnswer(request.Field("Accept-Encoding"), &reply_);
  } catch (const std::exception& e) {  // from a library, or out of memory; the process survives
    // The route stands for the path, which may name a user.
    spdlog::error("answering {} failed: {}", reply_.route.empty() ? "a request" : reply_.route,
                  e.what());
    reply_ = ReplyFor(request.path);
    SetError(500, "internal error", &reply_);
  }
  const size_t bytes = reply_.body.size() > kInlineBody ? reply_.body.capacity() : 0;
  // The request is finished; its answer may wait long for the client to read it.
  if (!holding_.Set(bytes)) {
    holding_.Set(0);
    const std::string_view route = reply_.route;
    reply_ = ReplyFor(request.path);
    reply_.route = route;
    SetError(503, "too many answers wait to be taken", &reply_);
    reply_.headers.emplace_back("Retry-After", "1");
  }
  PassIds(request, is_logged, begin);
  parser_->get().body().Clear();
  unpacked_.Clear();
  Send(is_head, parser_->keep_alive() && !loop_.draining());
}

// The ids that came, of a request that was refused within its header too.
template <class Stream>
RequestIds HttpSession<Stream>::Ids() const {
  if (header_checked_) return IdsOf(seen_.id.value, seen_.trace.value);
  const SeenFields seen = LookAt(parser_->get());
  RequestIds ids = IdsOf(seen.id.value, seen.trace.value);
  if (parser_->is_header_done()) return ids;
  const RequestIds unread =
      IdsInLines({static_cast<const char*>(buffer_.data().data()), buffer_.size()});
  if (ids.id.empty()) ids.id = unread.id;
  if (ids.trace.empty()) ids.trace = unread.trace;
  return ids;
}

// Gives the answer the request's ids, and logs it if answers are.
template <class Stream>
void HttpSession<Stream>::PassIds(const Request& request, bool is_logged, SteadyTime begin) {
  const RequestIds ids = Ids();
  ids.AddTo(&reply_);
  if (is_logged) LogAccess(request, reply_, ids, shared_.Now() - begin);
}

template <class Stream>
void HttpSession<Stream>::Refuse(uint32_t status, std::string_view message) {
  shared_.refused.Add();
  Request request;
  request.role = door_.role;
  request.body = parser_->get().body().view();
  request.caller = caller_;
  reply_ = ReplyFor(parser_->is_header_done() ? PathOf(View(parser_->get().target())) : "");
  if (status == 401)
    SetUnauthorized(message, &reply_);
  else
    SetError(status, message, &reply_);
  if (status == 503) reply_.headers.emplace_back("Retry-After", "1");
  if (status == 415) reply_.headers.emplace_back("Accept-Encoding", "gzip");
  PassIds(request, shared_.access_log.load(std::memory_order_relaxed), shared_.Now());
  parser_->get().body().Clear();
  unpacked_.Clear();
  holding_.Set(0);
  Send(false, false);
}

template <class Stream>
void HttpSession<Stream>::Send(bool head_only, bool keep_alive) {
  const beast::string_view reason = http::obsolete_reason(http::int_to_status(reply_.status));
  const bool is_http10 = parser_->is_header_done() && parser_->get().version() < 11;
  RenderHead(reply_, View(reason), loop_.date(), keep_alive, is_http10, &out_);
  if (head_only) reply_.body.clear();
  if (reply_.body.size() <= kInlineBody) {
    out_ += reply_.body;
    reply_.body.clear();
  }
  Enter(State::kSending);
  const std::array<asio::const_buffer, 2> parts = {asio::buffer(out_), asio::buffer(reply_.body)};
  asio::async_write(stream_, parts, [self = Self(), keep_alive](error_code error, size_t) {
    self->OnSent(error, keep_alive);
  });
}

template <class Stream>
void HttpSession<Stream>::OnSent(error_code error, bool keep_alive) {
  if (error) return;
  // A drain that began while the answer was being sent could not be announced in it.
  if (keep_alive && !(loop_.draining() && buffer_.size() == 0)) return BeginRequest();
  if (parser_->is_done() && buffer_.size() == 0) return Close();  // nothing is unread
  SocketOf(stream_).shutdown(Socket::shutdown_send, error);
  Enter(State::kLingering);
  buffer_.clear();
  Linger();
}

// Closes at once. With TLS it first tells the client that nothing was cut off.
template <class Stream>
void HttpSession<Stream>::Close() {
  if constexpr (kIsTls) {
    Enter(State::kLingering);
    stream_.async_shutdown([self = Self()](error_code) {});
  }
}

template <class Stream>
void HttpSession<Stream>::Linger() {
  stream_.async_read_some(buffer_.prepare(kReadBytes), [self = Self()](error_code error, size_t) {
    if (!error) self->Linger();
  });
}

template <class Stream>
void HttpSession<Stream>::Tick(SteadyTime now) {
  const auto waited = now - since_;
  const ServerOptions& options = shared_.options;
  if (state_ == State::kReceiving && cut_short_.empty()) {
    if (waited > options.request_timeout)
      cut_short_ = "the request took too long to arrive";
    else if (IsTooSlow(now))
      cut_short_ = "the request arrives too slowly while others wait for room";
    else
      return;
    error_code ignored;
    SocketOf(stream_).cancel(ignored);  // the pending read ends and answers 408
  } else if ((state_ == State::kShaking && waited > options.request_timeout) ||
             (state_ == State::kIdle && waited > options.idle_timeout) ||
             (state_ == State::kSending && waited > options.write_timeout) ||
             (state_ == State::kLingering && waited > kLingerTimeout)) {
    Cut();
  }
}

template <class Stream>
void HttpSession<Stream>::Drain() {
  error_code error;
  const bool has_unread = SocketOf(stream_).available(error) > 0 && !error;
  if (state_ == State::kIdle && !has_unread) Cut();
}

template <class Stream>
void HttpSession<Stream>::Cut() {
  error_code ignored;
  SocketOf(stream_).close(ignored);
}

}  // namespace

void StartSession(Loop& loop, Socket socket, Door& door) {
  const auto start = [&](const auto& session) {
    if (loop.finished()) return;  // accepted a moment too late
    session->Start();
    if (loop.draining()) session->Drain();
  };
  if (door.tls == nullptr)
    return start(std::make_shared<HttpSession<Socket>>(loop, door, std::move(socket)));
  // The stream has a share in the context, which outlives another reading of the files.
  const auto context = static_cast<const TlsFromFiles*>(door.tls)->context();
  start(std::make_shared<HttpSession<TlsStream>>(loop, door, std::move(socket), *context));
}

}  // namespace tacit::http
