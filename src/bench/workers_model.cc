#include "bench/workers_model.h"

#include <algorithm>
#include <cmath>

namespace tacit::bench {

WorkersOutlook LookAhead(const WorkersRates& rates, const WorkersLoad& load) {
  const double slice = rates.events_s * load.period_s;
  const double power = std::log(rates.large.rows / rates.small.rows) /
                       std::log(rates.large.events / rates.small.events);
  WorkersOutlook outlook;
  outlook.message_rows =
      std::min(rates.rows_most, rates.small.rows * std::pow(slice / rates.small.events, power));
  const double period_rows = load.workers * outlook.message_rows;
  outlook.period_bytes = period_rows * rates.row_bytes;
  outlook.adding_s = period_rows * rates.add_row_s;
  outlook.gap_s = outlook.message_rows * rates.add_row_s + rates.release_s + rates.rest_s;
  outlook.adds_in_time = outlook.adding_s <= load.period_s;
  outlook.events_s =
      load.workers * slice / (std::max(load.period_s, outlook.adding_s) + outlook.gap_s);
  outlook.event_bytes_s = outlook.events_s * rates.event_bytes;
  return outlook;
}

}  // namespace tacit::bench
