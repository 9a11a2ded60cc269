#include "cuda/learn/served_places.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "train/engines/gpu_scoring.h"

namespace tacit::cuda {

ServedPlaces::ServedPlaces(uint32_t shelves, uint64_t places_each)
    : places_each_(places_each), states_(shelves) {
  const uint64_t slots = train::GpuScoreIndexSlots(places_each);
  shift_ = slots == 0 ? 0 : 64 - static_cast<unsigned>(std::countr_zero(slots));
  for (State& state : states_) state.slots.resize(slots);
}

void ServedPlaces::Begin(State* state) {
  state->used = 0;
  state->generation += kGenerationsAhead;
  if (state->generation != 0) return;  // that of slots without a row
  std::ranges::fill(state->slots, Slot());
  state->generation = 1;
}

ServedPlaces::Shelf ServedPlaces::ShelfOf(std::string_view version) {
  size_t at = 0;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].asked > 0 && states_[i].version == version) {
      states_[i].asked = ++turn_;
      return {static_cast<uint32_t>(i), false};
    }
    if (states_[i].asked < states_[at].asked) at = i;
  }
  State& state = states_[at];
  state.version = version;
  state.asked = ++turn_;
  Begin(&state);
  return {static_cast<uint32_t>(at), true};
}

// Fibonacci hashing: spreads neighbouring rows far apart. Returns the row's slot, or the free one
// for it.
ServedPlaces::Slot& ServedPlaces::Find(State& state, uint64_t row) const {
  const size_t mask = state.slots.size() - 1;
  size_t i = (row * 0x9E3779B97F4A7C15u) >> shift_;
  while (state.slots[i].generation == state.generation && state.slots[i].row != row)
    i = (i + 1) & mask;
  return state.slots[i];
}

void ServedPlaces::LookUp(State& state, uint32_t first, std::span<const uint64_t> rows,
                          std::vector<uint32_t>* places, std::vector<uint32_t>* missing) const {
  missing->clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Slot& slot = Find(state, rows[i]);
    if (slot.generation == state.generation)
      (*places)[i] = first + slot.place;
    else
      missing->push_back(static_cast<uint32_t>(i));
  }
}

void ServedPlaces::Place(uint32_t shelf, std::span<const uint64_t> rows,
                         std::vector<uint32_t>* places, std::vector<uint32_t>* missing) {
  TACIT_CHECK(rows.size() <= places_each_, "a pass has more rows than a shelf has places");
  State& state = states_[shelf];
  const auto first = static_cast<uint32_t>(shelf * places_each_);
  places->resize(rows.size());
  LookUp(state, first, rows, places, missing);
  if (state.used + missing->size() > places_each_) {
    Begin(&state);
    LookUp(state, first, rows, places, missing);
  }
  for (const uint32_t i : *missing) {
    const auto place = static_cast<uint32_t>(state.used++);
    Find(state, rows[i]) = {rows[i], place, state.generation};
    (*places)[i] = first + place;
  }
}

void ServedPlaces::Clear() {
  for (State& state : states_) {
    state.asked = 0;
    Begin(&state);
  }
}

}  // namespace tacit::cuda
