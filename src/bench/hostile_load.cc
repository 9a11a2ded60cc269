#include "bench/hostile_load.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "bench/http_load.h"

namespace tacit::bench {
namespace {

constexpr int kBusy = 2;

Result<int> Connect(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket >= 0 && ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0)
    return socket;
  const std::string why = std::strerror(errno);
  if (socket >= 0) ::close(socket);
  return Fail(ErrorCode::kIo, fmt::format("a hostile connection: {}", why));
}

}  // namespace

HostileLoad::~HostileLoad() {
  stop_ = true;
  for (std::thread& thread : busy_) thread.join();
  for (const int socket : held_) ::close(socket);
}

Status HostileLoad::Start(uint16_t port, size_t connections, const std::string& large_request) {
  static constexpr std::string_view kBegun[] = {
      "", "GET /readyz HTTP/1.1\r\nHost: localhost\r\nX",
      "POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8388608\r\n\r\n{\"rows\":["};
  for (size_t i = 0; i < connections; ++i) {
    TACIT_ASSIGN(const int socket, Connect(port));
    held_.push_back(socket);
    const std::string_view begun = kBegun[i % std::size(kBegun)];
    if (!begun.empty() && ::send(socket, begun.data(), begun.size(), MSG_NOSIGNAL) < 0)
      return Fail(ErrorCode::kIo, "a hostile connection was closed at once");
  }
  for (int i = 0; i < kBusy; ++i)
    busy_.emplace_back([this, port, large_request] {
      // A refused client asks again.
      while (!stop_) (void)DriveHttp(port, large_request, 1, 0.1);
    });
  return {};
}

}  // namespace tacit::bench
