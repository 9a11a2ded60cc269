#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/user_uses.h"
#include "train/progress.h"

namespace tacit::wiring {

// The days of one learner.
struct LearnerDays {
  std::string id = {};
  double epsilon = 0;  // spent; infinite: it is not private
  std::vector<train::DayRow> days = {};
  std::optional<train::PredictedFigures> judged = {};  // the predictions that tell how good it is
  UsersCame came = {};                                 // for all steps; zero where units are events
  bool recommends = false;
  double promised = 0, delta = 0;                // its epsilon's bound, and what both are stated at
  uint32_t items = 0;                            // in the catalogue
  uint64_t last_period = 0, longest_period = 0;  // records learnt from
  double noise_in_units = 0;                     // of a number, as its constants expect it
  // The days and figures of the learner without noise, if it was run so.
  std::vector<train::DayRow> plain = {};
  std::optional<train::PredictedFigures> plain_judged = {};
};

// One sentence on the learner beside its baseline, and beside itself without noise.
std::string Verdict(const LearnerDays& learner);

// The learner, itself without noise, and their baselines, line by line; "" if it was not run so.
std::string PlainTable(const LearnerDays& learner);

}  // namespace tacit::wiring
