#pragma once

#include <string>
#include <vector>

#include "lab/next_item/sequence_report.h"

namespace tacit::lab {

// Two tables for rows of one stream, which it REQUIRES. The first has NDCG@10 and HIT@10 in per
// cent with their deviations over seeds: learners and periods that a user is learnt from in rows,
// epsilons in columns. The second has the NDCG@10 of the stream's tenths.
std::string StreamTextTable(const std::vector<SequenceRow>& rows, uint64_t period_events);
std::string StreamMarkdownTable(const std::vector<SequenceRow>& rows, uint64_t period_events);
// NDCG@10 of each tenth of the stream, a line for each row, as a self-contained SVG document.
std::string DrawStreamFigure(const std::vector<SequenceRow>& rows);

}  // namespace tacit::lab
