#include "cuda/learn/units_wave.h"

#include <iterator>
#include <span>
#include <vector>

namespace tacit::cuda {

Status UnitsWave::Report(Outcome* outcome) {
  outcome->loss.resize(counted_count_);
  outcome->squared.resize(units_);
  outcome->bounded.resize(units_);
  TACIT_RETURN_IF_ERROR(
      stream_.Download(loss_.span().Sub(0, counted_count_), std::span<float>(outcome->loss)));
  TACIT_RETURN_IF_ERROR(stream_.Download(Units(norm_), std::span<float>(outcome->squared)));
  TACIT_RETURN_IF_ERROR(stream_.Download(Units(bounded_), std::span<uint8_t>(outcome->bounded)));
  return stream_.Synchronize();
}

Status UnitsWave::Upload(const PackedUnits& units) {
  units_ = units.units();
  rows_ = units.rows();
  counted_count_ = units.counted.size();
  longest_ = units.longest;
  const std::vector<uint32_t>* const all[] = {
      &units.item,   &units.position,    &units.crop_end,         &units.unit_end, &units.counted,
      &units.target, &units.counted_end, &units.crop_counted_end, &units.id_low,   &units.id_high};
  for (size_t i = 0; i < std::size(all); ++i) {
    TACIT_RETURN_IF_ERROR(Reserve(device_, all[i]->size(), &int_buffers_[i]));
    const auto to = int_buffers_[i].span().Sub(0, all[i]->size());
    TACIT_RETURN_IF_ERROR(stream_.Upload<uint32_t>(*all[i], to));
    ints_[i] = to;
  }
  for (Buffer<float>* buffer : {&weight_, &loss_, &factor_, &minus_sum_})
    TACIT_RETURN_IF_ERROR(Reserve(device_, counted_count_, buffer));
  TACIT_RETURN_IF_ERROR(stream_.Upload<float>(units.weight, weight_.span().Sub(0, counted_count_)));
  TACIT_RETURN_IF_ERROR(Reserve(device_, units_, &squared_));
  TACIT_RETURN_IF_ERROR(Reserve(device_, units_, &norm_));
  TACIT_RETURN_IF_ERROR(Reserve(device_, units_, &scale_));
  TACIT_RETURN_IF_ERROR(Reserve(device_, units_, &bounded_));
  TACIT_RETURN_IF_ERROR(Reserve(device_, units_, &coordinates_));
  TACIT_RETURN_IF_ERROR(Reserve(device_, 1, &clipped_));
  return stream_.Upload<uint32_t>(units.coordinates, Units(coordinates_));
}

}  // namespace tacit::cuda
