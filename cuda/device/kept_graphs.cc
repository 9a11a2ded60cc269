#include "cuda/device/kept_graphs.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cuda/device/device.h"

namespace tacit::cuda {

Status KeptGraphs::ListOf(const std::function<Status()>& work, std::string* what) {
  stream_->ListTo(what);
  beside_->ListTo(what);
  Status listed = work();
  stream_->ListTo(nullptr);
  beside_->ListTo(nullptr);
  return listed;
}

Status KeptGraphs::Run(const std::function<Status()>& work) {
  what_.clear();
  TACIT_RETURN_IF_ERROR(ListOf(work, &what_));
  const auto known = std::ranges::find(kept_, what_, &Kept::what);
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
  } else {
    const uint64_t digest = std::hash<std::string_view>()(what_);
    const auto seen = std::ranges::find(seen_, digest);
    if (seen == seen_.end()) {
      seen_.push_front(digest);
      if (seen_.size() > 2 * kMost) seen_.pop_back();
      return work();
    }
    TACIT_ASSIGN(Graph graph, Graph::Capture(*stream_, [&](Stream&) { return work(); }));
    ++captured_;
    seen_.erase(seen);
    kept_.push_front({what_, std::move(graph)});
    if (kept_.size() > kMost) kept_.pop_back();
  }
  ++launched_;
  return kept_.front().graph.Launch(*stream_);
}

}  // namespace tacit::cuda
