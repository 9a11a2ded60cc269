#include "train/watch/repeated_records.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace tacit::train {
namespace {

constexpr size_t kRemembered = 1 << 15;
constexpr uint32_t kFewest = 200, kMost = 2000;  // records followed in a window
constexpr uint64_t kUserSeed = 0x75736572;

uint64_t Joined(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

// A hash of `columns` of an example's numbers and rows, evenly spread over all of them.
uint64_t HashOf(const event::Batch& batch, size_t example, size_t columns) {
  uint64_t hash = batch.label[example] > 0.5f ? 1 : 2;
  const float* const dense = batch.dense.data() + example * batch.dense_width;
  const size_t all = batch.dense_width + batch.slots;
  const size_t apart = columns >= all ? 1 : all / columns, end = std::min(columns, all) * apart;
  for (size_t column = 0; column < end; column += apart) {
    if (column < batch.dense_width) {
      hash = Joined(hash, std::bit_cast<uint32_t>(dense[column]));
    } else {
      for (const uint64_t row : batch.Slot(example, column - batch.dense_width))
        hash = Joined(hash, row);
    }
  }
  if (!batch.user.empty()) hash = Joined(hash, BucketHash(batch.user[example], kUserSeed));
  return hash;
}

}  // namespace

RepeatedRecords::RepeatedRecords() : seen_(kRemembered) {}

void RepeatedRecords::See(const event::Batch& batch, size_t example) {
  constexpr size_t kColumnsOfSample = 6;
  // The bits that choose the sample are not those that find the place.
  if ((HashOf(batch, example, kColumnsOfSample) >> 40 & skip_mask_) != 0) return;
  const uint64_t hash = HashOf(batch, example, batch.dense_width + batch.slots);
  uint64_t& place = seen_[hash % kRemembered];
  ++followed_;
  repeated_ += place == hash ? 1 : 0;
  place = hash;
  if (followed_ < kMost) return;
  // Half of the sample is enough. It would have counted half as many until here.
  skip_mask_ = 2 * skip_mask_ + 1;
  followed_ /= 2;
  repeated_ /= 2;
}

std::optional<double> RepeatedRecords::EndWindow() {
  std::optional<double> share;
  if (followed_ >= kFewest) share = static_cast<double>(repeated_) / followed_;
  if (followed_ < kFewest) skip_mask_ /= 2;
  followed_ = repeated_ = 0;
  return share;
}

}  // namespace tacit::train
