#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacit::serve {

struct Response {
  uint32_t status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;

  // The value of the first header of this name in any case, or "".
  std::string_view Header(std::string_view name) const;
};

// Sends one HTTP request on its own connection; blocks. `url` is http://host[:port][/path] or
// unix:/socket/path[:/path]. A reply of any status is a success. kUnavailable: no server answers
// there within `timeout`; kInvalidArgument: the url; kIo: the answer is not HTTP.
Result<Response> Fetch(const std::string& url, const std::string& method, std::string_view body,
                       std::chrono::milliseconds timeout);

// A url for `path` ("/v1/score") of the server at `base`, which may end in a slash.
std::string JoinUrl(std::string_view base, std::string_view path);

}  // namespace tacit::serve
