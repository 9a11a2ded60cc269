#include "cuda/learn/units_wave.h"

#include <utility>

namespace tacit::cuda {

Status UnitsMemory::Take(uint64_t words_of_units, uint64_t counted, uint64_t units,
                         BufferTaker taker) {
  TACIT_RETURN_IF_ERROR(taker.Take(words_of_units, &words));
  TACIT_RETURN_IF_ERROR(taker.TakeEach(counted, {&loss, &factor, &minus_sum}));
  TACIT_RETURN_IF_ERROR(taker.Take(units, &squared));
  TACIT_RETURN_IF_ERROR(taker.TakeEach(units, {&norm, &scale}));
  TACIT_RETURN_IF_ERROR(taker.Take(units, &bounded));
  return taker.Take(1, &clipped);
}

Status UnitsWave::Take(uint64_t words, uint64_t counted, uint64_t units, Turn* turn) {
  BufferTaker taker(device_);
  TACIT_RETURN_IF_ERROR(taker.Take(words, &turn->words));
  TACIT_RETURN_IF_ERROR(taker.Take(counted, &turn->loss));
  TACIT_RETURN_IF_ERROR(taker.Take(units, &turn->squared));
  TACIT_RETURN_IF_ERROR(taker.Take(units, &turn->bounded));
  if (turn->done) return {};
  TACIT_ASSIGN(Event done, Event::Make(device_));
  turn->done.emplace(std::move(done));
  return {};
}

Status UnitsWave::TakeTurns(const train::GpuWaveSizes& largest) {
  for (Turn& turn : turns_)
    TACIT_RETURN_IF_ERROR(Take(largest.words(), largest.counted, largest.units, &turn));
  return {};
}

Status UnitsWave::Upload(const PackedUnits& units, uint32_t turn) {
  units_ = units.units();
  rows_ = units.rows();
  counted_count_ = units.counted.size();
  longest_ = units.longest;
  places_ = units.Places();
  const size_t words = units.words();
  TACIT_RETURN_IF_ERROR(memory_.Take(words, counted_count_, units_, BufferTaker(device_)));
  Turn& now = turns_[turn];
  now.units = units_;
  now.counted = counted_count_;
  TACIT_RETURN_IF_ERROR(Take(words, counted_count_, units_, &now));
  const std::span<uint32_t> staging = now.words.span().first(words);
  units.CopyTo(staging);
  return stream_.Upload<uint32_t>(staging, memory_.words.span().Sub(0, words));
}

Status UnitsWave::AskForOutcome(uint32_t turn) {
  Turn& now = turns_[turn];
  TACIT_RETURN_IF_ERROR(
      stream_.Download(Counted(memory_.loss), now.loss.span().first(now.counted)));
  TACIT_RETURN_IF_ERROR(stream_.Download(Units(memory_.norm), now.squared.span().first(now.units)));
  TACIT_RETURN_IF_ERROR(
      stream_.Download(Units(memory_.bounded), now.bounded.span().first(now.units)));
  return stream_.Record(*now.done);
}

Result<SequenceWave::Outcome> UnitsWave::Await(uint32_t turn) {
  Turn& now = turns_[turn];
  TACIT_RETURN_IF_ERROR(now.done->Synchronize());
  return Outcome{.loss = now.loss.span().first(now.counted),
                 .squared = now.squared.span().first(now.units),
                 .bounded = now.bounded.span().first(now.units)};
}

}  // namespace tacit::cuda
