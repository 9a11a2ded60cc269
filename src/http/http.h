#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacit::http {

struct Caller;

// The audience of a listener, or of an answer; decides which metrics an answer may show.
enum class Role : uint8_t { kPublic, kOperator };

// The fields of a request's header.
class HeaderFields {
 public:
  virtual ~HeaderFields() = default;
  // The value of the first field of this name in any case, or "".
  virtual std::string_view Find(std::string_view name) const = 0;
};

// A request as views that are valid during the call.
struct Request {
  Role role = Role::kPublic;
  std::string_view method;  // "GET"; HEAD arrives as GET, its body is dropped by the server
  std::string_view path;    // as sent, without the query: "/v1/score"
  std::string_view query;   // the part after '?', undecoded
  std::string_view body;
  const HeaderFields* fields = nullptr;  // null if none came
  // Set where callers are known by tokens; then `caller` is the one whose token came, or null.
  bool asks_token = false;
  const Caller* caller = nullptr;
  bool at_operators_door = false;  // it came to the operator's listener; the router fills it in
  // The texts, undecoded, at the {} of the route's path; the router fills them in.
  std::array<std::string_view, 2> parts = {};

  std::string_view Field(std::string_view name) const {
    return fields != nullptr ? fields->Find(name) : std::string_view();
  }
};

// The form of a failed answer's body: {"error":{"code":STATUS,"message":MESSAGE}}, or that of the
// Open Inference Protocol, {"error":MESSAGE}.
enum class ErrorForm : uint8_t { kCode, kInference };

struct Reply {
  uint32_t status = 200;
  std::string_view content_type = "application/json";  // a text that lives on
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // besides the server's own
  ErrorForm error_form = ErrorForm::kCode;
  // The body holds nothing that is one caller's, or that a caller chose: the length that it has
  // when it is packed tells nobody anything, so it may come as gzip.
  bool same_for_all = false;
  // The path of the route that answered, as it was added: it names no user. If empty, none did.
  std::string_view route = {};
};

// The form for a request for this path: what is under /v2 is the Open Inference Protocol's.
ErrorForm ErrorFormFor(std::string_view path);
// An empty reply with that form.
Reply ReplyFor(std::string_view path);

// Answers requests. Each server thread has one and calls it alone, so it may keep scratch memory
// without locks. It must always fill the reply; the thread serves no other request meanwhile.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual void Handle(const Request& request, Reply* reply) = 0;
};
// Called once per server thread, before the first request.
using HandlerFactory = std::function<std::unique_ptr<Handler>()>;

// Turns `reply` into an error of its form.
void SetError(uint32_t status, std::string_view message, Reply* reply);
// Does the same for a request that cannot be answered as it is, with the status for the error's
// code: 400, 403, 404, 503 with Retry-After, else 500.
void SetFailure(const Error& error, Reply* reply);
// Does the same for an answer that failed through no fault of the request, with any
// code of the error: 503 with Retry-After if the failure is temporary (kUnavailable), else 500.
void SetServerFailure(const Error& error, Reply* reply);

// Does the same for a request without the token that it needs (401), naming the scheme.
void SetUnauthorized(std::string_view message, Reply* reply);

// Appends `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string_view text, std::string* out);

}  // namespace tacit::http
