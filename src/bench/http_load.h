#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tacit::bench {

// The figures of one turn of load.
struct HttpLoad {
  uint64_t requests = 0;
  double seconds = 0;
  double p50_us = 0, p99_us = 0;  // from sending to the whole answer
  double seen_p99_us = 0;         // at a pace alone: until the client had the answer
  double server_cpu_us = 0;       // this process's CPU time per request, the client's own left out
};

// Sends one request over and over on `connections` kept-alive connections, one request in flight on
// each, from the calling thread. Uses plain sockets, so that client and server share no library.
// Fails where an answer is not a 200.
Result<HttpLoad> DriveHttp(uint16_t port, const std::string& request, size_t connections,
                           double seconds);

// The same on one connection at this many requests a second, without waiting for answers that come
// late: a request's time begins when it was due, and ends when the kernel had the answer. Where the
// client itself is late, as it slept longer than it meant to or waited for a core, all that is due
// later moves by that.
Result<HttpLoad> DriveHttpAt(uint16_t port, const std::string& request, double rate,
                             double seconds);

// A whole request to localhost, with a bearer token if there is one, and with lines of further
// fields; GET if there is no body.
std::string HttpRequest(const std::string& path, const std::string& body,
                        const std::string& token = "", const std::string& fields = "");

}  // namespace tacit::bench
