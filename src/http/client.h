#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacit::http {

struct Response {
  uint32_t status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;

  // The value of the first header of this name in any case, or "".
  std::string_view Header(std::string_view name) const;
};

// The largest answer that Fetch takes.
inline constexpr uint64_t kAnswerBytesMost = uint64_t{64} << 20;

using FieldList = std::vector<std::pair<std::string, std::string>>;

// The files of a client's side of TLS, in PEM; empty names are none.
struct ClientTls {
  std::string ca_file;           // whom to trust; none: whom the system does
  std::string certificate, key;  // for a server that asks for one
};

// Sends one HTTP request on its own connection, with these fields beside its own; blocks. `url` is
// http://host[:port][/path], https://... or unix:/socket/path[:/path]. The server's certificate
// must be of that host. A reply of any status is a success. kUnavailable: no server answers there
// within `timeout`; kInvalidArgument: the url or a file; kIo: the answer is not HTTP or too
// large, or TLS fails.
Result<Response> Fetch(const std::string& url, const std::string& method, std::string_view body,
                       std::chrono::milliseconds timeout, const FieldList& fields = {},
                       const ClientTls& tls = {});

// A url for `path` ("/v1/score") of the server at `base`, which may end in a slash.
std::string JoinUrl(std::string_view base, std::string_view path);

}  // namespace tacit::http
