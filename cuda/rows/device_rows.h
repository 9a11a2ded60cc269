#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/kernels/dense/gather.h"
#include "cuda/kernels/parts/row_places.h"

namespace tacit::cuda {

// A learner's rows in device memory, for the kernels of its steps: whole tables, or a cache of
// them. Which it is changes no bit of what is learnt. Not thread-safe.
//
// A step is Begin, perhaps NameExtra, FetchAnnounced, End. The engine's stream runs the step's
// kernels; it is idle when Begin and End are called (except for Begin's own work and
// the steps of may_begin_ahead). After a failure the object must not be used again.
class DeviceRows {
 public:
  virtual ~DeviceRows() = default;

  // The places of rows, for kernels. Good until the next call that is not const.
  struct View {
    RowPlaces places = {};
    DeviceSpan<const DeviceSlot> slots = {};
    // Per column of the model's input its slot: one table a slot, side by side.
    DeviceSpan<const uint32_t> slot_of = {};
    bool has_fours = false;            // GatherInput::has_fours
    DeviceSpan<uint8_t> changed = {};  // WrittenRows::changed
  };
  virtual View view() const = 0;
  // Rows are not named by their numbers.
  virtual bool has_names() const { return true; }
  // Begin may be called for the next step before End of this one, while its kernels run.
  virtual bool may_begin_ahead() const { return false; }
  // Names are below this. It may grow in Begin and in NameExtra, and what was below stays.
  virtual uint64_t names() const = 0;

  // The rows of the step behind the next one, to be fetched ahead. They are copied.
  virtual void Announce(std::span<const uint64_t>) {}

  enum class Purpose {
    kStep,
    kPreview,  // nothing will be written; what was fetched ahead stays for the step after it
  };
  // The name of each entry's row, equal for equal rows, ready for work that is put on the engine's
  // stream from here on. Empty where rows are named by their numbers.
  virtual Result<DeviceSpan<const uint32_t>> Begin(std::span<const uint64_t> rows,
                                                   Purpose purpose) = 0;
  // The same for rows that the step writes without touching them; any may be touched all the same.
  virtual Result<DeviceSpan<const uint32_t>> NameExtra(std::span<const uint64_t> rows) = 0;
  // Fetches what was announced while the engine's stream runs the step.
  virtual Status FetchAnnounced() { return {}; }
  // Ends a step that wrote these rows.
  virtual Status End(std::span<const uint32_t> written) = 0;
  // Brings home to the host's rows what was written, and nothing else. Rows may be on their way
  // then (store::WorkingRows::Expect).
  virtual Status Settle() = 0;
  // Tells whether those are numbers of a working model.
  virtual bool settled_numbers() const { return true; }
};

}  // namespace tacit::cuda
