#include "cuda/device/graph.h"

#include "cuda/device/device.h"

namespace tacit::cuda {

Result<Graph> Graph::Capture(Stream& stream, const std::function<Status(Stream&)>& work) {
  Device& device = stream.device();
  device.CheckOwner();
  TACIT_RETURN_IF_ERROR(device.Health());
  TACIT_RETURN_IF_ERROR(
      device.Check(runtime::BeginCapture(stream.handle()), "beginning to capture a graph"));
  Status done = work(stream);
  Graph graph;
  // The capture always ends, or the stream would never run anything again.
  Status ended =
      device.Check(runtime::EndCapture(stream.handle(), &graph.handle_), "capturing a graph");
  TACIT_RETURN_IF_ERROR(std::move(done));
  TACIT_RETURN_IF_ERROR(std::move(ended));
  return graph;
}

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

Graph::~Graph() {
  if (handle_ != nullptr) (void)runtime::DropGraph(handle_);
}

Status Graph::Launch(Stream& stream) {
  stream.device().CheckOwner();
  TACIT_RETURN_IF_ERROR(stream.device().Health());
  return stream.device().Check(runtime::LaunchGraph(handle_, stream.handle()), "launching a graph");
}

}  // namespace tacit::cuda
