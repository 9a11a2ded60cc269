#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "event/codec.h"

namespace tacit::event {

// A codec that decodes records one by one. `Derived` has a type Scratch, the working memory of a
// run, so that nothing is allocated per record, and
//   MaybeBad DecodeRecord(const RawRecords&, size_t i, Scratch*, Batch*) const;
// which appends the record's label, timestamp and columns or returns a reason why not; this class
// then removes what the bad record appended. A format whose files have lines that are no records
// has as well
//   bool IsNoRecord(const RawRecords&, size_t i, Scratch*) const;
// Bound at compile time: no virtual call per record.
template <class Derived>
class RunCodec : public Codec {
 public:
  void Decode(const RawRecords& records, Batch* batch, std::vector<DeadLetter>* dead) const final {
    const Derived& codec = static_cast<const Derived&>(*this);
    TACIT_CHECK(batch->size() == 0 || batch->partition == records.partition, "mixed partitions");
    batch->partition = records.partition;
    typename Derived::Scratch scratch = codec.MakeScratch(*batch);
    auto fault = records.faults.begin();
    for (size_t i = 0; i < records.size(); ++i) {
      const BatchSizes before(*batch);
      MaybeBad bad;
      if (fault != records.faults.end() && fault->index == i) {
        bad.emplace(fault->reason, fault->part);
        ++fault;
      } else {
        if constexpr (requires { codec.IsNoRecord(records, i, &scratch); })
          if (codec.IsNoRecord(records, i, &scratch)) continue;
        bad = codec.DecodeRecord(records, i, &scratch, batch);
      }
      if (!bad) {
        batch->offset.push_back(records.first_offset + i);
        continue;
      }
      before.CutBack(batch);
      const uint64_t line = records.origin_line == 0 ? 0 : records.origin_line + i;
      dead->push_back({records.origin, line, records.partition, records.first_offset + i,
                       std::move(bad->reason), bad->part});
    }
  }

 private:
  // The sizes of the batch's columns.
  class BatchSizes {
   public:
    explicit BatchSizes(const Batch& batch)
        : examples_(batch.size()),
          rows_(batch.row.size()),
          weights_(batch.weight.size()),
          items_(batch.item.size()),
          users_(batch.user.size()),
          ids_(batch.event_id.size()) {}
    void CutBack(Batch* batch) const {
      batch->label.resize(examples_);
      batch->timestamp_ms.resize(examples_);
      batch->dense.resize(examples_ * batch->dense_width);
      batch->slot_end.resize(examples_ * batch->slots);
      batch->row.resize(rows_);
      batch->weight.resize(weights_);
      batch->item.resize(items_);
      batch->user.Truncate(users_);
      batch->event_id.Truncate(ids_);
    }

   private:
    const size_t examples_, rows_, weights_, items_, users_, ids_;
  };
};

// Formats a text for a message: short, printable, in quotes. Never a record's value: reasons are
// kept longer than records.
std::string Quoted(std::string_view field);

// Returns a reason if the record's own time lies too far ahead of the time it was taken.
MaybeBad TooFarAhead(int64_t timestamp_ms, int64_t taken_ms, const InteractionOptions& options);

}  // namespace tacit::event
