#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/assembly.h"
#include "base/result.h"
#include "privacy/charge.h"

// What a configuration will cost the people in the stream, before any of the stream is read.
namespace tacit::app {

// Certified epsilons of the worst unit. An event is in the steps of its own period only, so that
// days add nothing, and passes do.
struct EpsilonAhead {
  double period = 0;      // after the steps of its period, or its one step
  double day = 0;         // after a day of the stream
  double days_30 = 0;     // after thirty
  double all_passes = 0;  // once the source has been read as often as it will be
  double allowed = 0;     // at the end of what the noise was calibrated for
};

// The same promise under another participation.
struct OtherMode {
  std::string mode;
  std::optional<double> noise_multiplier = {};
  uint64_t steps = 0;        // that an event is in, or eligible for
  double sampling_rate = 1;  // of those
  uint64_t period = 0;       // offsets held; 0: none
  std::string words = {};    // what it would cost; or why there is no number
};

struct LearnerForecast {
  std::string id;
  privacy::Unit unit = privacy::Unit::kEvent;
  double epsilon = 0, delta = 0;  // promised
  std::string mode, participation;
  privacy::Charge charge;                  // of a step
  std::optional<privacy::Charge> opening;  // of what a period releases before its first step
  EpsilonAhead ahead = {};                 // infinite without privacy
  std::optional<double> estimate = {};     // of `period` by the central limit: no bound
  std::optional<uint64_t> steps_per_day;   // nothing where they do not follow
  std::string steps_unknown = {};          // why not
  double untouched_rows = 0;               // written a step, expected
  std::string rows = {};                   // written a step, in words
  std::vector<OtherMode> others = {};      // none without privacy
};

struct PrivacyForecast {
  std::optional<uint64_t> events_per_day;
  std::vector<LearnerForecast> learners;
  double delta = 0;    // of the total
  EpsilonAhead total;  // of one event over all learners
  std::optional<privacy::TotalBudget> budget;
  std::vector<std::string> warnings;
};

// The parts of a charge that are there: "noise multiplier 1.2, selection 6.1, gradient 1.22".
std::string ChargeText(const privacy::Charge& charge);
// Which rows a step of the learner's mechanism writes.
std::string RowsText(const LearnerPlan& plan);

// Reads the configuration alone. `events_per_day` is for sources that do not tell it.
Result<PrivacyForecast> ForecastPrivacy(const Assembly& assembly,
                                        std::optional<uint64_t> events_per_day);

}  // namespace tacit::app
