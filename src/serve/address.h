#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacit::serve {

// Where a server listens or a client connects: a TCP host and port, or a UNIX socket's path.
struct Address {
  std::string host;
  uint16_t port = 0;
  std::string unix_path;  // not empty: a UNIX socket

  bool is_unix() const { return !unix_path.empty(); }
  std::string ToString() const;  // "127.0.0.1:80", "[::1]:80", "unix:/path"
};

// "HOST:PORT", "[IPV6]:PORT" or "unix:PATH"; the error names `text`.
Result<Address> ParseAddress(std::string_view text);

struct Url {
  Address address;
  std::string target;  // begins with a slash
};

// "http://HOST[:PORT][/TARGET]" or "unix:PATH[:/TARGET]"; the error names `text`.
Result<Url> ParseUrl(std::string_view text);

}  // namespace tacit::serve
