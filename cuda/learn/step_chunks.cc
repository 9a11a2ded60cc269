#include "cuda/learn/step_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "model/sum_blocks.h"
#include "train/engines/gpu.h"

namespace tacit::cuda {

namespace {

// Says whether example i is unit i's and no other, without an end on the way: a loop of vectors.
bool IsOneEach(const stream::StepBatch& step) {
  if (step.units != step.unit_of.size()) return false;
  uint32_t differ = 0;
  for (uint32_t i = 0; i < step.units; ++i) differ |= step.unit_of[i] ^ i;
  return differ == 0;
}

// The pieces of a step in one chunk are filled up to a multiple, so that its launches come again.
constexpr uint64_t kPiecesRound = 16;

std::vector<uint32_t> BlocksOf(const stream::StepBatch& step) {
  if (!step.sum_block_end.empty() || step.unit_of.empty()) return step.sum_block_end;
  return {static_cast<uint32_t>(step.unit_of.size())};
}

std::vector<uint32_t> UnitEnds(const stream::StepBatch& step) {
  std::vector<uint32_t> ends(step.units, 0);
  for (size_t i = 0; i < step.unit_of.size(); ++i)
    ends[step.unit_of[i]] = static_cast<uint32_t>(i + 1);
  for (size_t u = 1; u < ends.size(); ++u) ends[u] = std::max(ends[u], ends[u - 1]);
  return ends;
}

// Gives each chunk the pieces of its examples.
void CutPieces(const stream::StepBatch& step, std::vector<StepChunk>* chunks) {
  ops::SumPieces pieces;
  model::CutSums(BlocksOf(step), UnitEnds(step), &pieces);
  uint32_t first_piece = 0;
  size_t piece = 0;
  for (StepChunk& chunk : *chunks) {
    const uint32_t end = chunk.first_example + chunk.examples();
    const auto put = [&](uint32_t at, uint32_t closes) {
      chunk.piece_end.push_back(at - chunk.first_example);
      chunk.piece_closes.push_back(closes);
    };
    for (; piece < pieces.end.size() && pieces.end[piece] <= end; ++piece)
      put(pieces.end[piece], pieces.closes[piece]);
    const uint32_t last = chunk.piece_end.empty() ? 0 : chunk.piece_end.back();
    if (last < chunk.examples()) put(end, 0);
    if (chunks->size() == 1)
      chunk.piece_end.resize(train::GpuRoundedUp(chunk.piece_end.size(), kPiecesRound),
                             chunk.examples());
    chunk.piece_closes.resize(chunk.piece_end.size(), 0);
    chunk.first_piece = first_piece;
    first_piece += static_cast<uint32_t>(chunk.piece_end.size());
  }
}

}  // namespace

Result<std::vector<StepChunk>> CutIntoChunks(const stream::StepBatch& step, uint32_t slots,
                                             uint32_t examples_max) {
  const std::vector<uint32_t>& unit_of = step.unit_of;
  const auto entries_before = [&](size_t example) {
    return example == 0 || slots == 0 ? 0 : step.examples.slot_end[example * slots - 1];
  };
  std::vector<StepChunk> chunks(1);
  if (step.units <= examples_max && IsOneEach(step)) {
    StepChunk& all = chunks[0];
    all.unit_of = unit_of;
    all.example_end.resize(step.units);
    std::iota(all.example_end.begin(), all.example_end.end(), 1u);
    all.entries = entries_before(step.units);
    CutPieces(step, &chunks);
    return chunks;
  }
  chunks[0].unit_of.reserve(std::min<size_t>(unit_of.size(), examples_max));
  chunks[0].example_end.reserve(std::min(step.units, examples_max));
  const std::vector<uint32_t> blocks = BlocksOf(step);
  size_t example = 0, block = 0;
  for (uint32_t unit = 0; unit < step.units; ++unit) {
    const size_t first = example;
    // At the first unit of a block, all of it has to have room.
    size_t wanted = 0;
    for (; block < blocks.size() && blocks[block] <= first; ++block) {
    }
    const size_t block_begin = block == 0 ? 0 : blocks[block - 1];
    if (block < blocks.size() && first == block_begin) wanted = blocks[block] - block_begin;
    while (example < unit_of.size() && unit_of[example] == unit) ++example;
    const size_t own = example - first;
    if (own > examples_max)
      return Fail(ErrorCode::kRefused,
                  fmt::format("a unit has {} examples in a step, and the GPU takes {} at a time: "
                              "lower the number of records of a user, or set gpu.use to never",
                              own, examples_max));
    if (chunks.back().examples() > 0 &&
        chunks.back().examples() + std::max(own, wanted) > examples_max) {
      chunks.push_back({.first_unit = unit,
                        .first_example = static_cast<uint32_t>(first),
                        .first_entry = entries_before(first)});
    }
    StepChunk& chunk = chunks.back();
    chunk.one_row_each &= own == 1;
    chunk.unit_of.insert(chunk.unit_of.end(), own, unit - chunk.first_unit);
    chunk.example_end.push_back(chunk.examples());
    chunk.entries = entries_before(example) - chunk.first_entry;
  }
  TACIT_CHECK(example == unit_of.size(), "units ascend");
  CutPieces(step, &chunks);
  return chunks;
}

}  // namespace tacit::cuda
