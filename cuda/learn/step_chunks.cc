#include "cuda/learn/step_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace tacit::cuda {

namespace {

// Says whether example i is unit i's and no other, without an end on the way: a loop of vectors.
bool IsOneEach(const stream::StepBatch& step) {
  if (step.units != step.unit_of.size()) return false;
  uint32_t differ = 0;
  for (uint32_t i = 0; i < step.units; ++i) differ |= step.unit_of[i] ^ i;
  return differ == 0;
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
    return chunks;
  }
  chunks[0].unit_of.reserve(std::min<size_t>(unit_of.size(), examples_max));
  chunks[0].example_end.reserve(std::min(step.units, examples_max));
  size_t example = 0;
  for (uint32_t unit = 0; unit < step.units; ++unit) {
    const size_t first = example;
    while (example < unit_of.size() && unit_of[example] == unit) ++example;
    const size_t own = example - first;
    if (own > examples_max)
      return Fail(ErrorCode::kRefused,
                  fmt::format("a unit has {} examples in a step, and the GPU takes {} at a time: "
                              "lower the number of records of a user, or set gpu.use to never",
                              own, examples_max));
    if (chunks.back().examples() + own > examples_max) {
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
  return chunks;
}

}  // namespace tacit::cuda
