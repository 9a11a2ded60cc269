#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "event/batch.h"
#include "mechanism/row_sums.h"
#include "model/linear/columns.h"
#include "model/linear/predict.h"
#include "train/click/row_map.h"
#include "train/linear/linear_rows.h"

namespace tacit::train {

// The values of a linear learner's events as places, and the parameters that lie there, so that an
// event is summed up without looking for anything. All values of columns that are released whole
// have a place, as in mechanism::RowSums: the column's first and the value's number. Values of
// larger columns get places as they are met, and lose them at the period's end. Not thread-safe.
//
// The parameters are copies of the store's rows: read when they are first asked for, and followed
// by Move. Memory: 8 bytes a value of whole columns, some 40 a value that was met of others.
class LinearPlaces {
 public:
  // The references must outlive it. `tables` are the columns' own.
  LinearPlaces(const model::linear::Columns& columns, std::span<const mechanism::SumTable> tables,
               LinearRows& rows);

  // Reads the values of examples [begin, end). `period`: the model's last release, of which moves
  // are told; 0: there was none, and every parameter is 0.
  Status Read(const event::Batch& examples, size_t begin, size_t end, uint64_t period);
  // The places of the examples last read; valid until the next call.
  model::linear::Places places() const;
  std::span<const model::linear::Effect> effects() const { return effects_; }
  // The rows that places were given to in this period, in their order.
  std::span<const uint64_t> met() const { return met_; }

  // Values of larger columns have no place any more.
  void DropMet();
  // Ends the period: drops what was met, and no value has moved yet.
  void EndPeriod();
  // The column's row has this weight now, and moved there from another.
  void Move(size_t column, uint64_t row, const model::linear::Effect& effect);
  // Forgets all: the store's rows are others now.
  void Forget();

 private:
  static constexpr uint32_t kNoPlace = UINT32_MAX;

  uint32_t PlaceOf(uint64_t row);
  Status Load(uint64_t period);
  Status FetchNew(uint64_t period);
  void ReadOneEach(const event::Batch& examples, size_t begin, size_t end);
  void ReadRuns(const event::Batch& examples, size_t begin, size_t end);

  const model::linear::Columns& columns_;
  const std::span<const mechanism::SumTable> tables_;
  LinearRows& rows_;
  std::vector<uint32_t> shift_;  // per column: place minus row, modulo 2^32; 0: of large ones
  std::vector<uint32_t> number_shift_;  // per column of numbers: place minus value
  std::vector<size_t> large_;           // columns but crosses that are not released whole
  size_t whole_places_ = 0;

  bool loaded_ = false;
  std::vector<model::linear::Effect> effects_;  // by place
  std::vector<uint32_t> moved_;                 // places with a move
  RowMap<uint32_t> found_;                      // of larger columns: place + 1
  std::vector<uint64_t> met_;
  size_t fetched_ = 0;  // of met_

  // The examples read last.
  bool one_each_ = true;
  std::vector<uint32_t> place_, end_;
  std::vector<uint32_t> values_;  // of their numbers, one example after the other
};

}  // namespace tacit::train
