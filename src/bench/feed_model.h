#pragma once

#include <cstdint>

// A feed with more rows and replicas than there are here, computed from rates that were measured.
namespace tacit::bench {

// Measured: rows are those of the bench, of dimension 16.
struct FeedRates {
  double row_bytes = 0;       // key and value of a row's record
  double version_bytes = 0;   // of a version without its rows: marks
  double publish_rows_s = 0;  // the trainer
  double apply_rows_s = 0;    // a replica that follows: decoded, assembled, applied, folded
  double first_rows_s = 0;    // a replica that begins, from the topic's first record to its version
  double version_s = 0;       // of a version without its rows, in a replica: sync and swap
};

struct FeedLoad {
  double rows = 0;  // of the model
  double replicas = 1;
  double changed_rows_s = 0;  // rows that training changes in a second, each counted once a version
  double interval_s = 1;      // feed.interval_ms
  double broker_bytes_s = 0;  // that the brokers send out, all together
  double topic_factor = 1;    // bytes of the topic over those of its newest records
};

struct FeedOutlook {
  double version_rows = 0;
  double broker_in_bytes_s = 0, broker_out_bytes_s = 0;
  double lag_s = 0;  // of a replica that follows, at the most
  double topic_bytes = 0;
  double catch_up_s = 0;   // one replica that begins with the topic
  double all_begin_s = 0;  // all replicas begin with it at once
  // Rows that training may change in a second before something cannot follow any more.
  double changed_rows_s_most = 0;
  enum class Bound : uint8_t { kTrainer, kReplica, kBroker } bound = Bound::kReplica;
  bool follows = false;  // the load is below that
};

// The formula:
//     version  = min(rows, changed x interval) rows
//     bytes    = version x row bytes + bytes of marks
//     in, out  = bytes / interval, replicas x in
//     lag      = interval + version / publish + max(replicas x bytes / broker,
//                                                   version / apply + seconds of a version)
//     catch-up = max(rows x factor / first, topic bytes / broker)   (all: replicas x topic bytes)
//     most     = min(publish, apply, broker / (replicas x row bytes))
FeedOutlook LookAhead(const FeedRates& rates, const FeedLoad& load);

}  // namespace tacit::bench
