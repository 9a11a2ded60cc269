#include "cuda/learn/step_streams.h"

#include <utility>

namespace tacit::cuda {

Status AwaitPoint(Stream& stream, const Event& event, StepPoint) { return stream.Wait(event); }

Result<StepStreams> StepStreams::Make(Device& device, bool overlap) {
  TACIT_ASSIGN(Stream model, Stream::Make(device));
  TACIT_ASSIGN(Stream beside, Stream::Make(device));
  TACIT_ASSIGN(Event begun, Event::Make(device));
  TACIT_ASSIGN(Event selected, Event::Make(device));
  TACIT_ASSIGN(Event scaled, Event::Make(device));
  TACIT_ASSIGN(Event summed, Event::Make(device));
  TACIT_ASSIGN(Event done, Event::Make(device));
  return StepStreams(overlap, std::move(model), std::move(beside), std::move(begun),
                     std::move(selected), std::move(scaled), std::move(summed), std::move(done));
}

}  // namespace tacit::cuda
