#include "raw_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "support/eventually.h"

namespace tacit::http {
namespace {

int Connect(int family, const void* address, socklen_t size) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, static_cast<const sockaddr*>(address), size) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

}  // namespace

RawConnection::RawConnection(const std::string& address) {
  if (address.starts_with("unix:")) {
    sockaddr_un un{};
    un.sun_family = AF_UNIX;
    std::strncpy(un.sun_path, address.c_str() + 5, sizeof(un.sun_path) - 1);
    fd_ = Connect(AF_UNIX, &un, sizeof(un));
    return;
  }
  const size_t colon = address.rfind(':');
  const auto port = static_cast<uint16_t>(std::atoi(address.c_str() + colon + 1));
  if (address.starts_with('[')) {
    sockaddr_in6 in6{};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    inet_pton(AF_INET6, address.substr(1, colon - 2).c_str(), &in6.sin6_addr);
    fd_ = Connect(AF_INET6, &in6, sizeof(in6));
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &in.sin_addr);
    fd_ = Connect(AF_INET, &in, sizeof(in));
  }
}

RawConnection::~RawConnection() {
  if (fd_ >= 0) ::close(fd_);
}

bool RawConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool RawConnection::ReadMore() {
  pollfd wait{fd_, POLLIN, 0};
  constexpr std::chrono::milliseconds kLongest = test::kPatience;
  if (::poll(&wait, 1, static_cast<int>(kLongest.count())) <= 0) return false;
  char bytes[65536];
  const ssize_t got = ::recv(fd_, bytes, sizeof(bytes), 0);
  ended_ = got <= 0;
  if (ended_) return false;
  unread_.append(bytes, static_cast<size_t>(got));
  return true;
}

std::optional<RawResponse> RawConnection::Receive(bool is_head) {
  size_t end;
  while ((end = unread_.find("\r\n\r\n")) == std::string::npos)
    if (!ReadMore()) return std::nullopt;
  RawResponse response;
  response.head = unread_.substr(0, end + 2);
  unread_.erase(0, end + 4);
  response.status = std::atoi(response.head.c_str() + std::strlen("HTTP/1.1 "));
  const size_t field = response.head.find("Content-Length: ");
  size_t length = 0;
  if (field != std::string::npos && !is_head)
    length = std::strtoul(response.head.c_str() + field + 16, nullptr, 10);
  while (unread_.size() < length)
    if (!ReadMore()) return std::nullopt;
  response.body = unread_.substr(0, length);
  unread_.erase(0, length);
  return response;
}

bool RawConnection::Closes() {
  while (ReadMore()) unread_.clear();
  return ended_;
}

bool RawConnection::HasNews() const {
  pollfd now{fd_, POLLIN, 0};
  return ::poll(&now, 1, 0) > 0;
}

void RawConnection::CloseSending() { ::shutdown(fd_, SHUT_WR); }

std::string MakeRequest(std::string_view method, std::string_view target, std::string_view body) {
  std::string request;
  request.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: localhost\r\n");
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return request.append("\r\n").append(body);
}

}  // namespace tacit::http
