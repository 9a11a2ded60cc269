#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/progress.h"

namespace tacit::wiring {

// The days of one learner.
struct LearnerDays {
  std::string id;
  double epsilon = 0;  // spent; infinite: it is not private
  std::vector<train::DayRow> days;
  bool recommends = false;
  double promised = 0, delta = 0;  // its epsilon's bound, and what both are stated at
  uint32_t items = 0;              // in the catalogue
  // The days of the same learner without noise, if it was run so.
  std::vector<train::DayRow> plain = {};
};

// The predictions that tell how good a learner is: those of its held-out days, or, without any, all
// after its first release. The AUC is NaN where they are of several days. Nothing if there are
// none.
std::optional<train::PredictedFigures> JudgedOf(const std::vector<train::DayRow>& days);

// One sentence on the learner beside its baseline, and beside itself without noise.
std::string Verdict(const LearnerDays& learner);

// The learner, itself without noise, and their baselines, line by line; "" if it was not run so.
std::string PlainTable(const LearnerDays& learner);

}  // namespace tacit::wiring
