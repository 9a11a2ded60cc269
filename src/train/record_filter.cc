#include "train/record_filter.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace tacit::train {

RecordFilter::RecordFilter(const RecordFilterOptions& options) : options_(options) {
  if (options_.dedupe_window > 0) deduper_.emplace(options_.dedupe_window, options_.key);
}

void RecordFilter::BeginPass() {
  if (deduper_) deduper_->Clear();
}

// Warns of a partition beyond the memory plan. A topic may grow while the daemon runs: filtering
// continues.
void RecordFilter::TellOfMemory(int32_t partition) {
  if (!partitions_.insert(partition).second || partitions_.size() <= options_.dedupe_partitions)
    return;
  spdlog::warn(
      "partition {} is one more than source.dedupe.partitions, {}: its window of de-duplication "
      "goes beyond memory.total_bytes",
      partition, options_.dedupe_partitions);
}

void RecordFilter::TakeOut(const std::vector<uint32_t>& examples, event::Batch* batch) {
  if (examples.empty()) return;
  rest_ = EmptyLike(*batch);
  size_t begin = 0;
  for (const uint32_t out : examples) {
    rest_.AppendRange(*batch, begin, out);
    begin = out + 1;
  }
  rest_.AppendRange(*batch, begin, batch->size());
  std::swap(rest_, *batch);
}

void RecordFilter::TakeOutOptedOut(event::Batch* batch) {
  if (batch->user.empty()) return;
  out_.clear();
  for (uint32_t i = 0; i < batch->size(); ++i)
    if (!batch->user[i].empty() && options_.opt_out->Has(batch->user[i])) out_.push_back(i);
  options_.opted_out.Add(static_cast<double>(out_.size()));
  TakeOut(out_, batch);
}

void RecordFilter::Apply(const event::RawRecords& records, event::Batch* batch,
                         std::vector<event::DeadLetter>* dead) {
  if (options_.opt_out != nullptr) TakeOutOptedOut(batch);
  if (options_.needs_user) {
    out_.clear();
    for (uint32_t i = 0; i < batch->size(); ++i) {
      if (!batch->user.empty() && !batch->user[i].empty()) continue;
      out_.push_back(i);
      const uint64_t index = batch->offset[i] - records.first_offset;
      dead->push_back({.origin = records.origin,
                       .line = records.origin_line == 0 ? 0 : records.origin_line + index,
                       .partition = records.partition,
                       .offset = batch->offset[i],
                       .reason = "user: is missing, and a learner's unit is the user",
                       .part = event::BadPart::kUser});
    }
    TakeOut(out_, batch);
    std::stable_sort(dead->begin(), dead->end(),
                     [](const auto& a, const auto& b) { return a.offset < b.offset; });
  }
  if (!deduper_) return;
  TellOfMemory(records.partition);
  deduper_->Find(*batch, &out_);
  options_.duplicates.Add(static_cast<double>(out_.size()));
  TakeOut(out_, batch);
}

}  // namespace tacit::train
