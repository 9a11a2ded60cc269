#include "system/kafka/tcp_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "base/check.h"

namespace tacit::test {
namespace {

constexpr int kTickMs = 20;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

UniqueFd Connect(int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return UniqueFd();
  return fd;
}

bool WriteAll(int fd, const char* bytes, size_t size, const std::atomic<bool>& stopping) {
  while (size > 0) {
    pollfd ready{fd, POLLOUT, 0};
    if (::poll(&ready, 1, kTickMs) < 0 && errno != EINTR) return false;
    if (stopping) return false;
    if ((ready.revents & POLLOUT) == 0) {
      if (ready.revents != 0) return false;
      continue;
    }
    const ssize_t put = ::send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (put > 0) {
      bytes += put;
      size -= static_cast<size_t>(put);
    }
  }
  return true;
}

}  // namespace

TcpProxy::TcpProxy() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  TACIT_CHECK(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                  ::listen(listener_.get(), 64) == 0 &&
                  ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
              "no port on loopback");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

TcpProxy::~TcpProxy() {
  stopping_ = true;
  acceptor_.join();
  for (Wire& wire : wires_) wire.thread.join();
}

void TcpProxy::Accept() {
  while (!stopping_) {
    wires_.remove_if([](Wire& wire) {
      if (!wire.ended) return false;
      wire.thread.join();
      return true;
    });
    pollfd ready{listener_.get(), POLLIN, 0};
    if (::poll(&ready, 1, kTickMs) <= 0) continue;
    UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.get() < 0) continue;
    Wire& wire = wires_.emplace_back();
    wire.thread = std::thread([this, &wire, client = std::move(client)]() mutable {
      Carry(std::move(client));
      wire.ended = true;
    });
  }
}

void TcpProxy::Carry(UniqueFd client) {
  while (Blocked() && !stopping_) std::this_thread::sleep_for(std::chrono::milliseconds(kTickMs));
  const UniqueFd target = Connect(target_);
  if (target.get() < 0) return;
  std::vector<char> bytes(1 << 18);
  pollfd ends[2] = {{client.get(), POLLIN, 0}, {target.get(), POLLIN, 0}};
  while (!stopping_) {
    if (Blocked()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kTickMs));
      continue;
    }
    if (::poll(ends, 2, kTickMs) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (ends[i].revents == 0) continue;
      const ssize_t got = ::recv(ends[i].fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) return;
      if (!WriteAll(ends[1 - i].fd, bytes.data(), static_cast<size_t>(got), stopping_)) return;
    }
  }
}

}  // namespace tacit::test
