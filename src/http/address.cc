#include "http/address.h"

#include <fmt/format.h>

#include <charconv>

namespace tacit::http {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kHttp = "http://", kHttps = "https://";
constexpr size_t kUnixPathMax = 107;  // sockaddr_un::sun_path, with its terminating zero

tl::unexpected<Error> BadAddress(std::string_view text, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is not an address: {}", text.substr(0, 200), why));
}

Result<Address> UnixAddress(std::string_view text, std::string_view path) {
  if (path.empty()) return BadAddress(text, "the socket's path is missing");
  if (path.size() > kUnixPathMax)
    return BadAddress(text, fmt::format("a socket's path has at most {} bytes", kUnixPathMax));
  Address address;
  address.unix_path = path;
  return address;
}

// With `default_port` < 0, the text must contain a port.
Result<Address> TcpAddress(std::string_view text, std::string_view authority, int default_port) {
  Address address;
  std::string_view rest;
  if (authority.starts_with('[')) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) return BadAddress(text, "']' is missing");
    address.host = authority.substr(1, close - 1);
    rest = authority.substr(close + 1);
  } else {
    const size_t colon = authority.find(':');
    address.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) rest = authority.substr(colon);
  }
  if (address.host.empty()) return BadAddress(text, "the host is missing");
  if (rest.empty() && default_port >= 0) {
    address.port = static_cast<uint16_t>(default_port);
    return address;
  }
  if (!rest.starts_with(':')) return BadAddress(text, "expected HOST:PORT or unix:PATH");
  rest.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), address.port);
  if (error != std::errc{} || end != rest.data() + rest.size())
    return BadAddress(text, "the port is not a number from 0 to 65535");
  return address;
}

}  // namespace

bool Address::is_local() const {
  return is_unix() || host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string Address::ToString() const {
  if (is_unix()) return fmt::format("{}{}", kUnix, unix_path);
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
}

Result<Address> ParseAddress(std::string_view text) {
  if (text.starts_with(kUnix)) return UnixAddress(text, text.substr(kUnix.size()));
  return TcpAddress(text, text, -1);
}

Result<Url> ParseUrl(std::string_view text) {
  Url url;
  std::string_view rest = text;
  if (rest.starts_with(kUnix)) {
    rest.remove_prefix(kUnix.size());
    const size_t split = rest.find(":/");
    TACIT_ASSIGN(url.address, UnixAddress(text, rest.substr(0, split)));
    if (split != std::string_view::npos) url.target = rest.substr(split + 1);
  } else if (rest.starts_with(kHttp) || rest.starts_with(kHttps)) {
    url.tls = rest.starts_with(kHttps);
    rest.remove_prefix(url.tls ? kHttps.size() : kHttp.size());
    const size_t slash = rest.find('/');
    TACIT_ASSIGN(url.address, TcpAddress(text, rest.substr(0, slash), url.tls ? 443 : 80));
    if (slash != std::string_view::npos) url.target = rest.substr(slash);
  } else {
    return BadAddress(text, "expected http://HOST:PORT, https://HOST:PORT or unix:PATH");
  }
  if (url.target.empty()) url.target = "/";
  for (char c : url.target)
    if (c <= ' ' || c == 0x7f) return BadAddress(text, "a space or control character in it");
  return url;
}

}  // namespace tacit::http
