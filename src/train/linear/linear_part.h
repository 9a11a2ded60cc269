#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "mechanism/partial_sums.h"
#include "train/learner/part_figures.h"
#include "train/linear/linear_query.h"

namespace tacit::train {

// A part of a linear learner's period, summed up: threads hand it over, and so do processes, as
// bytes. Any parts of whole units add up to the period. As private as the data. A value.
struct LinearPart {
  mechanism::PartialSums sums;
  PartFigures figures;

  void Add(const LinearPart& other);

  // Equal parts have equal bytes; linear_part.cc has their grammar.
  std::string Encode() const;
  // Reads the part of another process. kInvalidArgument: it is of another query, or has other bins.
  // kCorruption: Encode does not write such bytes. The message names field and offset. `query` must
  // outlive the part. Memory: PartialSums::Decode.
  static Result<LinearPart> Decode(std::string_view bytes, const LinearQuery& query, uint32_t bins);
  // Checks that the sums of a part out of bytes can be those of its examples: the rows of a column
  // count for each example once, no residual is beyond its bound, and clicks are those of the
  // figures. kCorruption names the column and row. Vectors that are too long, and sums that are
  // wrong within these bounds, are not found.
  Status Check(const LinearQuery& query) const;
};

}  // namespace tacit::train
