#include "event/batch.h"

#include "base/check.h"

namespace tacit::event {
namespace {

template <class T>
void AppendElements(const std::vector<T>& from, size_t begin, size_t end, std::vector<T>* to) {
  to->insert(to->end(), from.begin() + static_cast<ptrdiff_t>(begin),
             from.begin() + static_cast<ptrdiff_t>(end));
}

// Appends a column; one that the source lacks stays empty.
void AppendTexts(const TextColumn& from, size_t begin, size_t end, TextColumn* to) {
  if (from.empty()) return;
  for (size_t i = begin; i < end; ++i) to->Append(from[i]);
}

}  // namespace

void Batch::Clear() {
  offset.clear();
  timestamp_ms.clear();
  label.clear();
  dense.clear();
  slot_end.clear();
  row.clear();
  weight.clear();
  item.clear();
  user.Clear();
  event_id.Clear();
}

void Batch::AppendRange(const Batch& other, size_t begin, size_t end) {
  TACIT_CHECK(begin <= end && end <= other.size(), "range outside the batch");
  TACIT_CHECK(dense_width == other.dense_width && slots == other.slots, "batches differ in shape");
  TACIT_CHECK(size() == 0 || begin == end ||
                  (user.empty() == other.user.empty() && item.empty() == other.item.empty() &&
                   weight.empty() == other.weight.empty()),
              "batches differ in columns");
  AppendElements(other.offset, begin, end, &offset);
  AppendElements(other.timestamp_ms, begin, end, &timestamp_ms);
  AppendElements(other.label, begin, end, &label);
  AppendElements(other.dense, begin * dense_width, end * dense_width, &dense);
  if (!other.weight.empty()) AppendElements(other.weight, begin, end, &weight);
  if (!other.item.empty()) AppendElements(other.item, begin, end, &item);
  AppendTexts(other.user, begin, end, &user);
  AppendTexts(other.event_id, begin, end, &event_id);

  const size_t first_slot = begin * slots, last_slot = end * slots;
  if (first_slot == last_slot) return;
  const uint32_t row_begin = first_slot == 0 ? 0 : other.slot_end[first_slot - 1];
  const auto base = static_cast<uint32_t>(row.size());
  AppendElements(other.row, row_begin, other.slot_end[last_slot - 1], &row);
  const size_t ends = slot_end.size();
  slot_end.resize(ends + (last_slot - first_slot));
  for (size_t s = first_slot; s < last_slot; ++s)
    slot_end[ends + (s - first_slot)] = base + (other.slot_end[s] - row_begin);
}

Batch EmptyLike(const Batch& batch) {
  Batch empty;
  empty.partition = batch.partition;
  empty.dense_width = batch.dense_width;
  empty.slots = batch.slots;
  return empty;
}

}  // namespace tacit::event
