#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"

namespace tacit::stream {

// Answers HTTP requests on a port of its own of this machine, each connection's one after the other
// and those of different connections at once. Keeps what it was asked.
class HttpResponder {
 public:
  // From the head of a request to the whole answer; "" closes the connection without one. Several
  // threads may ask at once.
  using Answer = std::function<std::string(const std::string& head)>;

  // At `port`, to come back to where another one was; 0: any.
  explicit HttpResponder(Answer answer, uint16_t port = 0) : answer_(std::move(answer)) {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 128), 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~HttpResponder() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    for (Connection& connection : connections_) {
      ::shutdown(connection.peer.get(), SHUT_RDWR);
      connection.thread.join();
    }
  }
  HttpResponder(const HttpResponder&) = delete;
  HttpResponder& operator=(const HttpResponder&) = delete;

  uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> heads() const {
    std::lock_guard lock(mutex_);
    return heads_;
  }

  static std::string Reply(const std::string& status, const std::string& body,
                           const std::string& headers = "") {
    return "HTTP/1.1 " + status + "\r\n" + headers +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

 private:
  struct Connection {
    UniqueFd peer;
    std::thread thread;
  };

  void Run() {
    while (true) {
      UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (peer.get() < 0) return;
      Connection& connection = connections_.emplace_back(Connection{std::move(peer), {}});
      connection.thread = std::thread([this, fd = connection.peer.get()] {
        while (AnswerOne(fd)) {
        }
        ::shutdown(fd, SHUT_RDWR);
      });
    }
  }

  // Returns false once the connection is at its end.
  bool AnswerOne(int peer) {
    std::string head;
    char bytes[4096];
    while (head.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::read(peer, bytes, sizeof(bytes));
      if (got <= 0) return false;
      head.append(bytes, static_cast<size_t>(got));
    }
    {
      std::lock_guard lock(mutex_);
      heads_.push_back(head);
    }
    const std::string reply = answer_(head);
    for (size_t sent = 0; sent < reply.size();) {
      const ssize_t put = ::send(peer, reply.data() + sent, reply.size() - sent, MSG_NOSIGNAL);
      if (put <= 0) return false;
      sent += static_cast<size_t>(put);
    }
    return !reply.empty();
  }

  const Answer answer_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> heads_;
  std::list<Connection> connections_;  // the accepting thread's, until it has ended
  std::thread thread_;
};

}  // namespace tacit::stream
