#include "cuda/learn/units_wave.h"

#include <iterator>
#include <span>
#include <vector>

namespace tacit::cuda {

Status UnitsWave::Report(Outcome* outcome) {
  outcome->loss.resize(counted_count_);
  outcome->squared.resize(units_);
  outcome->bounded.resize(units_);
  TACIT_RETURN_IF_ERROR(stream_.Download(Counted(memory_.loss), std::span<float>(outcome->loss)));
  TACIT_RETURN_IF_ERROR(stream_.Download(Units(memory_.norm), std::span<float>(outcome->squared)));
  TACIT_RETURN_IF_ERROR(
      stream_.Download(Units(memory_.bounded), std::span<uint8_t>(outcome->bounded)));
  return stream_.Synchronize();
}

Status UnitsMemory::Take(const WavePlan& sizes, BufferTaker taker) {
  const uint64_t of_ints[kInts] = {sizes.rows,    sizes.rows,    sizes.crops, sizes.units,
                                   sizes.counted, sizes.counted, sizes.units, sizes.crops,
                                   sizes.units,   sizes.units};
  for (size_t i = 0; i < kInts; ++i) TACIT_RETURN_IF_ERROR(taker.Take(of_ints[i], &ints[i]));
  TACIT_RETURN_IF_ERROR(taker.TakeEach(sizes.counted, {&weight, &loss, &factor, &minus_sum}));
  TACIT_RETURN_IF_ERROR(taker.Take(sizes.units, &squared));
  TACIT_RETURN_IF_ERROR(taker.TakeEach(sizes.units, {&norm, &scale}));
  TACIT_RETURN_IF_ERROR(taker.Take(sizes.units, &bounded));
  TACIT_RETURN_IF_ERROR(taker.Take(sizes.units, &coordinates));
  return taker.Take(1, &clipped);
}

Status UnitsWave::Upload(const PackedUnits& units) {
  units_ = units.units();
  rows_ = units.rows();
  counted_count_ = units.counted.size();
  longest_ = units.longest;
  TACIT_RETURN_IF_ERROR(memory_.Take(
      {.rows = rows_, .units = units_, .counted = counted_count_, .crops = units.crop_end.size()},
      BufferTaker(device_)));
  const std::vector<uint32_t>* const all[] = {
      &units.item,   &units.position,    &units.crop_end,         &units.unit_end, &units.counted,
      &units.target, &units.counted_end, &units.crop_counted_end, &units.id_low,   &units.id_high};
  static_assert(std::size(all) == UnitsMemory::kInts);
  for (size_t i = 0; i < std::size(all); ++i) {
    const auto to = memory_.ints[i].span().Sub(0, all[i]->size());
    TACIT_RETURN_IF_ERROR(stream_.Upload<uint32_t>(*all[i], to));
    ints_[i] = to;
  }
  TACIT_RETURN_IF_ERROR(stream_.Upload<float>(units.weight, Counted(memory_.weight)));
  return stream_.Upload<uint32_t>(units.coordinates, Units(memory_.coordinates));
}

}  // namespace tacit::cuda
