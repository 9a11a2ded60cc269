// Look-up: 8 lanes a row, 16 digests each. Filling: a warp a bucket, four places a lane.
//   bytes:      FindRows 4 read and 5 written a row, a line of 128 for its bucket's digests, one of
//               32 for each digest that fits, and an atomic of 4; PlaceRows 1,152 a bucket and 9 a
//               row; transfers 8 a float
//   operations: FindRows 16 comparisons a lane; PlaceRows 5 shuffles of 64 bits a row
// Random lines bound FindRows. Measured on an H200, rows of 64 floats in random order: 12 G
// look-ups a second in an index that is half full, 1.9 G rows a second placed and filled.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/parts/sorted.h"
#include "cuda/rows/row_index.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128;
constexpr uint32_t kLanesPerRow = 8, kPerLane = 16;
constexpr uint32_t kPlacesPerLane = kBucketPlaces / kWarp;
static_assert(kLanesPerRow * kPerLane == kBucketPlaces && kPlacesPerLane == 4);

// The first of this lane's 16 places that has the row, or kNone.
TACIT_IN_KERNEL uint32_t FindInPart(const RowIndex& index, uint32_t row) {
  const uint32_t part =
      BucketOf(index.tables.data, row) * kLanesPerRow + ThreadIndex().x % kLanesPerRow;
  const Digests digests = index.digests[part];
  const uint32_t wanted = DigestOf(row);
  for (uint32_t i = 0; i < kPerLane; ++i) {
    if ((digests.words[i / 4] >> 8 * (i % 4) & 0xff) != wanted) continue;
    const uint32_t place = part * kPerLane + i;
    if (index.row[place] == row) return place;
  }
  return kNone;
}

TACIT_KERNEL FindKernel(RowIndex index, DeviceSpan<const uint32_t> row, uint32_t age,
                        DeviceSpan<uint32_t> name, DeviceSpan<uint8_t> missing) {
  const uint64_t i = GlobalThread() / kLanesPerRow;
  const bool real = i < row.size;
  uint32_t place = real ? FindInPart(index, row[i]) : kNone;
  for (uint32_t bits = 1; bits < kLanesPerRow; bits *= 2) {
    const uint32_t other = ShuffleXor(place, bits);
    if (other < place) place = other;
  }
  if (!real || ThreadIndex().x % kLanesPerRow != 0) return;
  name[i] = place;
  missing[i] = place == kNone;
  if (place != kNone) AtomicMin(&index.age[place], age);
}

// A place's age and place as one number: the largest is the oldest, and the first of those.
TACIT_IN_KERNEL uint64_t Seniority(uint32_t age, uint32_t place) {
  return uint64_t{age} << 7 | (kBucketPlaces - 1 - place);
}

TACIT_KERNEL PlaceKernel(RowIndex index, RowsToPlace rows, DeviceSpan<const uint8_t> changed,
                         DeviceSpan<uint32_t> name) {
  const uint64_t which = GlobalThread() / kWarp;
  if (which >= rows.first.size) return;
  const uint64_t begin = rows.first[which];
  const uint64_t end = which + 1 < rows.first.size ? rows.first[which + 1] : rows.row.size;
  const uint32_t bucket = BucketOf(index.tables.data, rows.row[begin]);
  const uint32_t mine = LaneIndex() * kPlacesPerLane;
  uint32_t& word = index.digests[bucket * kLanesPerRow + mine / kPerLane].words[mine / 4 % 4];
  uint32_t digests = word;
  // 0 for a place that keeps its row. Flags of rows in use are not looked at: the step that runs
  // may set them just now.
  uint32_t ages[kPlacesPerLane];
  for (uint32_t j = 0; j < kPlacesPerLane; ++j) {
    const uint32_t place = bucket * kBucketPlaces + mine + j, age = index.age[place];
    ages[j] = age > rows.in_use && changed[place] == 0 ? age : 0;
  }
  for (uint64_t i = begin; i < end; ++i) {
    uint64_t oldest = 0;
    for (uint32_t j = 0; j < kPlacesPerLane; ++j)
      if (ages[j] > 0 && Seniority(ages[j], mine + j) > oldest)
        oldest = Seniority(ages[j], mine + j);
    for (uint32_t bits = kWarp / 2; bits > 0; bits /= 2) {
      const uint64_t other = ShuffleXor(oldest, bits);
      if (other > oldest) oldest = other;
    }
    const bool found = oldest > 0;
    const uint32_t place = kBucketPlaces - 1 - static_cast<uint32_t>(oldest & 127);
    if (LaneIndex() == 0) name[i] = found ? bucket * kBucketPlaces + place : kNone;
    if (!found || place / kPlacesPerLane != LaneIndex()) continue;
    const uint32_t row = rows.row[i], shift = 8 * (place % kPlacesPerLane);
    index.row[bucket * kBucketPlaces + place] = row;
    index.age[bucket * kBucketPlaces + place] = rows.age;
    digests = (digests & ~(0xffu << shift)) | DigestOf(row) << shift;
    for (uint32_t j = 0; j < kPlacesPerLane; ++j)
      if (mine + j == place) ages[j] = 0;
  }
  word = digests;
}

