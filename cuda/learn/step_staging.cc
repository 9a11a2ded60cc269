#include "cuda/learn/step_staging.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "cuda/device/device.h"
#include "cuda/kernels/ranks.h"
#include "cuda/learn/step_streams.h"
#include "train/gpu.h"

namespace tacit::cuda {
namespace {

// Words of the parts, each of which begins at a multiple of 16 bytes.
constexpr size_t Aligned(size_t words) { return (words + 3) / 4 * 4; }

// The places of a step's parts, in words.
struct Parts {
  size_t real = 0, row = 0, cell_end = 0, unit_of = 0, example_end = 0;
  size_t chunk_unit_of = 0, chunk_example_end = 0, numbers = 0, label = 0, words = 0;
};
Parts PartsOf(const StagedStep& step) {
  Parts parts;
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
  parts.numbers = put(examples * step.numbers.cols);
  parts.label = put(examples);
  return parts;
}

// Values, and zeros behind them up to so many words.
void CopyWords(const std::vector<float>& values, size_t count, uint32_t* to) {
  if (!values.empty()) std::memcpy(to, values.data(), values.size() * sizeof(float));
  std::fill_n(to + values.size(), count - values.size(), 0u);
}

template <class T>
bool SameWords(std::span<const uint32_t> words, size_t at, const std::vector<T>& values) {
  static_assert(sizeof(T) == sizeof(uint32_t));
  return values.empty() || std::memcmp(&words[at], values.data(), values.size() * sizeof(T)) == 0;
}
// All rows are looked at, whatever is found: so the loop is one of vectors.
bool SameRows(std::span<const uint32_t> words, size_t at, const std::vector<uint64_t>& rows) {
  const uint32_t* const held = words.data() + at;
  uint64_t differ = 0;
  for (size_t e = 0; e < rows.size(); ++e) differ |= held[e] ^ rows[e];
  return differ == 0;
}

}  // namespace

Result<StepStaging> StepStaging::Make(Stream& compute, const StepStagingOptions& options,
                                      uint64_t words) {
  TACIT_CHECK(options.round_examples > 0 && options.space_rows < kNone);
  Device& device = compute.device();
  TACIT_ASSIGN(Stream feed, Stream::Make(device));
  TACIT_ASSIGN(Event arrived, Event::Make(device));
  StepStaging staging(compute, std::move(feed), std::move(arrived), options);
  for (Piece& piece : staging.pieces_) {
    TACIT_RETURN_IF_ERROR(Reserve(device, words, &piece.host));
    TACIT_RETURN_IF_ERROR(Reserve(device, words, &piece.device));
  }
  TACIT_RETURN_IF_ERROR(Reserve(device, words, &staging.current_));
  return staging;
}

void StepStaging::Plan(uint64_t words, MemoryNeed* need) {
  // Two pieces, of steps that take turns, and the step under way.
  for (int i = 0; i < 3; ++i) need->Add<uint32_t>(words);
}

// Sets sizes and chunks; the spans have no place yet.
Status StepStaging::Pack(const stream::StepBatch& step, Piece* piece) const {
  const event::Batch& batch = step.examples;
  const size_t slots = options_.slots, n = batch.size(), width = options_.dense_width;
  TACIT_CHECK(batch.dense.size() == n * width, "dense width differs");
  TACIT_CHECK(step.unit_of.size() == n && (slots == 0 || batch.slots == slots), "one unit each");
  StagedStep& to = piece->step;
  to = {};
  piece->number = step.number;
  TACIT_ASSIGN(to.chunks, CutIntoChunks(step, options_.slots, options_.chunk_examples));
  size_t examples = n, units = step.units, entries = slots > 0 ? batch.row.size() : 0;
  TACIT_CHECK(entries < kNone && units < kNone, "entries are numbered with 32 bits");
  to.units = step.units;
  to.examples = static_cast<uint32_t>(n);
  to.entries = static_cast<uint32_t>(entries);
  if (to.chunks.size() == 1) {
    const size_t round = options_.round_examples;
    examples = std::min<size_t>(options_.chunk_examples, train::GpuRoundedUp(n, round));
    units = train::GpuRoundedUp(units, round);
    if (slots > 0) entries = train::GpuRoundedUp((entries + slots - 1) / slots, round) * slots;
    StepChunk& chunk = to.chunks[0];
    chunk.unit_of.resize(examples, kNone);
    chunk.example_end.resize(units, static_cast<uint32_t>(n));
    chunk.entries = static_cast<uint32_t>(entries);
  }
  to.of.slots = options_.slots;
  to.of.row.size = entries;
  to.of.cell_end.size = examples * slots;
  to.of.unit_of.size = examples;
  to.of.example_end.size = units;
  to.numbers.cols = options_.dense_width;

  const Parts parts = PartsOf(to);
  piece->words = parts.words;
  TACIT_RETURN_IF_ERROR(Reserve(feed_.device(), parts.words, &piece->host));
  const std::span<uint32_t> words = piece->host.span().first(parts.words);
  words[parts.real] = step.units;
  if (slots > 0) {
    // The first bit is set in a row that is too large, or in what is left of the space above it.
    uint64_t first_bits = 0;
    uint32_t* const row = words.data() + parts.row;
    const uint64_t* const from = batch.row.data();
    for (size_t e = 0; e < to.entries; ++e) {
      first_bits |= from[e] | (options_.space_rows - 1 - from[e]);
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
  return {};
}

bool StepStaging::Holds(const Piece& piece, const stream::StepBatch& step) const {
  const event::Batch& batch = step.examples;
  const StagedStep& of = piece.step;
  if (of.units != step.units || of.examples != batch.size() || step.unit_of.size() != of.examples)
    return false;
  const std::span<const uint32_t> words = piece.host.span();
  const Parts parts = PartsOf(of);
  if (options_.slots > 0) {
    if (of.entries != batch.row.size() || !SameWords(words, parts.cell_end, batch.slot_end) ||
        !SameRows(words, parts.row, batch.row))
      return false;
  }
  return SameWords(words, parts.unit_of, step.unit_of) &&
         SameWords(words, parts.numbers, batch.dense) && SameWords(words, parts.label, batch.label);
}

// Lets the spans point into current_.
void StepStaging::Place(StagedStep* step) const {
  const Parts parts = PartsOf(*step);
  const DeviceSpan<uint32_t> words = current_.span();
  const auto at = [&](size_t offset, size_t size) -> DeviceSpan<const uint32_t> {
    return words.Sub(offset, size);
  };
  const size_t examples = step->of.unit_of.size, units = step->of.example_end.size;
  step->of.row = at(parts.row, step->of.row.size);
  step->of.cell_end = at(parts.cell_end, step->of.cell_end.size);
  step->of.unit_of = at(parts.unit_of, examples);
  step->of.example_end = at(parts.example_end, units);
  step->unit_of = at(parts.chunk_unit_of, examples);
  step->example_end = at(parts.chunk_example_end, units);
  step->real_units = at(parts.real, 1);
  const auto* const floats = reinterpret_cast<const float*>(words.data);
  const uint32_t width = step->numbers.cols;
  step->numbers = {floats + parts.numbers, static_cast<uint32_t>(examples), width, width};
  step->label = {floats + parts.label, examples};
}

Status StepStaging::BringAhead(const stream::StepBatch& next) {
  Piece& piece = pieces_[1 - now_];
  // A step that was brought there and never used may still be on its way.
  if (has_ahead_) TACIT_RETURN_IF_ERROR(feed_.Synchronize());
  has_ahead_ = false;
  TACIT_RETURN_IF_ERROR(Pack(next, &piece));
  TACIT_RETURN_IF_ERROR(Reserve(feed_.device(), piece.words, &piece.device));
  TACIT_RETURN_IF_ERROR(feed_.Upload<uint32_t>(piece.host.span().first(piece.words),
                                               piece.device.span().Sub(0, piece.words)));
  TACIT_RETURN_IF_ERROR(feed_.Record(arrived_));
  has_ahead_ = true;
  ++brought_ahead_;
  return {};
}

Result<const StagedStep*> StepStaging::Bring(const stream::StepBatch& step, bool keeps_ahead) {
  const bool is_ahead = has_ahead_ && !keeps_ahead && Is(step, pieces_[1 - now_]);
  if (is_ahead) {
    now_ = 1 - now_;
  } else {
    TACIT_RETURN_IF_ERROR(Pack(step, &pieces_[now_]));
  }
  Piece& piece = pieces_[now_];
  TACIT_RETURN_IF_ERROR(Reserve(compute_->device(), piece.words, &current_));
  const auto to = current_.span().Sub(0, piece.words);
  if (is_ahead) {
    has_ahead_ = false;
    TACIT_RETURN_IF_ERROR(AwaitPoint(*compute_, arrived_, StepPoint::kArrived));
    TACIT_RETURN_IF_ERROR(
        compute_->CopyOnDevice<uint32_t>(piece.device.span().Sub(0, piece.words), to));
  } else {
    TACIT_RETURN_IF_ERROR(compute_->Upload<uint32_t>(piece.host.span().first(piece.words), to));
  }
  Place(&piece.step);
  return &piece.step;
}

}  // namespace tacit::cuda
