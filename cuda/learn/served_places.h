#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacit::cuda {

// The generations that a shelf which begins anew is ahead of what it held, so that none of that
// counts any more.
inline constexpr uint32_t kGenerationsAhead = 1;

// Says which rows of which versions lie in which places of a scorer's device memory. Every version
// that is there has a shelf of places of its own, which are filled one behind the other; a shelf
// that is full begins anew, and so does one that is given to another version. Not thread-safe.
class ServedPlaces {
 public:
  ServedPlaces(uint32_t shelves, uint64_t places_each);

  struct Shelf {
    uint32_t number = 0;
    bool is_new = false;  // nothing of the version is there
  };
  // The version's shelf: its own, or that of the version that was asked for longest ago.
  Shelf ShelfOf(std::string_view version);
  // Sets the place of each of these distinct rows, in all places of all shelves. The rows at
  // `missing`, in order, are not there yet: their places follow one another, and the caller brings
  // them. REQUIRES at most as many rows as a shelf has places.
  void Place(uint32_t shelf, std::span<const uint64_t> rows, std::vector<uint32_t>* places,
             std::vector<uint32_t>* missing);
  // Forgets all versions and rows, for a caller who could not bring what was missing.
  void Clear();

 private:
  // A row is there if its generation is the shelf's, so that a shelf is cleared by a number.
  struct Slot {
    uint64_t row = 0;
    uint32_t place = 0, generation = 0;
  };
  static_assert(sizeof(Slot) == 16);
  struct State {
    std::string version;
    uint64_t asked = 0;  // the turn of the last request; 0: none yet
    uint64_t used = 0;
    uint32_t generation = 1;
    std::vector<Slot> slots;
  };
  void Begin(State* state);
  Slot& Find(State& state, uint64_t row) const;
  void LookUp(State& state, uint32_t first, std::span<const uint64_t> rows,
              std::vector<uint32_t>* places, std::vector<uint32_t>* missing) const;

  const uint64_t places_each_;
  uint64_t turn_ = 0;
  unsigned shift_ = 0;
  std::vector<State> states_;
};

}  // namespace tacit::cuda
