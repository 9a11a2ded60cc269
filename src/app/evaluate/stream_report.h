#pragma once

#include <string>
#include <vector>

#include "app/evaluate/sequence_report.h"

namespace tacit::app {

// Two tables, of NDCG@10 and HIT@10 in per cent with their deviations over seeds: learners and
// periods a user is learnt from down, epsilons across; and, NDCG@10 alone, the stream's tenths.
// REQUIRES rows of one stream.
std::string StreamTextTable(const std::vector<SequenceRow>& rows, uint64_t period_events);
std::string StreamMarkdownTable(const std::vector<SequenceRow>& rows, uint64_t period_events);
// NDCG@10 of each tenth of the stream, a line for each row, an SVG document without anything from
// outside.
std::string DrawStreamFigure(const std::vector<SequenceRow>& rows);

}  // namespace tacit::app
