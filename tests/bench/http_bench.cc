// Requests per second and latency of the HTTP server on this machine: http_bench [SECONDS]
// Clients are a process of their own, so that the server's CPU time is its alone.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../serve/fake_snapshot.h"
#include "serve/api.h"
#include "serve/server.h"

namespace tacit::serve {
namespace {

using SteadyClock = std::chrono::steady_clock;

double Now() {
  return std::chrono::duration<double>(SteadyClock::now().time_since_epoch()).count();
}

double CpuSeconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

int ConnectLoopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) std::abort();
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

// Reads one whole response with Content-Length; false when it is not a 200.
bool ReadResponse(int fd, std::string* bytes) {
  bytes->clear();
  size_t end = std::string::npos, length = 0;
  char piece[65536];
  while (end == std::string::npos || bytes->size() < end + 4 + length) {
    const ssize_t got = ::recv(fd, piece, sizeof(piece), 0);
    if (got <= 0) return false;
    bytes->append(piece, static_cast<size_t>(got));
    end = bytes->find("\r\n\r\n");
    if (end != std::string::npos)
      length = std::strtoul(bytes->c_str() + bytes->find("Content-Length: ") + 16, nullptr, 10);
  }
  return bytes->starts_with("HTTP/1.1 200");
}

struct Figures {
  uint64_t requests = 0;
  double p50_us = 0, p99_us = 0;
};

// `connections` clients in one thread, each with one request on its way at a time.
Figures Drive(uint16_t port, const std::string& request, size_t connections, double seconds) {
  std::vector<int> fds;
  for (size_t i = 0; i < connections; ++i) fds.push_back(ConnectLoopback(port));
  std::vector<double> sent(connections);
  std::vector<float> latency;
  std::string response;
  const double until = Now() + seconds;
  while (Now() < until) {
    for (size_t i = 0; i < connections; ++i) {
      sent[i] = Now();
      if (::send(fds[i], request.data(), request.size(), 0) < 0) std::abort();
    }
    for (size_t i = 0; i < connections; ++i) {
      if (!ReadResponse(fds[i], &response)) std::abort();
      latency.push_back(static_cast<float>(1e6 * (Now() - sent[i])));
    }
  }
  for (const int fd : fds) ::close(fd);
  Figures figures;
  figures.requests = latency.size();
  std::sort(latency.begin(), latency.end());
  figures.p50_us = latency[latency.size() / 2];
  figures.p99_us = latency[latency.size() * 99 / 100];
  return figures;
}

// Measures in a child and prints one line.
void Measure(const char* name, uint16_t port, const std::string& request, size_t connections,
             size_t rows, double seconds) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) std::abort();
  const double cpu = CpuSeconds(RUSAGE_SELF), start = Now();
  const pid_t child = ::fork();
  if (child == 0) {
    const Figures figures = Drive(port, request, connections, seconds);
    if (::write(pipe_ends[1], &figures, sizeof(figures)) != sizeof(figures)) ::_exit(1);
    ::_exit(0);
  }
  Figures figures;
  if (::read(pipe_ends[0], &figures, sizeof(figures)) != sizeof(figures)) std::abort();
  ::waitpid(child, nullptr, 0);
  const double wall = Now() - start, used = CpuSeconds(RUSAGE_SELF) - cpu;
  const auto n = static_cast<double>(figures.requests);
  std::printf(
      "%-26s %4zu conn %9.0f req/s %9.0f req/CPU s %10.0f rows/CPU s  p50 %7.0f us  "
      "p99 %7.0f us\n",
      name, connections, n / wall, n / used, n * static_cast<double>(rows) / used, figures.p50_us,
      figures.p99_us);
  std::fflush(stdout);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

// Criteo's shape: 13 numbers, 26 categories, the model of the paper.
ScoringModel CriteoModel() {
  event::FeatureSchema schema;
  for (int i = 1; i <= 13; ++i) schema.dense.push_back({"I" + std::to_string(i)});
  for (int i = 1; i <= 26; ++i)
    schema.categorical.push_back({"C" + std::to_string(i), 5000, 14, false, 1});
  ScoringModel model = SmallModel();
  model.transform = std::make_shared<event::FeatureTransform>(schema);
  model.model = {};
  model.model.space = model.transform->row_space();
  model.model.dense_width = 13;
  return model;
}

std::string Post(const std::string& body) {
  return "POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string ScoreBody(size_t rows) {
  std::string body = R"({"learner":"ctr","rows":[)";
  for (size_t r = 0; r < rows; ++r) {
    body += r == 0 ? "" : ",";
    body += R"({"dense":[1,2,null,4,5,6,7,8,9,10,11,12,13],"categorical":[)";
    for (size_t c = 0; c < 26; ++c) {
      char value[16];
      std::snprintf(value, sizeof(value), "%s\"%08zx\"", c == 0 ? "" : ",", (r * 31 + c) % 997);
      body += value;
    }
    body += "]}";
  }
  return body + "]}";
}

int Run(double seconds) {
  const ScoringModel model = CriteoModel();
  FakeStore store(model);
  store.Commit(1);
  metrics::Registry registry;
  Services services;
  services.latest = [&] { return store.Latest(); };
  services.models = {model};
  services.readiness = [] { return Readiness{true, ""}; };
  services.metrics = &registry;
  ServerOptions options;
  options.listeners = {{"127.0.0.1:0", Role::kPublic}};
  auto server = Server::Start(options, MakeApi(services), registry);
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 1;
  }
  const std::string& address = (*server)->addresses()[0];
  const auto port = static_cast<uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1));
  const std::string health = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const size_t connections : {1u, 16u, 64u})
    Measure("healthz", port, health, connections, 0, seconds);
  Measure("score, 1 row", port, Post(ScoreBody(1)), 16, 1, seconds);
  Measure("score, 64 rows", port, Post(ScoreBody(64)), 4, 64, seconds);
  Measure("score, 1024 rows", port, Post(ScoreBody(1024)), 2, 1024, seconds);
  return 0;
}

}  // namespace
}  // namespace tacit::serve

int main(int argc, char** argv) { return tacit::serve::Run(argc > 1 ? std::atof(argv[1]) : 2.0); }
