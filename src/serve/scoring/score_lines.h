#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/batch.h"
#include "event/codec.h"
#include "event/raw_records.h"
#include "serve/scoring/row_scorer.h"
#include "serve/scoring/score_request.h"

namespace tacit::serve {

// Reads the body of /v1/score/lines: records in the stream's own form, one a line, by the codec
// that training reads them with. Keeps its memory between requests; not thread-safe.
class LineReader {
 public:
  static constexpr size_t kLinesMost = 4096;
  // Further values of all sets together, beside one each.
  static constexpr size_t kValuesMost = ScoreRequestParser::Limits().max_values;

  // Fills `batch`, replacing what was in it. kInvalidArgument names the line and what is wrong in
  // it; lines are of 64 KiB at most. REQUIRES a model with `lines`.
  Status Read(std::string_view body, const ScoringModel& model, event::Batch* batch);

 private:
  event::RawRecords records_;
  std::vector<event::DeadLetter> bad_;
};

}  // namespace tacit::serve
