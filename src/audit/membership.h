#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

// Scores of records, and what they tell about which of them a model was trained on.
namespace tacit::audit {

// The score of a record, large where it was learnt from. It carries the record's id, so that scores
// of two models, or scores and coins, are never joined by their order.
struct Score {
  uint64_t id = 0;
  double value = 0;
  bool member = false;
};

// Each score less the other model's score of the same record. kInvalidArgument, naming the id,
// where one has no partner, there are two of it, or the two are not told the same of it.
Result<std::vector<Score>> Less(std::span<const Score> scores, std::span<const Score> reference);

// The area under the ROC curve: how often a member's score is above another's, ties half.
// REQUIRES both kinds, for this and all below.
double AreaUnderCurve(std::span<const Score> scores);
// The greatest share of members whose score is at or above a threshold that no more than this share
// of the others reaches.
double FoundAt(std::span<const Score> scores, double false_alarms);
// The greatest share of right answers of any threshold, both worlds being as likely.
double BestAccuracy(std::span<const Score> scores);

// The hits of one threshold, which must have been chosen on other records.
struct Counts {
  uint64_t members = 0, found = 0;
  uint64_t others = 0, false_alarms = 0;
};
Counts CountAbove(std::span<const Score> scores, double threshold);

// Bounds that hold with probability 1 - alpha: half of it for each rate, by Clopper and Pearson.
double ProvedEpsilon(const Counts& counts, double delta, double alpha);
double ProvedMu(const Counts& counts, double alpha);

// Halves the records by their ids (not by scores or coins), so that a threshold can be chosen on
// the first half and judged on the second. `salt` makes the halves.
struct Halves {
  std::vector<Score> of_choice, judged;
};
Halves Split(std::span<const Score> scores, uint64_t salt);
// The threshold that proves most mu on the half of choice, judged on the other half.
struct SplitBound {
  double threshold = 0;
  Counts counts;
  double mu = 0;
};
SplitBound BoundBySplit(std::span<const Score> scores, uint64_t salt, double alpha);

// An interval that holds with probability 1 - alpha, of the area that endless records would show:
// Hoeffding's bound (1963) for two samples, which asks nothing of the scores' law.
struct Interval {
  double lower = 0, upper = 1;
};
Interval AreaInterval(std::span<const Score> scores, double alpha);
// The share of members found by a threshold that lets no more than `false_alarms` of the others of
// one half pass, by Clopper and Pearson on the other half; and at how many false alarms at most.
struct FoundBySplit {
  double found = 0;  // seen
  Interval truth;
  double false_alarms_upper = 1;
};
FoundBySplit FoundAtBySplit(std::span<const Score> scores, double false_alarms, uint64_t salt,
                            double alpha);

}  // namespace tacit::audit
