#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/sequence/options.h"

namespace tacit::model {

// The rows that one unit brings to a step: its crops' positions, one crop after the other. Padding
// has no row, so that it costs nothing and can count nowhere. Memory is kept.
struct UnitRows {
  std::vector<uint32_t> item;      // read at the position
  std::vector<uint32_t> target;    // to be predicted there; kNoItem: nothing
  std::vector<uint32_t> position;  // in the model's window, its last being the latest
  std::vector<float> weight;       // of the position's loss
  std::vector<uint32_t> crop_end;  // per crop: end of its rows

  size_t size() const { return item.size(); }
  void Clear();
  // Appends a crop, padding left out. Its last entry stands at the window's last position.
  // REQUIRES as many targets as inputs, at most `length`.
  void Append(std::span<const uint32_t> inputs, std::span<const uint32_t> targets, uint32_t length);
  // Weighs the positions that have a target, when all crops are there.
  void Weigh(const SequenceOptions& options);
};

// Cuts a history into crops, each item being the target of the position before it. A history of
// fewer than two items has none. `coins` are public, for random crops: a function of the unit
// itself and the step, never of the other units in it. The first `known` items were learnt from
// before: a crop that reaches back to them reads them, and they are no position's target. So a
// history that is cut anywhere, each part with the items before it, has each of its pairs once, as
// long as crops side by side have room for all new items of a part, crops x length; the latest
// items get the room. Random crops, where one has no room for all of them, begin no earlier than
// where the first new target is predicted, and may have a pair more than once or not at all.
// REQUIRES known <= history.size().
void CutCrops(const SequenceOptions& options, std::span<const uint32_t> history, size_t known,
              uint64_t coins, UnitRows* rows);

}  // namespace tacit::model
