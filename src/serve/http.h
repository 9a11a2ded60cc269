#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacit::serve {

// The audience of a listener; decides which metrics an answer may show.
enum class Role : uint8_t { kPublic, kOperator };

// A request as views that are valid during the call.
struct Request {
  Role role = Role::kPublic;
  std::string_view method;  // "GET"; HEAD arrives as GET, its body is dropped by the server
  std::string_view path;    // as sent, without the query: "/v1/score"
  std::string_view query;   // the part after '?', undecoded
  std::string_view body;
};

struct Reply {
  uint32_t status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // besides the server's own
};

// Answers requests. Each server thread has one and calls it alone, so it may keep scratch memory
// without locks. It must always fill the reply; the thread serves no other request meanwhile.
class Handler {
 public:
  virtual ~Handler() = default;
  virtual void Handle(const Request& request, Reply* reply) = 0;
};
// Called once per server thread, before the first request.
using HandlerFactory = std::function<std::unique_ptr<Handler>()>;

// Turns `reply` into an error: {"error":{"code":STATUS,"message":MESSAGE}}.
void SetError(uint32_t status, std::string_view message, Reply* reply);
// Does the same for a request that cannot be answered as it is, with the status for the error's
// code: 400, 403, 404, 503 with Retry-After, else 500.
void SetFailure(const Error& error, Reply* reply);
// Does the same for an answer that failed through no fault of the request, whatever the error's
// code: 503 with Retry-After if the failure is temporary (kUnavailable), else 500.
void SetServerFailure(const Error& error, Reply* reply);

// Appends `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string_view text, std::string* out);

}  // namespace tacit::serve
