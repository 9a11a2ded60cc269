#include "stream/kafka/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace tacit::stream {
namespace {

constexpr std::string_view kMadeAnew =
    "the topic was cut back or made anew, and its offsets no longer stand for the records that "
    "were "
    "read; give the new topic another name, or begin a new store";

const PartitionSpan* Find(std::span<const PartitionSpan> there, int32_t partition) {
  const auto found = std::ranges::find(there, partition, &PartitionSpan::partition);
  return found == there.end() ? nullptr : &*found;
}

tl::unexpected<Error> Refuse(const std::string& topic, int32_t partition, std::string_view what) {
  return Fail(ErrorCode::kRefused,
              fmt::format("topic '{}' partition {}: {}", topic, partition, what));
}

tl::unexpected<Error> Missing(const std::string& topic, int32_t partition) {
  return Refuse(topic, partition,
                fmt::format("is not there, but the store has read from it: {}", kMadeAnew));
}

// A head or term that cannot be read is left out.
RememberedCommit CommitOf(const StoreMark& mark) {
  RememberedCommit commit{.seq = CommitSeq(mark.sequence), .head = Digest{}};
  if (!FromHex(mark.head, *commit.head)) commit.head.reset();
  if (!FromHex(mark.term, commit.term)) commit.term = kNoTerm;
  return commit;
}

// REQUIRES a mark of the same lineage whose commit is not beyond this store's last one.
bool WentAnotherWay(const StoreMark& mark, const StoreClaim& own) {
  if (mark.sequence == own.now.sequence && !mark.head.empty()) return mark.head != own.now.head;
  return !own.terms.Has(CommitOf(mark));
}

}  // namespace

Result<std::vector<PartitionStart>> PlanStarts(const std::string& topic,
                                               std::span<const PartitionSpan> there,
                                               std::span<const PartitionOffset> wanted,
                                               OnLost on_lost) {
  for (const PartitionOffset& position : wanted)
    if (position.offset != PartitionOffset::kNowhere && Find(there, position.partition) == nullptr)
      return Missing(topic, position.partition);
  std::vector<PartitionStart> starts;
  for (const PartitionSpan& span : there) {
    PartitionStart& start = starts.emplace_back(
        PartitionStart{.partition = span.partition, .offset = span.begin, .end = span.end});
    const auto position = std::ranges::find(wanted, span.partition, &PartitionOffset::partition);
    if (position == wanted.end() || position->offset == PartitionOffset::kNowhere) continue;
    if (position->offset > span.end)
      return Refuse(topic, span.partition,
                    fmt::format("ends at offset {}, but the store has read up to offset {}: {}",
                                span.end, position->offset, kMadeAnew));
    if (position->offset < span.begin) {
      start.lost = span.begin - position->offset;
      if (on_lost == OnLost::kRefuse)
        return Refuse(topic, span.partition,
                      fmt::format("offsets {} to {} are gone before they were read (retention); "
                                  "with source.on_period_lost: close the store continues after "
                                  "them, and what was lost stays unlearnt",
                                  position->offset, span.begin - 1));
    }
    if (!position->from_beginning) start.offset = std::max(position->first(), span.begin);
  }
  return starts;
}

Result<std::vector<PartitionOffset>> LastRecordsToCheck(const KafkaIdentity& identity,
                                                        std::span<const PartitionSpan> there) {
  std::vector<PartitionOffset> check;
  for (const auto& [partition, last] : identity.last) {
    const PartitionSpan* span = Find(there, partition);
    if (span == nullptr) return Missing(identity.topic, partition);
    if (last.offset >= span->end)
      return Refuse(identity.topic, partition,
                    fmt::format("ends at offset {}, but the store has read the record at offset "
                                "{}: {}",
                                span->end, last.offset, kMadeAnew));
    if (last.offset >= span->begin)
      check.push_back({.partition = partition, .offset = last.offset});
  }
  return check;
}

Status CheckLastRecords(const KafkaIdentity& identity, const std::map<int32_t, LastRecord>& found) {
  for (const auto& [partition, record] : found) {
    const auto last = identity.last.find(partition);
    if (last == identity.last.end() || record.offset != last->second.offset) continue;
    if (record == last->second) continue;
    return Refuse(identity.topic, partition,
                  fmt::format("the record at offset {} is not the one that was read: {}",
                              record.offset, kMadeAnew));
  }
  return {};
}

Status CheckReader(const std::string& topic, const std::string& group,
                   std::span<const GroupOffset> committed, const StoreClaim& own) {
  for (const GroupOffset& offset : committed) {
    const auto mark = ParseStoreMark(offset.metadata);
    if (!mark) continue;
    if (AccountsFor(own.ancestors, mark->lineage, CommitOf(*mark))) continue;
    if (mark->lineage != own.now.lineage)
      return Refuse(
          topic, offset.partition,
          fmt::format("the store of lineage {} has read up to offset {} (its commit {}) "
                      "with group '{}', this store is of lineage {}: records would be "
                      "learnt from twice. Start that store, or, to learn from them once "
                      "more with a ledger of its own, give this one another "
                      "kafka.group.id",
                      mark->lineage, offset.offset, mark->sequence, group, own.now.lineage));
    if (mark->sequence > own.now.sequence)
      return Refuse(
          topic, offset.partition,
          fmt::format("this store (lineage {}) has read up to offset {} with group '{}' "
                      "when it was at commit {}, and is at commit {} now: it is an older "
                      "copy, whose ledger leaves out what was spent since. Start the "
                      "newest copy",
                      own.now.lineage, offset.offset, group, mark->sequence, own.now.sequence));
    if (WentAnotherWay(*mark, own))
      return Refuse(
          topic, offset.partition,
          fmt::format(
              "commit {} of lineage {} has ledger head {} in group '{}', and is another one here: "
              "this store is a copy that continued on its own, and its ledger leaves out what was "
              "spent there up to offset {}. Start the one that read last",
              mark->sequence, mark->lineage, mark->head, group, offset.offset));
  }
  return {};
}

}  // namespace tacit::stream
