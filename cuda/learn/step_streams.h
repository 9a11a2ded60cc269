#pragma once

#include <cstdint>
#include <utility>

#include "base/result.h"
#include "cuda/device/stream.h"

namespace tacit::cuda {

// The places of a step where one stream waits for another.
enum class StepPoint : uint32_t {
  kArrived,   // the model's stream: a step that was brought ahead is there
  kBegun,     // the stream beside it: everything before has run
  kSelected,  // the model's: which rows are written is known
  kScaled,    // the stream beside it: units' scales are known, and dropped units are wiped
  kSummed,    // the stream beside it: a layer's sums are there
  kDone,      // the model's: all that went beside it has run
};

// Makes later work on the stream wait for the event. A function of its own, so that tests can link
// one that leaves a wait out.
Status AwaitPoint(Stream& stream, const Event& event, StepPoint point);

// The two streams of a step's kernels: `model` for the passes, norms and products, `beside` for
// what depends on ids and noise alone until sums are formed. Work that is put on them between Fork
// and Join begins behind what is on `model` and ends before what comes there next.
class StepStreams {
 public:
  // Without overlap both are one stream.
  static Result<StepStreams> Make(Device& device, bool overlap);

  Stream& model() { return model_; }
  Stream& beside() { return overlap_ ? beside_ : model_; }
  Status Fork() { return Order(model_, begun_, beside(), StepPoint::kBegun); }
  Status Join() { return Order(beside(), done_, model_, StepPoint::kDone); }
  // `beside` goes on, `model` waits for what is on it now when it calls AwaitSelected.
  Status MarkSelected() { return beside().Record(selected_); }
  Status AwaitSelected() { return AwaitPoint(model_, selected_, StepPoint::kSelected); }
  // `beside` waits for what is on `model` now.
  Status AwaitScaled() { return Order(model_, scaled_, beside(), StepPoint::kScaled); }
  Status AwaitSummed() { return Order(model_, summed_, beside(), StepPoint::kSummed); }

 private:
  StepStreams(bool overlap, Stream model, Stream beside, Event begun, Event selected, Event scaled,
              Event summed, Event done)
      : overlap_(overlap),
        model_(std::move(model)),
        beside_(std::move(beside)),
        begun_(std::move(begun)),
        selected_(std::move(selected)),
        scaled_(std::move(scaled)),
        summed_(std::move(summed)),
        done_(std::move(done)) {}
  static Status Order(Stream& first, Event& event, Stream& second, StepPoint point) {
    TACIT_RETURN_IF_ERROR(first.Record(event));
    return AwaitPoint(second, event, point);
  }

  bool overlap_ = true;
  Stream model_, beside_;
  Event begun_, selected_, scaled_, summed_, done_;
};

}  // namespace tacit::cuda
