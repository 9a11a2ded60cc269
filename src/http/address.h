#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacit::http {

// The address that a server listens on or a client connects to: a TCP host and port, or the path of
// a UNIX socket.
struct Address {
  std::string host;
  uint16_t port = 0;
  std::string unix_path;  // not empty: a UNIX socket

  bool is_unix() const { return !unix_path.empty(); }
  // True if only this machine can reach it. A host name counts as local only if it is localhost.
  bool is_local() const;
  std::string ToString() const;  // "127.0.0.1:80", "[::1]:80", "unix:/path"
};

// "HOST:PORT", "[IPV6]:PORT" or "unix:PATH"; the error names `text`.
Result<Address> ParseAddress(std::string_view text);

struct Url {
  Address address;
  bool tls = false;
  std::string target;  // begins with a slash
};

// "http://HOST[:PORT][/TARGET]", the same with https, or "unix:PATH[:/TARGET]"; the error names
// `text`.
Result<Url> ParseUrl(std::string_view text);

}  // namespace tacit::http
