#include "feed/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "feed/newest_ends.h"
#include "feed/row_blocks.h"
#include "privacy/ledger.h"
#include "store/types/learner_record.h"

namespace tacit::feed {
namespace {

using Steady = std::chrono::steady_clock;

constexpr uint64_t kRecordsBetweenTells = 1 << 16;
constexpr size_t kFaultsMost = 100;
// A version end that a partition lacks for so long is not on its way.
constexpr std::chrono::milliseconds kUnevenMost(2000);

// Chunks of one kind that a learner has, by number.
struct FoundChunk {
  uint32_t of = 0;  // the number of chunks
  size_t bytes = 0;
};
using FoundChunks = std::map<uint64_t, FoundChunk>;

class Inspector {
 public:
  explicit Inspector(std::string topic) : topic_(std::move(topic)) {}

  void Take(const stream::KafkaTopicRecord& record) {
    found_.records += 1;
    found_.bytes += record.key.value_or("").size() + record.value.value_or("").size();
    auto decoded = DecodeTopicRecord(topic_, record);
    if (!decoded) return Fault(std::move(decoded.error().message));
    if (decoded->place.kind == RecordKind::kVersionEnd) return TakeEnd(record, *decoded);
    Sum& sum = sums_[{decoded->origin.lineage, decoded->origin.version}][record.partition];
    sum.records += 1;
    sum.checksum += decoded->checksum;
    switch (decoded->place.kind) {
      case RecordKind::kRow:
        found_.rows += 1;
        // The lengths of rows are compared once the newest version end says what they are.
        shapes_[{decoded->place.learner, decoded->place.table, decoded->payload.size(),
                 decoded->origin.model, false, decoded->origin.moves}] = {decoded->place.number,
                                                                          decoded->origin};
        break;
      case RecordKind::kBlock:
        TakeBlock(*decoded);
        break;
      case RecordKind::kDense:
        TakeChunk(*decoded, &dense_[decoded->place.learner]);
        break;
      case RecordKind::kReleased:
        TakeChunk(*decoded, &released_[decoded->place.learner]);
        break;
      case RecordKind::kLedger:
        entries_[decoded->place.number] = std::string(decoded->payload);
        break;
      case RecordKind::kVersionEnd:
        break;
    }
  }

  // True if the newest version ends of all partitions are of one version, or there are none.
  bool even(size_t partitions) const {
    if (newest_.empty()) return true;
    return newest_.size() == partitions && std::ranges::all_of(newest_, [this](const auto& one) {
             return one.second == newest_.begin()->second;
           });
  }

  Inspection Finish(uint32_t partitions) {
    found_.partitions = partitions;
    for (auto& [id, version] : versions_) {
      for (const auto& [partition, end] : version.second) {
        const Sum& sum = sums_[id][partition];
        version.first.records += sum.records;
        version.first.sums_fit =
            version.first.sums_fit && sum.records == end.records && sum.checksum == end.checksum;
      }
      found_.versions.push_back(std::move(version.first));
    }
    std::ranges::stable_sort(found_.versions, {},
                             [](const FoundVersion& version) { return version.end.time_ms; });
    if (found_.versions.empty()) {
      if (found_.records > 0) Fault(fmt::format("topic '{}' has no mark", topic_));
    } else {
      CheckNewest(found_.versions.back());
    }
    return std::move(found_);
  }

 private:
  struct Sum {
    uint64_t records = 0, checksum = 0;
  };
  using VersionId = std::pair<LineageId, CommitSeq>;
  struct RowShape {
    uint16_t learner = 0, table = 0;
    size_t bytes = 0;
    uint64_t model = 0;
    bool in_blocks = false, moves = false;
    friend auto operator<=>(const RowShape&, const RowShape&) = default;
  };

  void Fault(std::string what) {
    if (found_.faults.size() < kFaultsMost) found_.faults.push_back(std::move(what));
  }

  void TakeEnd(const stream::KafkaTopicRecord& record, const Record& decoded) {
    auto end = DecodeTopicEnd(topic_, record, decoded);
    if (!end) return Fault(std::move(end.error().message));
    newest_[record.partition] = {end->origin.lineage, end->origin.version};
    auto& [version, by_partition] = versions_[{end->origin.lineage, end->origin.version}];
    if (by_partition.emplace(record.partition, end->end).second) version.ends += 1;
    version.end = std::move(end->end);
    version.origin = end->origin;
  }

  void TakeBlock(const Record& record) {
    const auto block = DecodeBlock(record.payload);
    if (!block || block->rows() == 0)
      return Fault(fmt::format("topic '{}': block {} of table {} of learner {} {}", topic_,
                               record.place.number, record.place.table, record.place.learner,
                               block ? "has no row" : block.error().message));
    found_.rows += block->rows();
    shapes_[{record.place.learner, record.place.table, block->floats.size() / block->rows(),
             record.origin.model, true, record.origin.moves}] = {record.place.number * kBlockRows,
                                                                 record.origin};
  }

  void TakeChunk(const Record& record, FoundChunks* chunks) {
    uint32_t of = 0;
    if (record.payload.size() < sizeof(of))
      return Fault(fmt::format("topic '{}': a chunk of learner {} has {} bytes", topic_,
                               record.place.learner, record.payload.size()));
    std::memcpy(&of, record.payload.data(), sizeof(of));
    (*chunks)[record.place.number] = {of, record.payload.size() - sizeof(of)};
  }

