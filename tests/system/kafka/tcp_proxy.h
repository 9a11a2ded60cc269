#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <thread>

#include "base/files/unique_fd.h"

namespace tacit::test {

// A wire to a port of loopback that can be cut: while it is, connections stay as they are, new ones
// are taken, and nothing gets through in either direction, as if packets were lost on the way.
// Thread-safe.
class TcpProxy {
 public:
  TcpProxy();
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  // The port it listens on, on loopback.
  uint16_t port() const { return port_; }
  // Sets the port it leads to; until then it behaves as if it were cut.
  void LeadTo(int port) { target_ = port; }
  void Cut() { cut_ = true; }
  void Mend() { cut_ = false; }

 private:
  struct Wire {
    std::thread thread;
    std::atomic<bool> ended = false;
  };

  void Accept();
  void Carry(UniqueFd client);
  bool Blocked() const { return cut_ || target_ == 0; }

  UniqueFd listener_;
  uint16_t port_ = 0;
  std::atomic<int> target_ = 0;
  std::atomic<bool> cut_ = false, stopping_ = false;
  std::list<Wire> wires_;  // the accepting thread's
  std::thread acceptor_;
};

}  // namespace tacit::test
