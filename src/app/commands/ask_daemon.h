#pragma once

#include <string>
#include <string_view>

#include "serve/client.h"

namespace tacit::app {

// One request to a running daemon, path as in "/v1/score". kIo where none answers: exit status 3 is
// for stores that refuse.
Result<serve::Response> AskDaemon(const std::string& url, std::string_view path,
                                  const std::string& method, std::string_view body);

}  // namespace tacit::app
