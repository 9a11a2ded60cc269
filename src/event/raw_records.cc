#include "event/raw_records.h"

namespace tacit::event {

void RawRecords::Clear() {
  partition = 0;
  first_offset = 0;
  origin.clear();
  origin_line = 0;
  bytes.clear();
  end.clear();
  timestamp_ms.clear();
  event_id.Clear();
  faults.clear();
  cuts.clear();
  period.clear();
  sums.clear();
  summed = {};
  recount = false;
}

}  // namespace tacit::event
