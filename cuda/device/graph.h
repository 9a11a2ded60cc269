#pragma once

#include <functional>

#include "base/result.h"
#include "cuda/device/stream.h"

namespace tacit::cuda {

// A piece of work, recorded once and launched by one call as often as wanted. Sizes, pointers and
// numbers that kernels were given then are bound for good. A number that changes from step to step
// is read from device memory. Nothing secret is bound: a key that is an argument would stay in the
// graph.
class Graph {
 public:
  // `work` puts kernels, copies and fills on the stream it is given, and nothing else. It runs
  // once; the work it puts there does not run. Its own failure is returned.
  //
  // Another stream takes part once it waits for an event that was recorded in the work, until the
  // stream waits for an event behind all that the other was given. So the parts that depend on
  // nothing of each other run beside each other. Of events from outside none can be waited for.
  static Result<Graph> Capture(Stream& stream, const std::function<Status(Stream&)>& work);
  Graph(Graph&& other) noexcept { *this = std::move(other); }
  Graph& operator=(Graph&& other) noexcept;
  ~Graph();

  // Launches all of it, in order, after the work that is on the stream.
  Status Launch(Stream& stream);

 private:
  Graph() = default;

  runtime::Graph handle_ = nullptr;
};

}  // namespace tacit::cuda