TACIT_KERNEL NameKernel(DeviceSpan<const uint32_t> row, DeviceSpan<const uint8_t> missing,
                        DeviceSpan<const uint32_t> sorted, DeviceSpan<const uint32_t> sorted_name,
                        DeviceSpan<uint32_t> name) {
  const uint64_t i = GlobalThread();
  if (i >= row.size || !missing[i]) return;
  name[i] = sorted_name[FirstNotBelow(sorted, row[i])];
}

TACIT_KERNEL ChangedKernel(RowIndex index, uint32_t first, DeviceSpan<const uint8_t> changed,
                           DeviceSpan<const uint32_t> rank, DeviceSpan<uint32_t> row,
                           DeviceSpan<uint32_t> name) {
  const uint64_t i = GlobalThread();
  if (i >= changed.size || !changed[i]) return;
  row[rank[i]] = index.row[first + i];
  name[rank[i]] = first + static_cast<uint32_t>(i);
}

// The place of float `c` of a row, or null behind its end.
TACIT_IN_KERNEL float* FloatOf(const RowPlace& at, uint32_t c) {
  if (c < at.dim) return at.embedding + c;
  return c - at.dim < at.state_floats ? at.state + (c - at.dim) : nullptr;
}

// Calls body(transfer's float, the row's float or null) for each float of the warp's rows, which
// are kRowsAtOnce: what one needs is loaded while another is waited for.
constexpr uint32_t kRowsAtOnce = 4;
template <class Body>
TACIT_IN_KERNEL void ForFloats(const RowPlaces& places, const RowTransfer& transfer,
                               const Body& body) {
  const uint64_t first = GlobalThread() / kWarp * kRowsAtOnce;
  RowPlace at[kRowsAtOnce];
  TACIT_UNROLL
  for (uint32_t i = 0; i < kRowsAtOnce; ++i)
    at[i] = first + i < transfer.row.size
                ? PlaceOf(places, transfer.row[first + i], transfer.name[first + i])
                : RowPlace();
  for (uint32_t c = LaneIndex(); c < transfer.stride; c += kWarp) {
    TACIT_UNROLL
    for (uint32_t i = 0; i < kRowsAtOnce; ++i)
      if (first + i < transfer.row.size)
        body(transfer.floats[(first + i) * transfer.stride + c], FloatOf(at[i], c));
  }
}

TACIT_KERNEL UnpackKernel(RowPlaces places, RowTransfer transfer) {
  ForFloats(places, transfer, [](const float& from, float* to) {
    if (to != nullptr) *to = from;
  });
}
TACIT_KERNEL PackKernel(RowPlaces places, RowTransfer transfer) {
  ForFloats(places, transfer,
            [](float& to, const float* from) { to = from != nullptr ? *from : 0; });
}

