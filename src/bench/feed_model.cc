#include "bench/feed_model.h"

#include <algorithm>

namespace tacit::bench {

FeedOutlook LookAhead(const FeedRates& rates, const FeedLoad& load) {
  FeedOutlook outlook;
  outlook.version_rows = std::min(load.rows, load.changed_rows_s * load.interval_s);
  const double bytes = outlook.version_rows * rates.row_bytes + rates.version_bytes;
  outlook.broker_in_bytes_s = bytes / load.interval_s;
  outlook.broker_out_bytes_s = load.replicas * outlook.broker_in_bytes_s;
  const double sent_s = load.replicas * bytes / load.broker_bytes_s;
  const double applied_s = outlook.version_rows / rates.apply_rows_s + rates.version_s;
  outlook.lag_s =
      load.interval_s + outlook.version_rows / rates.publish_rows_s + std::max(sent_s, applied_s);
  const double topic_rows = load.rows * load.topic_factor;
  outlook.topic_bytes = topic_rows * rates.row_bytes;
  const double applied_whole_s = topic_rows / rates.first_rows_s;
  outlook.catch_up_s = std::max(applied_whole_s, outlook.topic_bytes / load.broker_bytes_s);
  outlook.all_begin_s =
      std::max(applied_whole_s, load.replicas * outlook.topic_bytes / load.broker_bytes_s);
  const double broker_rows_s = load.broker_bytes_s / (load.replicas * rates.row_bytes);
  using Bound = FeedOutlook::Bound;
  outlook.changed_rows_s_most = std::min({rates.publish_rows_s, rates.apply_rows_s, broker_rows_s});
  if (outlook.changed_rows_s_most == broker_rows_s) outlook.bound = Bound::kBroker;
  if (outlook.changed_rows_s_most == rates.publish_rows_s) outlook.bound = Bound::kTrainer;
  outlook.follows = outlook.version_rows <= outlook.changed_rows_s_most * load.interval_s;
  return outlook;
}

}  // namespace tacit::bench
