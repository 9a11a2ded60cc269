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
  // Adds the part of another process: the rows of columns that are released whole to sums of the
  // same query, all else to this part. Returns its figures. kInvalidArgument: it is of another
  // query, or has other bins. kCorruption: Encode does not write such bytes. The message names
  // field and offset, and nothing was added then. Memory: PartialSums::AddBytes.
  Result<PartFigures> AddBytes(std::string_view bytes, uint32_t bins, mechanism::RowSums* whole);
  // Returns the examples of the part of another process. Fails as AddBytes does, and for sums that
  // are not those of its examples: the rows of a column count for each example once, no residual is
  // beyond its bound, and clicks are those of the figures. kCorruption names the column and row
  // then. Vectors that are too long, and sums that are wrong within these bounds, are not found.
  // Memory: 24 bytes a row of one column.
  static Result<uint64_t> EventsOf(std::string_view bytes, const LinearQuery& query, uint32_t bins);
};

}  // namespace tacit::train