constexpr uint32_t kNumbersAThread = 16;
TACIT_KERNEL NoNumbersKernel(DeviceSpan<const float> floats, float most,
                             DeviceSpan<uint32_t> sound) {
  const uint64_t first = uint64_t{BlockIndex().x} * kBlock * kNumbersAThread + ThreadIndex().x;
  bool all = true;
  for (uint32_t k = 0; k < kNumbersAThread; ++k) {
    const uint64_t i = first + k * kBlock;
    if (i < floats.size && !(floats[i] <= most && floats[i] >= -most)) all = false;
  }
  if (!all) AtomicMin(sound.data, 0u);
}

runtime::LaunchShape Threads(uint64_t n) {
  return {.grid = BlocksFor(n, kBlock), .block = {kBlock}, .shared_bytes = 0};
}

// A warp for kRowsAtOnce rows.
runtime::LaunchShape WarpsOf(uint64_t rows) {
  return Threads((rows + kRowsAtOnce - 1) / kRowsAtOnce * kWarp);
}

void CheckTransfer(const RowTransfer& transfer) {
  TACIT_CHECK(transfer.stride > 0 && transfer.name.size == transfer.row.size &&
              transfer.floats.size == transfer.row.size * transfer.stride);
}

}  // namespace

Status FindRows(Stream& stream, const RowIndex& index, DeviceSpan<const uint32_t> row, uint32_t age,
                DeviceSpan<uint32_t> name, DeviceSpan<uint8_t> missing) {
  TACIT_CHECK(name.size == row.size && missing.size == row.size);
  return Launch(stream, "FindRows", Threads(row.size * kLanesPerRow), FindKernel, index, row, age,
                name, missing);
}

Status PlaceRows(Stream& stream, const RowIndex& index, const RowsToPlace& rows,
                 DeviceSpan<const uint8_t> changed, DeviceSpan<uint32_t> name) {
  TACIT_CHECK(name.size == rows.row.size && changed.size >= index.row.size);
  return Launch(stream, "PlaceRows", Threads(rows.first.size * kWarp), PlaceKernel, index, rows,
                changed, name);
}

Status NameMissing(Stream& stream, DeviceSpan<const uint32_t> row,
                   DeviceSpan<const uint8_t> missing, DeviceSpan<const uint32_t> sorted,
                   DeviceSpan<const uint32_t> sorted_name, DeviceSpan<uint32_t> name) {
  TACIT_CHECK(missing.size == row.size && name.size == row.size && sorted_name.size == sorted.size);
  return Launch(stream, "NameMissing", Threads(row.size), NameKernel, row, missing, sorted,
                sorted_name, name);
}

Status ListChanged(Stream& stream, const RowIndex& index, uint32_t first,
                   DeviceSpan<const uint8_t> changed, DeviceSpan<const uint32_t> rank,
                   DeviceSpan<uint32_t> row, DeviceSpan<uint32_t> name) {
  TACIT_CHECK(first + changed.size <= index.row.size && rank.size == changed.size);
  return Launch(stream, "ListChanged", Threads(changed.size), ChangedKernel, index, first, changed,
                rank, row, name);
}

Status UnpackRows(Stream& stream, const RowPlaces& places, const RowTransfer& transfer) {
  CheckTransfer(transfer);
  return Launch(stream, "UnpackRows", WarpsOf(transfer.row.size), UnpackKernel, places, transfer);
}
Status PackRows(Stream& stream, const RowPlaces& places, const RowTransfer& transfer) {
  CheckTransfer(transfer);
  return Launch(stream, "PackRows", WarpsOf(transfer.row.size), PackKernel, places, transfer);
}

Status FindNoNumbers(Stream& stream, DeviceSpan<const float> floats, float most,
                     DeviceSpan<uint32_t> sound) {
  TACIT_RETURN_IF_ERROR(stream.Fill(sound, 0xff));
  if (floats.size == 0) return {};
  return Launch(stream, "FindNoNumbers",
                Threads((floats.size + kNumbersAThread - 1) / kNumbersAThread), NoNumbersKernel,
                floats, most, sound);
}

}  // namespace tacit::cuda
