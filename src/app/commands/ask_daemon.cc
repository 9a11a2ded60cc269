#include "app/commands/ask_daemon.h"

#include <fmt/format.h>

#include <chrono>

namespace tacit::app {

Result<serve::Response> AskDaemon(const std::string& url, std::string_view path,
                                  const std::string& method, std::string_view body) {
  auto response = serve::Fetch(serve::JoinUrl(url, path), method, body, std::chrono::seconds(10));
  if (response || response.error().code != ErrorCode::kUnavailable) return response;
  return Fail(ErrorCode::kIo, fmt::format("no daemon answers at {}", response.error().message));
}

}  // namespace tacit::app
