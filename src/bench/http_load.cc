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

  Status Send(const std::string& request) {
    errno = 0;
    for (size_t sent = 0; sent < request.size();) {
      const ssize_t n = ::send(fd_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return Broken("sending");
      sent += static_cast<size_t>(n);
    }
    sent_ = clock_.Now();
    return {};
  }

  // Microseconds since the request was sent.
  Result<float> Receive() {
    bytes_.clear();
    size_t end = std::string::npos, length = 0;
    while (end == std::string::npos || bytes_.size() < end + 4 + length) {
      errno = 0;
      const ssize_t got = ::recv(fd_, piece_, sizeof(piece_), 0);
      if (got <= 0) return Broken("receiving");
      bytes_.append(piece_, static_cast<size_t>(got));
      if (end != std::string::npos) continue;
      end = bytes_.find("\r\n\r\n");
      const size_t field = bytes_.find("Content-Length: ");
      if (end != std::string::npos && field < end)
        length = std::strtoul(bytes_.c_str() + field + 16, nullptr, 10);
    }
    if (!bytes_.starts_with("HTTP/1.1 200"))
      return Fail(ErrorCode::kInternal,
                  fmt::format("the server answers the benchmark '{}'", bytes_.substr(0, 300)));
    return static_cast<float>(1e6 * Seconds(clock_.Now() - sent_));
  }

 private:
  const SystemClock clock_;
  int fd_ = -1;
  SystemClock::TimePoint sent_;
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
  const SystemClock clock;
  std::vector<float> latency;
  const double cpu = OthersCpuSeconds();
  const auto start = clock.Now();
  double overslept = 0;  // in all
  for (uint64_t i = 0;; ++i) {
    const double due = static_cast<double>(i) / rate + overslept;
    if (due >= seconds) break;
    double now = Seconds(clock.Now() - start);
    const double waited = std::max(0.0, now - due);
    if (now < due) {
      std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
      // A client that wakes up late is no fault of the server's: what is due moves with it.
      now = Seconds(clock.Now() - start);
      overslept += std::max(0.0, now - due);
    }
    TACIT_RETURN_IF_ERROR(client.Send(request));
    TACIT_ASSIGN(const float took, client.Receive());
    latency.push_back(took + static_cast<float>(1e6 * waited));
  }
  return Summary(std::move(latency), Seconds(clock.Now() - start), OthersCpuSeconds() - cpu);
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