  void CheckNewest(const FoundVersion& newest) {
    const auto fault = [&](std::string what) {
      Fault(fmt::format("topic '{}': version {}: {}", topic_, newest.origin.version.value, what));
    };
    if (newest.end.partitions != found_.partitions)
      fault(fmt::format("was published to {} partitions, and there are {}", newest.end.partitions,
                        found_.partitions));
    if (newest.ends != newest.end.partitions)
      fault(fmt::format("{} of {} partitions have its mark", newest.ends, newest.end.partitions));
    if (!newest.sums_fit) fault("a partition has other records of it than its mark says");
    // Versions before the last whole one are nobody's any more.
    for (const FoundVersion& version : found_.versions)
      if (version.origin.lineage == newest.origin.lineage &&
          version.origin.version >= newest.end.whole_since && version.end.feed != newest.end.feed)
        fault(fmt::format("version {} there is of another feed", version.origin.version.value));
    for (const LearnerAtEnd& learner : newest.end.learners) CheckLearner(learner, fault);
    CheckLedger(newest, fault);
  }

  template <class Tell>
  void CheckLearner(const LearnerAtEnd& at_end, const Tell& fault) {
    const auto record = store::DecodeLearner(at_end.key, at_end.record);
    if (!record) return fault(record.error().message);
    CheckChunks("dense parameters", record->name, dense_[at_end.key], at_end.dense_chunks,
                at_end.dense_floats * sizeof(float), fault);
    CheckChunks("released state", record->name, released_[at_end.key], at_end.released_chunks,
                at_end.released_bytes, fault);
    const store::RowLayout& layout = record->layout;
    const uint64_t model = ModelId(record->model_fingerprint);
    for (const auto& [shape, example] : shapes_) {
      // Rows of a model before this one are nobody's any more.
      if (shape.learner != at_end.key || shape.model != model) continue;
      const auto table = layout.TableOfNumber(shape.table);
      if (!table || shape.in_blocks != SendsBlocks(layout, shape.moves) ||
          shape.bytes != SentFloats(layout, *table, shape.moves) * sizeof(float))
        fault(
            fmt::format("row {} of table {} of learner '{}' has {} bytes, and is of no layout "
                        "that the mark has",
                        example.first, shape.table, record->name, shape.bytes));
    }
  }

  template <class Tell>
  static void CheckChunks(std::string_view what, const std::string& learner,
                          const FoundChunks& found, uint32_t chunks, uint64_t bytes,
                          const Tell& fault) {
    uint64_t there = 0, sum = 0;
    for (const auto& [number, chunk] : found) {
      if (number >= chunks || chunk.of != chunks) continue;  // of a longer one before
      there += 1;
      sum += chunk.bytes;
    }
    if (there != chunks || sum != bytes)
      fault(fmt::format("the {} of learner '{}' have {} bytes in {} chunks, the mark says {} in {}",
                        what, learner, sum, there, bytes, chunks));
  }

  template <class Tell>
  void CheckLedger(const FoundVersion& newest, const Tell& fault) {
    std::vector<privacy::LedgerEntry> entries;
    for (uint64_t i = 0; i < newest.end.tip.ledger_entries; ++i) {
      const auto found = entries_.find(i);
      if (found == entries_.end()) return fault(fmt::format("ledger entry {} is missing", i));
      auto entry = privacy::LedgerEntry::Decode(found->second);
      if (!entry) return fault(fmt::format("ledger entry {}: {}", i, entry.error().message));
      entries.push_back(*std::move(entry));
    }
    if (const Status chain = privacy::VerifyChain(entries); !chain)
      return fault("the ledger's chain is broken: " + chain.error().message);
    const Digest head = entries.empty() ? Digest{} : entries.back().head;
    if (head != newest.end.tip.head)
      fault(fmt::format("the ledger ends in head {}, the mark says {}", ToHex(head),
                        ToHex(newest.end.tip.head)));
  }

  const std::string topic_;
  Inspection found_;
  std::map<VersionId, std::map<int32_t, Sum>> sums_;
  std::map<VersionId, std::pair<FoundVersion, std::map<int32_t, VersionEnd>>> versions_;
  std::map<int32_t, VersionId> newest_;  // by partition
  std::map<RowShape, std::pair<uint64_t, RecordOrigin>> shapes_;
  std::map<uint16_t, FoundChunks> dense_, released_;
  std::map<uint64_t, std::string> entries_;
};

}  // namespace

Result<Inspection> InspectFeed(const stream::KafkaProperties& properties, const std::string& topic,
                               std::chrono::milliseconds patience,
                               const std::function<void(uint64_t)>& tell) {
  TACIT_ASSIGN(const auto reader, stream::KafkaTopicReader::Open(properties, topic));
  TACIT_ASSIGN(const auto spans, reader->Spans(patience));
  std::vector<stream::PartitionOffset> from;
  for (const auto& span : spans)
    from.push_back({.partition = span.partition, .offset = span.begin});
  TACIT_RETURN_IF_ERROR(reader->Seek(from));
  Inspector inspector(topic);
  uint64_t taken = 0;
  auto last = Steady::now();
  // Partitions show a version that was just decided one after the other.
  while (!reader->at_end() || !inspector.even(spans.size())) {
    const uint64_t before = taken;
    TACIT_RETURN_IF_ERROR(reader->Read(std::chrono::milliseconds(100),
                                       [&](const stream::KafkaTopicRecord& record) -> Status {
                                         inspector.Take(record);
                                         if (++taken % kRecordsBetweenTells == 0 && tell)
                                           tell(taken);
                                         return {};
                                       }));
    if (taken != before) last = Steady::now();
    const auto silent = Steady::now() - last;
    if (reader->at_end() && silent > kUnevenMost) break;
    if (!reader->at_end() && silent > patience)
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("topic '{}': its end was not reached: {}", topic,
                              reader->trouble().empty() ? "nothing comes" : reader->trouble()));
  }
  return inspector.Finish(static_cast<uint32_t>(spans.size()));
}

}  // namespace tacit::feed
