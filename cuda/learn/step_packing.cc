#include "cuda/learn/step_packing.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "cuda/kernels/rows/ranks.h"
#include "train/engines/gpu.h"

namespace tacit::cuda {
namespace {

// Words of the parts, each of which begins at a multiple of 16 bytes.
constexpr size_t Aligned(size_t words) { return (words + 3) / 4 * 4; }

// Values, and zeros behind them up to `count` words.
void CopyWords(const std::vector<float>& values, size_t count, uint32_t* to) {
  if (!values.empty()) std::memcpy(to, values.data(), values.size() * sizeof(float));
  std::fill_n(to + values.size(), count - values.size(), 0u);
}

template <class T>
bool SameWords(std::span<const uint32_t> words, size_t at, const std::vector<T>& values) {
  static_assert(sizeof(T) == sizeof(uint32_t));
  return values.empty() || std::memcmp(&words[at], values.data(), values.size() * sizeof(T)) == 0;
}
// No row ends the search early: so the loop is one of vectors.
bool SameRows(std::span<const uint32_t> words, size_t at, const std::vector<uint64_t>& rows) {
  const uint32_t* const held = words.data() + at;
  uint64_t differ = 0;
  for (size_t e = 0; e < rows.size(); ++e) differ |= held[e] ^ rows[e];
  return differ == 0;
}

}  // namespace

StepParts PartsOf(const StagedStep& step) {
  StepParts parts;
  const auto put = [&](size_t words) {
    return std::exchange(parts.words, parts.words + Aligned(words));
  };
  const size_t examples = step.of.unit_of.size, units = step.of.example_end.size;
  parts.real = put(1);
  parts.row = put(step.of.row.size);
  parts.cell_end = put(step.of.cell_end.size);
  parts.unit_of = put(examples);
  parts.example_end = put(units);
  // A step in one chunk has them already.
  const bool one = step.chunks.size() == 1;
  parts.chunk_unit_of = one ? parts.unit_of : put(examples);
  parts.chunk_example_end = one ? parts.example_end : put(units);
  parts.piece_end = put(step.piece_end.size);
  parts.piece_closes = put(step.piece_closes.size);
  parts.numbers = put(examples * step.numbers.cols);
  parts.label = put(examples);
  return parts;
}

Result<StagedStep> LayOutStep(const stream::StepBatch& step, const StepStagingOptions& options) {
  const event::Batch& batch = step.examples;
  const size_t slots = options.slots, n = batch.size(), width = options.dense_width;
  TACIT_CHECK(batch.dense.size() == n * width, "dense width differs");
  TACIT_CHECK(step.unit_of.size() == n && (slots == 0 || batch.slots == slots), "one unit each");
  StagedStep to;
  TACIT_ASSIGN(to.chunks, CutIntoChunks(step, options.slots, options.chunk_examples));
  size_t examples = n, units = step.units, entries = slots > 0 ? batch.row.size() : 0;
  TACIT_CHECK(entries < kNone && units < kNone, "entries are numbered with 32 bits");
  to.units = step.units;
  to.examples = static_cast<uint32_t>(n);
  to.entries = static_cast<uint32_t>(entries);
  if (to.chunks.size() == 1) {
    const size_t round = options.round_examples;
    examples = std::min<size_t>(options.chunk_examples, train::GpuRoundedUp(n, round));
    units = train::GpuRoundedUp(units, round);
    if (slots > 0) entries = train::GpuRoundedUp((entries + slots - 1) / slots, round) * slots;
    StepChunk& chunk = to.chunks[0];
    chunk.unit_of.resize(examples, kNone);
    chunk.example_end.resize(units, static_cast<uint32_t>(n));
    chunk.entries = static_cast<uint32_t>(entries);
  }
  to.of.slots = options.slots;
  to.of.row.size = entries;
  to.of.cell_end.size = examples * slots;
  to.of.unit_of.size = examples;
  to.of.example_end.size = units;
  to.numbers.cols = options.dense_width;
  for (const StepChunk& chunk : to.chunks) to.piece_end.size += chunk.piece_end.size();
  to.piece_end.size = std::max<size_t>(to.piece_end.size, train::GpuPieces(examples));
  to.piece_closes.size = to.piece_end.size;
  to.sum_block_end = step.sum_block_end;
  return to;
}

void PackStep(const stream::StepBatch& step, const StepStagingOptions& options,
              std::span<uint32_t> words, StagedStep* laid_out) {
  StagedStep& to = *laid_out;
  const event::Batch& batch = step.examples;
  const size_t slots = options.slots, n = batch.size(), width = options.dense_width;
  const size_t examples = to.of.unit_of.size, entries = to.of.row.size;
  const StepParts parts = PartsOf(to);
  TACIT_CHECK(words.size() == parts.words, "words of another step");
  words[parts.real] = step.units;
  // Pieces that the step has room for and does not have.
  std::fill_n(words.data() + parts.piece_end, to.piece_end.size, 0u);
  std::fill_n(words.data() + parts.piece_closes, to.piece_closes.size, 0u);
  if (slots > 0) {
    // The first bit is set in a row that is too large, or in what is left of the space above it.
    uint64_t first_bits = 0;
    uint32_t* const row = words.data() + parts.row;
    const uint64_t* const from = batch.row.data();
    for (size_t e = 0; e < to.entries; ++e) {
      first_bits |= from[e] | (options.space_rows - 1 - from[e]);
      row[e] = static_cast<uint32_t>(from[e]);
    }
    TACIT_CHECK(first_bits >> 63 == 0, "a row that the space does not have");
    std::fill_n(row + to.entries, entries - to.entries, kNone);
  }
  if (slots > 0) {
    std::ranges::copy(batch.slot_end, words.data() + parts.cell_end);
    std::fill_n(words.data() + parts.cell_end + n * slots, (examples - n) * slots, to.entries);
  }
  std::ranges::copy(step.unit_of, words.data() + parts.unit_of);
  std::fill_n(words.data() + parts.unit_of + n, examples - n, kNone);
  for (const StepChunk& chunk : to.chunks) {
    if (to.chunks.size() > 1)
      std::ranges::copy(chunk.unit_of, words.data() + parts.chunk_unit_of + chunk.first_example);
    std::ranges::copy(chunk.piece_end, words.data() + parts.piece_end + chunk.first_piece);
    std::ranges::copy(chunk.piece_closes, words.data() + parts.piece_closes + chunk.first_piece);
    for (uint32_t u = 0; u < chunk.units(); ++u) {
      const size_t unit = size_t{chunk.first_unit} + u;
      const uint32_t end = chunk.first_example + chunk.example_end[u];
      words[parts.example_end + unit] = end;
      if (to.chunks.size() > 1) words[parts.chunk_example_end + unit] = chunk.example_end[u];
      const uint32_t first = unit == 0 ? 0 : words[parts.example_end + unit - 1];
      if (slots == 0 || first == end) continue;
      const uint32_t before = first == 0 ? 0 : batch.slot_end[first * slots - 1];
      to.entries_of_unit_max =
          std::max(to.entries_of_unit_max, batch.slot_end[end * slots - 1] - before);
    }
  }
  // Examples that are nobody's have numbers, too: zeros.
  CopyWords(batch.dense, examples * width, words.data() + parts.numbers);
  CopyWords(batch.label, examples, words.data() + parts.label);
}

bool IsPackedThere(const stream::StepBatch& step, const StagedStep& packed,
                   std::span<const uint32_t> words) {
  const event::Batch& batch = step.examples;
  if (packed.units != step.units || packed.examples != batch.size() ||
      packed.sum_block_end != step.sum_block_end || step.unit_of.size() != packed.examples)
    return false;
  const StepParts parts = PartsOf(packed);
  if (packed.of.slots > 0) {
    if (packed.entries != batch.row.size() || !SameWords(words, parts.cell_end, batch.slot_end) ||
        !SameRows(words, parts.row, batch.row))
      return false;
  }
  return SameWords(words, parts.unit_of, step.unit_of) &&
         SameWords(words, parts.numbers, batch.dense) && SameWords(words, parts.label, batch.label);
}

}  // namespace tacit::cuda
