#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"

namespace tacit::bench {

// Strangers who hold a listener's connections: some send nothing, some begin a header, some a body.
// Two more request the largest answer over and over. The load lasts until it is destroyed.
class HostileLoad {
 public:
  HostileLoad() = default;
  ~HostileLoad();
  HostileLoad(const HostileLoad&) = delete;
  HostileLoad& operator=(const HostileLoad&) = delete;

  Status Start(uint16_t port, size_t connections, const std::string& large_request);
  size_t connections() const { return held_.size(); }

 private:
  std::vector<int> held_;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> busy_;
};

}  // namespace tacit::bench
