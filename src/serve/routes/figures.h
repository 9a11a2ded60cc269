#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/user_uses.h"
#include "privacy/allowance_forecast.h"
#include "privacy/forecast.h"

// Figures that the dashboard shows beside the ledger's. Nobody added noise to them: they are the
// operator's, and they are neither collected nor sent where the operator has switched them off.
namespace tacit::serve {

// The counters of a process at a moment since its start.
struct StreamSample {
  int64_t time_ms = 0;  // UTC
  uint64_t read = 0;    // records read
  uint64_t dead = 0;    // of these, those that could not be learnt from
  uint64_t learnt = 0;  // events in steps, of the learner that is furthest
  uint64_t ahead = 0;   // records known and not read yet
  uint64_t commits = 0;
};

// The time that a dashboard looks back on.
enum class LookBack : uint8_t { kMinutes, kHours, kDay };
inline constexpr size_t kLookBacks = 3;

// The quality of predictions that stand side by side in the stream; train::QualityPoint, as it is
// sent.
struct QualityFigures {
  uint64_t events = 0, clicks = 0;
  double loss_sum = 0, predicted = 0;
  uint64_t asked = 0, hits = 0, popular_hits = 0, successor_hits = 0;
  double gain = 0;
  int64_t first_ms = 0, last_ms = 0;  // the events' times; 0: they have none
};

struct LearnerFigures {
  std::string learner;
  bool recommends = false;  // its quality is in hits, else in log loss
  // AUC of the last predictions with its 95 % interval; NaN: none.
  double auc = 0, auc_low = 0, auc_high = 0;
  std::vector<QualityFigures> quality;
  // Seconds by phase of a step.
  double account_seconds = 0, learn_seconds = 0, observe_seconds = 0;
  uint64_t steps = 0, examples = 0, units = 0, units_clipped = 0;
  UsersCame came;
  uint64_t rows_touched = 0, rows_written = 0;
  uint64_t cache_hits = 0, cache_misses = 0, cache_read_ahead = 0, cache_evictions = 0;
  uint64_t cache_bytes = 0;
  // Users by what is left of their allowance; nothing if not counted yet, or the unit is an event.
  std::optional<privacy::AllowancesLeft> users = {};
  int64_t users_counted_ms = 0;
};

struct OperatorFigures {
  std::vector<StreamSample> samples;  // oldest first
  int64_t every_ms = 0;               // between two samples, but the last
  uint64_t read = 0, dead = 0, good = 0, ahead = 0;
  std::string source_alert;  // if empty, the source is well
  struct DeadLetters {
    std::string_view part;
    uint64_t records = 0;
  };
  std::vector<DeadLetters> dead_letters;
  double wait_seconds = 0, commit_seconds = 0;  // training without a step, and in commits
  double last_commit_seconds = 0;
  uint64_t steps_queued = 0, unfolded_deltas = 0;
  std::vector<LearnerFigures> learners;
};

// The dashboard's questions to the process. Server threads call the functions.
struct DashboardSource {
  // Says what the process does: "learning".
  std::function<std::string()> activity = {};
  // Empty where nothing is learnt.
  std::function<OperatorFigures(LookBack)> figures = {};
  // Says how often the configuration lets a record be used, by account.
  std::map<std::string, privacy::UseLimits> limits = {};
};

}  // namespace tacit::serve
