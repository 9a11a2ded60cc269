#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "event/batch.h"

namespace tacit::train {

// Tells which share of the records has come before, in all but its time and its id. It follows a
// sample of records, drawn by a hash of what they hold, and remembers the last 32,768 of the sample
// (256 KiB). The sample is halved as often as a window brings more than it needs.
class RepeatedRecords {
 public:
  RepeatedRecords();

  void See(const event::Batch& batch, size_t example);
  // Ends a window: the share, or nothing if too few of its records were in the sample.
  std::optional<double> EndWindow();

 private:
  std::vector<uint64_t> seen_;  // by the low bits of a record's hash
  uint64_t skip_mask_ = 0;      // a record is followed if none of these bits of its hash is set
  uint32_t followed_ = 0, repeated_ = 0;  // in the window, as far as they are in the sample now
};

}  // namespace tacit::train
