#pragma once

#include <cstdint>

#include "base/device.h"
#include "cuda/device/buffer.h"

// Places of rows on the device. A row has a *name*: the number of the place in which it lies. Whole
// tables give each row its own number for a name; a cache (cuda/rows) gives it one for a while.
namespace tacit::cuda {

// A table on the device: its embeddings and its rows' state, each in an array of its own.
struct DeviceTable {
  float* embedding = nullptr;
  float* state = nullptr;
  uint64_t first = 0, rows = 0;  // its rows' numbers
  uint32_t dim = 0, state_floats = 0;
  uint64_t first_name = 0;  // the name of the first place of its arrays
};

// Places outside of all tables, for rows of any: an embedding, and its state behind it.
struct DeviceGuests {
  float* rows = nullptr;
  uint32_t first = 0xffffffff;  // the first one's name, above those of tables; no name is as large
  uint32_t stride = 0;          // in floats
};

struct RowPlaces {
  DeviceSpan<const DeviceTable> tables = {};
  DeviceGuests guests = {};
};

// A row's floats.
struct RowPlace {
  float* embedding;
  float* state;
  uint32_t dim, state_floats;
};

// The place with this name, of a row with this number. REQUIRES a row of the tables.
TACIT_DEVICE inline RowPlace PlaceOf(const RowPlaces& places, uint64_t row, uint32_t name) {
  uint32_t t = 0;
  while (row - places.tables[t].first >= places.tables[t].rows) ++t;
  const DeviceTable& table = places.tables[t];
  const DeviceGuests& guests = places.guests;
  if (name >= guests.first) {
    float* const guest = guests.rows + uint64_t{name - guests.first} * guests.stride;
    return {guest, guest + table.dim, table.dim, table.state_floats};
  }
  const uint64_t i = name - table.first_name;
  return {table.embedding + i * table.dim, table.state + i * table.state_floats, table.dim,
          table.state_floats};
}

}  // namespace tacit::cuda
