#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Private to this room: checks of a header beyond those of the parser.
namespace tacit::http {

// The host names that a server answers to. A hostile web page may use a name that leads to this
// machine (DNS rebinding), and its requests carry that name. Immutable.
class Hosts {
 public:
  // Accepts `names`, loopback names and numeric addresses; no stranger can redirect the latter two.
  // ".example.org" accepts each name that has labels before it, "any" accepts all.
  explicit Hosts(const std::vector<std::string>& names);

  // `field` is a Host field: a name or address, with or without a port.
  bool Answers(std::string_view field) const;

 private:
  std::vector<std::string> names_, suffixes_;  // lower case
  bool all_ = false;
};

// Returns "example.org" for "Example.org.:80", "[::1]" for "[::1]:80".
std::string HostName(std::string_view field);

// Returns true if a browser marks this request as sent by a page of another origin. `origin` and
// `fetch_site` are the fields Origin and Sec-Fetch-Site, empty where they are missing.
bool IsCrossSite(std::string_view host, std::string_view origin, std::string_view fetch_site);

// Returns true if a header, or the first part of one, has a line that continues in the next (RFC
// 9112, 5.2: obs-fold). Servers interpret such lines differently.
bool HasFoldedLine(std::string_view header);

// Returns true if it is one number in digits (RFC 9112, 6.3 lets a server refuse the list "5, 5").
bool IsPlainLength(std::string_view content_length);

// The least number of bytes that frame a chunk of this size: its size in hexadecimal, and two line
// ends.
size_t ChunkFraming(size_t chunk_bytes);

}  // namespace tacit::http
