#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "app/evaluate/moments.h"
#include "app/evaluate/sequence_results.h"

namespace tacit::app {

// One learner at one epsilon over all seeds: a cell of the table. Of a stream, at one number of
// periods that a user is learnt from.
struct SequenceRow {
  std::string learner;
  double epsilon = 0, delta = 0;  // promised; epsilon is infinite where nothing is
  Moments ndcg10 = {}, hit10 = {};
  double epsilon_spent = 0;        // the most of any seed
  uint64_t seeds = 0, users = 0;   // users asked about; of a stream, events
  double fit_seconds = 0;          // mean
  double microseconds_a_user = 0;  // of scoring and ranking the whole catalogue; mean

  struct Tenth {
    uint64_t events = 0;
    Moments ndcg10 = {}, hit10 = {};
  };
  // Of a trained learner that was looked at on the way.
  struct Look {
    double epochs = 0;
    Moments ndcg10 = {}, hit10 = {};
  };
  std::vector<Look> curve = {};

  uint32_t user_periods = 0;  // 0: of no stream
  std::vector<Tenth> tenths = {};
};

// REQUIRES at least one run, all of one learner and epsilon.
SequenceRow MakeSequenceRow(const std::vector<SequenceRun>& runs);

// {"rows": [{"model", "epsilon", "delta", "seeds", "ndcg10": {"mean", "std"}, "hit10", ...}]};
// epsilon is null where nothing is promised. Rows that were looked at on the way have a "curve" of
// {"epochs", "ndcg10", "hit10"}. Rows of a stream have "user_periods", and of each of
// its "tenths" {"events", "ndcg10", "hit10"}.
boost::json::object SequenceJson(const std::vector<SequenceRow>& rows);
// Learners down, epsilons across, NDCG@10 / HIT@10 in per cent with their deviations over seeds.
std::string SequenceTextTable(const std::vector<SequenceRow>& rows);
std::string SequenceMarkdownTable(const std::vector<SequenceRow>& rows);
// NDCG@10 against epsilon, a line for each learner, an SVG document without anything from outside.
std::string DrawSequenceFigure(const std::vector<SequenceRow>& rows);
// NDCG@10 and, dashed, HIT@10 against epochs, a line of each for every row that was looked at on
// the way.
std::string DrawLearningCurves(const std::vector<SequenceRow>& rows);

}  // namespace tacit::app
