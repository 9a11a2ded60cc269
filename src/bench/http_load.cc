#include "bench/http_load.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace tacit::bench {
namespace {

double CpuSeconds(int who) {
  rusage used{};
  getrusage(who, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

double OthersCpuSeconds() { return CpuSeconds(RUSAGE_SELF) - CpuSeconds(RUSAGE_THREAD); }

tl::unexpected<Error> Broken(const char* what) {
  return Fail(ErrorCode::kIo, fmt::format("the benchmark's client: {}: {}", what,
                                          errno != 0 ? std::strerror(errno) : "closed"));
}

// One connection, and the answer that is coming on it.
class Client {
 public:
  ~Client() {
    if (fd_ >= 0) ::close(fd_);
  }

  Status Connect(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd_ < 0 || ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
      return Broken("connecting");
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return {};
  }

  // Asks the kernel when answers came, so that a client that has to wait for its core does not
  // count that as the server's time.
  Status AskForArrivals() {
    const int on = 1;
    if (::setsockopt(fd_, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) != 0)
      return Broken("asking for times of arrival");
    asks_ = true;
    return {};
  }

  Status Send(const std::string& request) {
    errno = 0;
    begun_ = Now();
    for (size_t sent = 0; sent < request.size();) {
      const ssize_t n = ::send(fd_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return Broken("sending");
      sent += static_cast<size_t>(n);
    }
    sent_ = Now();
    return {};
  }

  // Microseconds since the request was sent.
  Result<float> Receive() {
    bytes_.clear();
    size_t end = std::string::npos, length = 0;
    while (end == std::string::npos || bytes_.size() < end + 4 + length) {
      TACIT_ASSIGN(const size_t got, ReceivePiece());
      bytes_.append(piece_, got);
      if (end != std::string::npos) continue;
      end = bytes_.find("\r\n\r\n");
      const size_t field = bytes_.find("Content-Length: ");
      if (end != std::string::npos && field < end)
        length = std::strtoul(bytes_.c_str() + field + 16, nullptr, 10);
    }
    if (!bytes_.starts_with("HTTP/1.1 200"))
      return Fail(ErrorCode::kInternal,
                  fmt::format("the server answers the benchmark '{}'", bytes_.substr(0, 300)));
    return static_cast<float>(1e6 * (Now() - sent_));
  }

  // Seconds since 1970. The kernel's stamps are of this clock.
  static double Now() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return SecondsOf(now);
  }

  double begun() const { return begun_; }      // when the sending began
  double arrived() const { return arrived_; }  // when the answer's last piece had come

 private:
  static double SecondsOf(const timespec& time) {
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  // Receives what is there, and notes when it came, if the kernel was asked for that.
  Result<size_t> ReceivePiece() {
    errno = 0;
    iovec piece{.iov_base = piece_, .iov_len = sizeof(piece_)};
    alignas(cmsghdr) char control[64];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = ::recvmsg(fd_, &message, 0);
    if (got <= 0) return Broken("receiving");
    if (!asks_) return static_cast<size_t>(got);
    // The kernel begins to stamp some time after it was asked. Until then the client's own lateness
    // is in the time.
    arrived_ = Now();
    for (cmsghdr* m = CMSG_FIRSTHDR(&message); m != nullptr; m = CMSG_NXTHDR(&message, m)) {
      if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_TIMESTAMPNS) continue;
      timespec time{};
      std::memcpy(&time, CMSG_DATA(m), sizeof(time));
      arrived_ = SecondsOf(time);
    }
    return static_cast<size_t>(got);
  }

  int fd_ = -1;
  bool asks_ = false;
  double begun_ = 0, sent_ = 0, arrived_ = 0;
  std::string bytes_;
  char piece_[65536];
};

HttpLoad Summary(std::vector<float> latency, double seconds, double cpu_seconds) {
  HttpLoad load{.requests = latency.size(), .seconds = seconds};
  load.server_cpu_us = 1e6 * cpu_seconds / static_cast<double>(latency.size());
  std::sort(latency.begin(), latency.end());
  load.p50_us = latency[latency.size() / 2];
  load.p99_us = latency[latency.size() * 99 / 100];
  return load;
}

}  // namespace

Result<HttpLoad> DriveHttp(uint16_t port, const std::string& request, size_t connections,
                           double seconds) {
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < connections; ++i) {
    clients.push_back(std::make_unique<Client>());
    TACIT_RETURN_IF_ERROR(clients.back()->Connect(port));
  }
  const SystemClock clock;
  std::vector<float> latency;
  const double cpu = OthersCpuSeconds();
  const auto start = clock.Now();
  do {
    for (auto& client : clients) TACIT_RETURN_IF_ERROR(client->Send(request));
    for (auto& client : clients) {
      TACIT_ASSIGN(const float took, client->Receive());
      latency.push_back(took);
    }
  } while (Seconds(clock.Now() - start) < seconds);
  return Summary(std::move(latency), Seconds(clock.Now() - start), OthersCpuSeconds() - cpu);
}

Result<HttpLoad> DriveHttpAt(uint16_t port, const std::string& request, double rate,
                             double seconds) {
  Client client;
  TACIT_RETURN_IF_ERROR(client.Connect(port));
  TACIT_RETURN_IF_ERROR(client.AskForArrivals());
  std::vector<float> latency, seen;
  const double cpu = OthersCpuSeconds();
  const double start = Client::Now();
  double late = 0;      // of the client, in all: what is due moves by that
  double free = start;  // when the server had answered what was asked before
  for (uint64_t i = 0;; ++i) {
    const double due = start + static_cast<double>(i) / rate + late;
    if (due >= start + seconds) break;
    const double now = Client::Now();
    if (now < due) std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
    TACIT_RETURN_IF_ERROR(client.Send(request));
    const double possible = std::max(due, free);
    late += std::max(0.0, client.begun() - possible);
    TACIT_RETURN_IF_ERROR(client.Receive());
    free = client.arrived();
    const double waited = possible - due;
    latency.push_back(static_cast<float>(1e6 * (waited + free - client.begun())));
    seen.push_back(static_cast<float>(1e6 * (waited + Client::Now() - client.begun())));
  }
  HttpLoad load = Summary(std::move(latency), Client::Now() - start, OthersCpuSeconds() - cpu);
  std::sort(seen.begin(), seen.end());
  load.seen_p99_us = seen[seen.size() * 99 / 100];
  return load;
}

std::string HttpRequest(const std::string& path, const std::string& body, const std::string& token,
                        const std::string& fields) {
  const std::string bearer =
      fields + (token.empty() ? "" : fmt::format("Authorization: Bearer {}\r\n", token));
  if (body.empty())
    return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, bearer);
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{}"
      "Content-Length: {}\r\n\r\n{}",
      path, bearer, body.size(), body);
}

}  // namespace tacit::bench
