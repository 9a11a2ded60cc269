#pragma once

// Learning with more workers than there are here, computed from rates that were measured.
namespace tacit::bench {

// Measured.
struct WorkersRates {
  double events_s = 0;     // one worker: reads and sums up
  double event_bytes = 0;  // of a record in its topic
  // Messages of two sizes: their events and the rows that they touch.
  struct Message {
    double events = 0, rows = 0;
  };
  Message small, large;
  double rows_most = 0;  // of the model
  double row_bytes = 0;  // of a message
  double add_row_s = 0;  // the trainer: a row of a message is checked, read and added
  double release_s = 0;  // noise and update of a period
  double rest_s = 0;  // of the gap: commit, feed, and the first records (tacit_period_gap_seconds)
};

struct WorkersLoad {
  double workers = 1;
  double period_s = 10;  // for which workers sum
};

struct WorkersOutlook {
  double message_rows = 0, period_bytes = 0;  // of one message; of all of a period
  double adding_s = 0;                        // the trainer's time for them
  double gap_s = 0;                           // in which workers wait
  double events_s = 0;                        // all in all
  double event_bytes_s = 0;                   // that the brokers send to workers
  bool adds_in_time = false;                  // the trainer adds up before the period ends
};

// The formula:
//     slice    = events of a worker x period
//     rows     = a power of the slice through both messages, and at most the model's
//     adding   = workers x rows x add
//     gap      = rows x add (the last message) + release + rest
//     events/s = workers x slice / (max(period, adding) + gap)
WorkersOutlook LookAhead(const WorkersRates& rates, const WorkersLoad& load);

}  // namespace tacit::bench
