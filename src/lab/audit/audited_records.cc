#include "lab/audit/audited_records.h"

#include <string>
#include <utility>

#include "base/siphash.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/source.h"

namespace tacit::lab {
namespace {

// Ends a source of one partition once enough was read.
class FirstRecords final : public stream::Source {
 public:
  FirstRecords(std::unique_ptr<stream::Source> source, uint64_t most)
      : source_(std::move(source)), most_(most) {}

  std::string topic() const override { return source_->topic(); }
  std::vector<int32_t> partitions() const override { return source_->partitions(); }
  Result<stream::PollOutcome> Poll(std::chrono::milliseconds timeout,
                                   event::RawRecords* records) override {
    TACIT_ASSIGN(const stream::PollOutcome outcome, source_->Poll(timeout, records));
    const bool beyond = outcome == stream::PollOutcome::kRecords && records->first_offset >= most_;
    return beyond ? stream::PollOutcome::kEnd : outcome;
  }
  Status Seek(std::span<const stream::PartitionOffset> positions) override {
    return source_->Seek(positions);
  }
  void Pause(std::span<const int32_t> partitions) override { source_->Pause(partitions); }
  void Resume(std::span<const int32_t> partitions) override { source_->Resume(partitions); }
  void Claim(const stream::StoreClaim& claim) override { source_->Claim(claim); }
  void Advise(std::span<const stream::PartitionOffset> committed,
              const stream::StoreClaim& store) override {
    source_->Advise(committed, store);
  }
  stream::SourceHealth health() const override { return source_->health(); }
  uint64_t RecordsAfter(std::span<const stream::PartitionOffset> positions) const override {
    return std::min(most_, source_->RecordsAfter(positions));
  }
  std::string Identity() const override { return source_->Identity(); }
  Status VerifyIdentity(const std::string& stored) override {
    return source_->VerifyIdentity(stored);
  }

 private:
  const std::unique_ptr<stream::Source> source_;
  const uint64_t most_;
};

class ArrangedCodec final : public event::Codec {
 public:
  ArrangedCodec(std::unique_ptr<event::Codec> codec, const AuditParts& parts, bool reference,
                bool of_users, uint32_t items)
      : codec_(std::move(codec)),
        parts_(parts),
        reference_(reference),
        of_users_(of_users),
        items_(items) {}
  void Decode(const event::RawRecords& records, event::Batch* batch,
              std::vector<event::DeadLetter>* dead) const override {
    codec_->Decode(records, batch, dead);
    ArrangeRecords(
        parts_, reference_, of_users_, items_,
        [](const AuditParts::Place& place) { return place.learnt; }, batch);
  }

 private:
  const std::unique_ptr<event::Codec> codec_;
  const AuditParts& parts_;
  const bool reference_, of_users_;
  const uint32_t items_;
};

bool NamesNobody(const event::Batch& batch, size_t example) {
  return batch.user.empty() || batch.user[example].empty();
}

// Leaves out the examples that `keep` says no to.
template <class Keep>
void KeepAlone(Keep&& keep, event::Batch* batch) {
  event::Batch kept = EmptyLike(*batch);
  size_t begin = 0;
  for (size_t i = 0; i < batch->size(); ++i) {
    if (keep(i)) continue;
    kept.AppendRange(*batch, begin, i);
    begin = i + 1;
  }
  if (begin == 0) return;
  kept.AppendRange(*batch, begin, batch->size());
  std::swap(kept, *batch);
}

}  // namespace

uint64_t UnitOf(const event::Batch& batch, size_t example, bool of_users) {
  // The key is public: a store has one of its own for the users that it remembers.
  static const SipHash hash(SipHash::Key{});
  return of_users ? hash(batch.user[example]).low : batch.offset[example];
}

Result<std::unique_ptr<stream::Source>> OpenFirstRecords(const config::Source& source,
                                                         uint64_t records_most) {
  TACIT_ASSIGN(auto opened, wiring::OpenSource(source));
  return std::make_unique<FirstRecords>(std::move(opened), records_most);
}

Status ForAuditedRecords(const wiring::Assembly& assembly, bool of_users, uint64_t records_most,
                         const TakeBatch& take) {
  TACIT_ASSIGN(const auto source, OpenFirstRecords(assembly.config.source, records_most));
  const auto codec = wiring::MakeCodec(assembly.config.source, *assembly.transform, assembly.items);
  std::vector<stream::PartitionOffset> start;
  for (const int32_t partition : source->partitions()) start.push_back({partition, 0});
  TACIT_RETURN_IF_ERROR(source->Seek(start));
  event::RawRecords records;
  event::Batch batch;
  std::vector<event::DeadLetter> letters;
  while (true) {
    TACIT_ASSIGN(const stream::PollOutcome outcome,
                 source->Poll(std::chrono::milliseconds(100), &records));
    if (outcome == stream::PollOutcome::kEnd) return {};
    if (outcome == stream::PollOutcome::kNothing) continue;
    assembly.transform->StartBatch(&batch);
    letters.clear();
    codec->Decode(records, &batch, &letters);
    if (of_users) KeepAlone([&](size_t i) { return !NamesNobody(batch, i); }, &batch);
    TACIT_RETURN_IF_ERROR(take(batch));
  }
}

void ArrangeRecords(const AuditParts& parts, bool reference, bool of_users, uint32_t items,
                    const std::function<bool(const AuditParts::Place&)>& keep,
                    event::Batch* batch) {
  KeepAlone(
      [&](size_t i) {
        if (of_users && NamesNobody(*batch, i)) return false;
        const uint64_t unit = UnitOf(*batch, i, of_users);
        const AuditParts::Place place = parts.PlaceIn(reference, unit);
        if (place.changed && items == 0) batch->label[i] = 1 - batch->label[i];
        if (place.changed && items > 0 && batch->item[i] != event::kNoItem) {
          batch->label[i] = 1;
          batch->item[i] = parts.DrawnFor(unit, batch->item[i], items);
        }
        return keep(place);
      },
      batch);
}

std::unique_ptr<event::Codec> MakeArrangedCodec(std::unique_ptr<event::Codec> codec,
                                                const AuditParts& parts, bool reference,
                                                bool of_users, uint32_t items) {
  return std::make_unique<ArrangedCodec>(std::move(codec), parts, reference, of_users, items);
}

}  // namespace tacit::lab
