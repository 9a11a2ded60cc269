#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/moments.h"
#include "lab/next_item/sequence_results.h"

namespace tacit::lab {

// A cell of the table: one learner at one epsilon over all seeds. For a stream, also at one number
// of periods that a user is learnt from.
struct SequenceRow {
  std::string learner;
  double epsilon = 0, delta = 0;  // promised; epsilon is infinite without a promise
  Moments ndcg10 = {}, hit10 = {};
  double epsilon_spent = 0;        // the largest of all seeds
  uint64_t seeds = 0, users = 0;   // users asked about; for a stream, events
  double fit_seconds = 0;          // mean
  double microseconds_a_user = 0;  // mean time to score and rank the whole catalogue

  struct Tenth {
    uint64_t events = 0;
    Moments ndcg10 = {}, hit10 = {};
  };
  // Quality of a trained learner during training.
  struct Look {
    double epochs = 0;
    Moments ndcg10 = {}, hit10 = {};
  };
  std::vector<Look> curve = {};

  uint32_t user_periods = 0;  // 0: not a stream
  std::vector<Tenth> tenths = {};
  std::optional<Tenth> cold = std::nullopt;  // nothing if a run does not say
};

// REQUIRES at least one run, all of one learner and epsilon.
SequenceRow MakeSequenceRow(const std::vector<SequenceRun>& runs);

// {"rows": [{"model", "epsilon", "delta", "seeds", "ndcg10": {"mean", "std"}, "hit10", ...}]};
// epsilon is null without a promise. Rows evaluated during training have a "curve" of {"epochs",
// "ndcg10", "hit10"}. Rows of a stream have "user_periods", and for each of its "tenths" {"events",
// "ndcg10", "hit10"}; "cold" is the same of items that first appear in the last tenth.
boost::json::object SequenceJson(const std::vector<SequenceRow>& rows);
// NDCG@10 / HIT@10 in per cent with their deviations over seeds: learners, and for a stream the
// periods that a user is learnt from, in rows, epsilons in columns. For a stream of periods of so
// many records, also the NDCG@10 of its tenths, and both of cold items. REQUIRES a row, and rows of
// one kind.
std::string SequenceTextTable(const std::vector<SequenceRow>& rows, uint64_t period_events = 0);
std::string SequenceMarkdownTable(const std::vector<SequenceRow>& rows, uint64_t period_events = 0);
// NDCG@10 against epsilon, a line for each learner; or, for a stream, against its tenths, a line
// for each row. A self-contained SVG document.
std::string DrawSequenceFigure(const std::vector<SequenceRow>& rows);
// NDCG@10 and, dashed, HIT@10 against epochs, for every row evaluated during training.
std::string DrawLearningCurves(const std::vector<SequenceRow>& rows);

}  // namespace tacit::lab
