#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "privacy/charge.h"
#include "privacy/pld.h"
#include "wiring/assembly.h"
#include "wiring/plans/mechanism_kinds.h"

// Forecasts what a configuration costs the people in the stream, before any of it is read.
namespace tacit::wiring {

// Certified epsilons of the worst unit. An event is in the steps of its own period only, so further
// days add nothing, but further passes do. A user may be in every step of a day, up to his
// allowance and to `per_period`. NaN: the number of steps of that time is not known.
struct EpsilonAhead {
  double step = 0;        // one step alone
  double period = 0;      // after the steps of its period, or its one step
  double day = 0;         // after a day of the stream
  double days_30 = 0;     // after thirty
  double year = 0;        // in any 365 days that begin with a multiple of 365
  double all_passes = 0;  // after all configured passes of the source
  double allowed = 0;     // after all participations that the noise was calibrated for
};

// The most that somebody who knows all the rest can do to tell whether a unit was in anything that
// is released: read off the certified curve of what the noise was calibrated for.
struct TellsAtMost {
  double advantage = 1;        // of the rate of right alarms over that of false ones
  double found_1_in_100 = 1;   // rate of right alarms with one false alarm in 100
  double found_1_in_1000 = 1;  // in 1,000
};

// The same promise under a different participation mode.
struct OtherMode {
  std::string mode;
  std::optional<double> noise_multiplier = {};
  uint64_t steps = 0;       // steps that an event is in, or eligible for
  privacy::Draw draw = {};  // into each of those
  uint64_t period = 0;      // offsets held; 0: none
  std::string words = {};   // the cost in words; or why there is no number
};

struct LearnerForecast {
  std::string id;
  privacy::Unit unit = privacy::Unit::kEvent;
  double epsilon = 0, delta = 0;  // promised
  std::string mode, participation;
  privacy::Charge charge;                  // of a step
  std::optional<privacy::Charge> opening;  // a period's release before its first step
  EpsilonAhead ahead = {};                 // infinite without privacy
  std::optional<double> estimate = {};     // central-limit estimate of `period`; not a bound
  std::optional<uint64_t> steps_per_day;   // nothing if not known
  uint64_t allowance = 0;                  // steps of a user, ever; 0: unit event
  std::string steps_unknown = {};          // the reason, if steps_per_day is not known
  std::string noise = {};                  // beside the records of a step, in words
  double untouched_rows = 0;               // written a step, expected
  std::string rows = {};                   // written a step, in words
  std::vector<OtherMode> others = {};      // none without privacy
  std::string_view not_covered = {};       // what of a record no epsilon covers; if empty, nothing
  TellsAtMost tells = {};
};

struct PrivacyForecast {
  std::optional<uint64_t> events_per_day;
  std::vector<LearnerForecast> learners;
  std::optional<BreakerPlan> breaker = {};     // source.halt_above, which the total has in it
  std::vector<QualityPlan> qualities = {};     // the total has them too
  double delta = 0;                            // of the total
  privacy::Unit unit = privacy::Unit::kEvent;  // of the total: user where every learner's is
  EpsilonAhead total;  // of one such unit over all learners, within the budget from a period on
  TellsAtMost tells;   // of the same
  std::optional<privacy::TotalBudget> budget;
  std::vector<std::string> warnings;
};

// The nonzero parts of a charge: "noise multiplier 1.2, selection 6.1, gradient 1.22".
std::string ChargeText(const privacy::Charge& charge);

// Reads the configuration only. `events_per_day` is for sources that do not give it themselves.
// `laws` that the assembly was made with save time.
Result<PrivacyForecast> ForecastPrivacy(const Assembly& assembly,
                                        std::optional<uint64_t> events_per_day,
                                        privacy::Laws laws = nullptr);

}  // namespace tacit::wiring
