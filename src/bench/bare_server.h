#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace tacit::bench {

// A minimal Boost.Beast server with one thread: it reads whole requests and answers each with the
// same bytes, without limits, timeouts or routes: the limit to compare http::Server with.
class BareServer {
 public:
  // Listens on 127.0.0.1, at a port of the system's choice. Every answer is a 200 with this body.
  static Result<std::unique_ptr<BareServer>> Start(const std::string& body);
  virtual ~BareServer() = default;  // closes all connections

  virtual uint16_t port() const = 0;
};

}  // namespace tacit::bench
