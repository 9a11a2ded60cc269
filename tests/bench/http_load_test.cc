// The benchmark's client at a steady pace. Servers here have a plan for how long each answer takes;
// times are only held to be at least what must have gone by.
#include "bench/http_load.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace tacit::bench {
namespace {

using std::chrono::milliseconds;

// Answers one connection's requests, each after the pause that `pause` says for its number.
class SlowServer {
 public:
  explicit SlowServer(std::function<milliseconds(size_t)> pause) : pause_(std::move(pause)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~SlowServer() {
    thread_.join();
    ::close(listener_);
  }
  uint16_t port() const { return port_; }

 private:
  void Serve() {
    const int fd = ::accept(listener_, nullptr, nullptr);
    const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    char bytes[4096];
    for (size_t i = 0; ::recv(fd, bytes, sizeof(bytes), 0) > 0; ++i) {
      std::this_thread::sleep_for(pause_(i));
      if (::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) break;
    }
    ::close(fd);
  }

  const std::function<milliseconds(size_t)> pause_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

Result<HttpLoad> Drive(std::function<milliseconds(size_t)> pause) {
  const SlowServer server(std::move(pause));
  return DriveHttpAt(server.port(), HttpRequest("/", ""), 1000, 0.1);
}

TEST(HttpLoadTest, ARequestThatWaitsForTheOneBeforeHasWaitedSinceItWasDue) {
  const auto load = Drive([](size_t) { return milliseconds(4); });
  ASSERT_TRUE(load) << load.error().message;
  // Request n is due after n ms, and is answered after 4 (n + 1) ms at the earliest. What is due
  // moves only where the client itself was late.
  ASSERT_GE(load->requests, 2u);
  const double n = static_cast<double>(load->requests);
  EXPECT_GE(load->p50_us, 1000 * (4 + 3 * (n / 2 - 1)));
  EXPECT_GE(load->p99_us, 1000 * (4 + 3 * (n * .99 - 1)));
}

TEST(HttpLoadTest, OnePauseDelaysWhatIsDueInIt) {
  const auto load = Drive([](size_t i) { return milliseconds(i == 1 ? 40 : 0); });
  ASSERT_TRUE(load) << load.error().message;
  ASSERT_GE(load->requests, 2u);
  EXPECT_GE(load->p99_us, 39000);  // the longest of a hundred at most
}

TEST(HttpLoadTest, TheClientSeesAnAnswerAfterTheKernel) {
  const auto load = Drive([](size_t) { return milliseconds(0); });
  ASSERT_TRUE(load) << load.error().message;
  EXPECT_GT(load->p50_us, 0);
  EXPECT_GE(load->p99_us, load->p50_us);
  EXPECT_GE(load->seen_p99_us, load->p99_us);
}

}  // namespace
}  // namespace tacit::bench
