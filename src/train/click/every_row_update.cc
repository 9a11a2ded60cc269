#include "train/click/every_row_update.h"

#include <algorithm>
#include <numeric>

#include "train/click/flat_rows.h"

namespace tacit::train {
namespace {

// Numbers in a chunk: enough work to hide the wake-up of the workers; 16 MiB of rows.
constexpr size_t kChunkFloats = size_t{1} << 22;
// Numbers of noise drawn before they are applied: few enough that the prefetched cache lines arrive
// meanwhile.
constexpr size_t kBlockFloats = 512;

// Fetches a row that is about to be written, while its noise is drawn.
void Prefetch(const float* row, size_t row_floats) {
  constexpr size_t kLineFloats = 16;
  for (size_t c = 0; c < row_floats; c += kLineFloats) __builtin_prefetch(row + c, 1);
}

}  // namespace

Status EveryRowUpdate::Apply(mechanism::Mechanism& mechanism, noise::NoiseSource& noise,
                             model::StepGradient& gradient, store::WorkingRows& rows) {
  const auto* flat = dynamic_cast<const FlatRows*>(&rows);
  for (uint32_t t = 0; t < space_.tables().size(); ++t) {
    const RowSpace::Table& table = space_.tables()[t];
    Chunk chunk{.dim = table.dim, .row_floats = table.dim + optimizer_.RowStateFloats(table.dim)};
    if (flat != nullptr) {  // one chunk, and nothing to gather
      chunk.first = table.first;
      chunk.rows = table.rows;
      chunk.flat = flat->Table(t);
      ApplyChunk(chunk, mechanism, noise, gradient);
      continue;
    }
    const size_t most = std::max<size_t>(1, kChunkFloats / table.dim);
    for (uint64_t done = 0; done < table.rows; done += most) {
      chunk.first = table.first + done;
      chunk.rows = std::min<uint64_t>(most, table.rows - done);
      ids_.resize(chunk.rows);
      std::iota(ids_.begin(), ids_.end(), chunk.first);
      pointers_.resize(chunk.rows);
      TACIT_RETURN_IF_ERROR(rows.Gather(ids_, pointers_));
      ApplyChunk(chunk, mechanism, noise, gradient);
      rows.MarkChanged(ids_);
    }
  }
  return {};
}

// Splits the chunk evenly by numbers, which measure the work; a row belongs to the part that has
// its first number.
void EveryRowUpdate::ApplyChunk(const Chunk& chunk, mechanism::Mechanism& mechanism,
                                noise::NoiseSource& noise, model::StepGradient& gradient) const {
  const auto row_at = [&](size_t number) { return (number + chunk.dim - 1) / chunk.dim; };
  noise.ForParts(chunk.rows * chunk.dim, [&](size_t begin, size_t end, noise::NoiseSource& source) {
    ApplyRows(chunk, row_at(begin), row_at(end), mechanism, source, gradient);
  });
}

void EveryRowUpdate::ApplyRows(const Chunk& chunk, size_t begin, size_t end,
                               mechanism::Mechanism& mechanism, noise::NoiseSource& noise,
                               model::StepGradient& gradient) const {
  const size_t block = std::max<size_t>(1, kBlockFloats / chunk.dim);
  std::vector<float> untouched(std::min(block, end - begin) * chunk.dim);
  std::vector<RowUpdate> updates;
  updates.reserve(std::min(block, end - begin));
  const auto& touched = gradient.rows;
  auto next = std::lower_bound(touched.begin(), touched.end(), chunk.first + begin);
  for (; begin < end; begin += block) {
    const size_t stop = std::min(end, begin + block);
    const auto last = std::lower_bound(next, touched.end(), chunk.first + stop);
    const auto own = static_cast<size_t>(last - next);
    for (size_t i = begin; i < stop; ++i) Prefetch(Row(chunk, i), chunk.row_floats);
    mechanism.FillUntouched(noise, std::span(untouched).first((stop - begin - own) * chunk.dim));
    const float* drawn = untouched.data();
    updates.clear();
    for (size_t i = begin; i < stop;) {
      if (next != last && *next == chunk.first + i) {
        updates.push_back({gradient.Row(static_cast<size_t>(next++ - touched.begin())),
                           {Row(chunk, i++), chunk.row_floats}});
        continue;
      }
      const size_t until = next == last ? stop : static_cast<size_t>(*next - chunk.first);
      const size_t run = RunLength(chunk, i, until);
      updates.push_back({{drawn, run * chunk.dim}, {Row(chunk, i), run * chunk.row_floats}});
      drawn += run * chunk.dim;
      i += run;
    }
    optimizer_.StepRows(updates);
  }
}

// Counts the rows from `begin` on that can be stepped as one: without state and contiguous.
size_t EveryRowUpdate::RunLength(const Chunk& chunk, size_t begin, size_t end) const {
  size_t i = begin + 1;
  if (chunk.row_floats == chunk.dim)
    while (i < end && Row(chunk, i) == Row(chunk, i - 1) + chunk.dim) ++i;
  return i - begin;
}

}  // namespace tacit::train
