#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "base/result.h"
#include "cuda/device/graph.h"
#include "cuda/device/stream.h"

namespace tacit::cuda {

// Work that comes again and again, launched as a graph where it is the same as before: every
// kernel with its arguments, every copy and every wait, byte for byte. What differs in one byte is
// other work, so a graph never runs with sizes or addresses of the past. Work that comes for the
// first time is launched as it is; the second time it becomes a graph.
class KeptGraphs {
 public:
  static constexpr size_t kMost = 8;

  // Work on `stream`, and on `beside` as graph.h has it; both must outlive it.
  KeptGraphs(Stream& stream, Stream& beside) : stream_(&stream), beside_(&beside) {}

  // Launches what `work` puts on the two streams, and nowhere else, behind what is on `stream`.
  // `work` is called up to twice: it must put the same there both times, and change nothing of the
  // host's on which that depends.
  Status Run(const std::function<Status()>& work);

  // For tests and operators: what came as graphs, and graphs that were made.
  uint64_t launched() const { return launched_; }
  uint64_t captured() const { return captured_; }

 private:
  struct Kept {
    std::string what;
    Graph graph;
  };
  Status ListOf(const std::function<Status()>& work, std::string* what);

  Stream *stream_, *beside_;
  std::string what_;          // of the work under way
  std::list<Kept> kept_;      // the last used first
  std::list<uint64_t> seen_;  // digests of what came once, the last first
  uint64_t launched_ = 0, captured_ = 0;
};

}  // namespace tacit::cuda
