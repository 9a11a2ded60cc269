// Two values of a replica's store, opaque there:
//     feed      := feed:byte*16 lineage:byte*16 models:u64 partitions:u32 whole_since:u64
//                  learners:u16 learner:string*learners     as store/rows/learner_directory.cc has
//                  them
//     position  := published:i64 partitions:u32 (partition:u32 next:u64)*partitions
// `published` is when the version was. No partitions: the version is a checkpoint's, and the topic
// has to be read from its beginning.
#include "feed/replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/files/log.h"
#include "base/text.h"
#include "store/store.h"

namespace tacit::feed {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds kBetweenAsks(1);

std::string EncodeIdentity(const FeedIdentity& identity) {
  ByteWriter writer;
  writer.PutArray(std::span<const uint8_t>(identity.feed));
  writer.PutArray(std::span<const uint8_t>(identity.lineage)).Put(identity.models);
  writer.Put(identity.partitions).Put(identity.whole_since.value);
  writer.Put(static_cast<uint16_t>(identity.learners.size()));
  for (const store::LearnerRecord& learner : identity.learners)
    writer.PutString(store::EncodeLearner(learner));
  return std::move(writer).Take();
}

Result<FeedIdentity> DecodeIdentity(std::string_view bytes) {
  ByteReader reader(bytes);
  FeedIdentity identity;
  reader.GetArray(std::span<uint8_t>(identity.feed));
  reader.GetArray(std::span<uint8_t>(identity.lineage));
  identity.models = reader.Get<uint64_t>();
  identity.partitions = reader.Get<uint32_t>();
  identity.whole_since = CommitSeq(reader.Get<uint64_t>());
  const auto learners = reader.Get<uint16_t>();
  for (uint16_t key = 0; key < learners && reader.ok(); ++key) {
    TACIT_ASSIGN(store::LearnerRecord record, store::DecodeLearner(key, reader.GetString()));
    identity.learners.push_back(std::move(record));
  }
  if (!reader.at_end())
    return Fail(ErrorCode::kCorruption, "the replica's store: its feed is damaged");
  return identity;
}

struct Position {
  int64_t published_ms = 0;
  std::map<int32_t, uint64_t> next;
};

std::string EncodePosition(const Position& position) {
  ByteWriter writer;
  writer.Put(position.published_ms).Put(static_cast<uint32_t>(position.next.size()));
  for (const auto& [partition, next] : position.next)
    writer.Put(static_cast<uint32_t>(partition)).Put(next);
  return std::move(writer).Take();
}

Result<Position> DecodePosition(std::string_view bytes) {
  ByteReader reader(bytes);
  Position position;
  position.published_ms = reader.Get<int64_t>();
  const auto partitions = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < partitions && reader.ok(); ++i) {
    const auto partition = static_cast<int32_t>(reader.Get<uint32_t>());
    position.next[partition] = reader.Get<uint64_t>();
  }
  if (!reader.at_end())
    return Fail(ErrorCode::kCorruption, "the replica's store: its position is damaged");
  return position;
}

constexpr char kBeginAnew[] =
    "If it is the right one, remove the replica's store, so that it begins anew";

tl::unexpected<Error> TopicRefused(const std::string& topic, std::string_view why) {
  return Fail(ErrorCode::kRefused, fmt::format("topic '{}': {}. {}", topic, why, kBeginAnew));
}

// The version end that was published last.
const PlacedEnd& NewestOf(const NewestEnds& ends) {
  return std::ranges::max_element(ends.by_partition, {},
                                  [](const auto& one) {
                                    return std::pair(one.second.end.time_ms,
                                                     one.second.origin.version);
                                  })
      ->second;
}

}  // namespace

Replica::Replica(store::ReplicaStore& store, std::vector<store::LearnerLayout> layouts,
                 ReplicaSource source)
    : store_(store), layouts_(std::move(layouts)), source_(std::move(source)) {
  if (const auto latest = store_.Latest()) sight_.served = sight_.newest = latest->version();
  if (const auto position = DecodePosition(store_.position()))
    sight_.served_time_ms = sight_.newest_time_ms = position->published_ms;
}

Replica::~Replica() = default;

ReplicaSight Replica::sight() const {
  ReplicaSight sight = sight_;
  if (!assembler_) return sight;
  if (assembler_->newest() > sight.newest) {
    sight.newest = assembler_->newest();
    sight.newest_time_ms = assembler_->newest_time_ms();
  }
  sight.pending_bytes = assembler_->pending_bytes();
  return sight;
}

Result<bool> Replica::Step(std::chrono::milliseconds timeout) {
  if (refused_) return Fail(*refused_);
  auto stepped = StepOnce(timeout);
  if (!stepped && stepped.error().code != ErrorCode::kUnavailable) refused_ = stepped.error();
  return stepped;
}

Result<bool> Replica::StepOnce(std::chrono::milliseconds timeout) {
  if (reader_ == nullptr) {
    TACIT_RETURN_IF_ERROR(Join());
  }
  if (assembler_->needs_ends() || Steady::now() - asked_ > kBetweenAsks) {
    TACIT_ASSIGN(const auto sights, AskEnds());
    if (assembler_->needs_ends()) assembler_->NoteEnds(sights);
  }
  const Status read = reader_->Read(
      timeout, [this](const stream::KafkaTopicRecord& record) { return assembler_->Take(record); });
  if (!read && read.error().code == ErrorCode::kNotFound)
    return Fail(ErrorCode::kRefused,
                fmt::format("{}: the topic was made anew, or records were deleted. {}",
                            read.error().message, kBeginAnew));
  if (!read && read.error().code == ErrorCode::kIo)
    return Fail(ErrorCode::kUnavailable, read.error().message);
  TACIT_RETURN_IF_ERROR(read);
  std::map<int32_t, uint64_t> position;
  for (uint32_t i = 0; i < identity_->partitions; ++i)
    position[static_cast<int32_t>(i)] = reader_->Position(static_cast<int32_t>(i));
  TACIT_ASSIGN(auto version, assembler_->TakeWhole(position));
  if (!version) {
    TACIT_RETURN_IF_ERROR(HoldNoMore());
    const std::string trouble = reader_->trouble();
    if (!trouble.empty())
      return Fail(ErrorCode::kUnavailable, fmt::format("topic '{}': {}", source_.topic, trouble));
    return false;
  }
  TACIT_RETURN_IF_ERROR(Apply(*std::move(version)));
  return true;
}

Status Replica::Join() {
  Status checked = source_.check_topic
                       ? source_.check_topic()
                       : CheckCompacted(source_.properties, source_.topic, source_.patience);
  Status joined = checked ? (store_.feed().empty() ? JoinEmpty() : JoinAgain()) : checked;
  if (joined) return joined;
  reader_.reset();
  Error error = std::move(joined.error());
  if (error.code == ErrorCode::kNotFound || error.code == ErrorCode::kIo)
    error.code = ErrorCode::kUnavailable;
  return Fail(std::move(error));
}

Status Replica::JoinEmpty() {
  TACIT_ASSIGN(const NewestEnds ends,
               source_.newest_ends
                   ? source_.newest_ends()
                   : ReadNewestEnds(source_.properties, source_.topic, source_.patience));
  if (ends.by_partition.empty() && ends.has_records)
    return TopicRefused(source_.topic, "has records of a feed and no mark");
  if (ends.by_partition.empty())
    return Fail(ErrorCode::kUnavailable,
                fmt::format("topic '{}' has no version yet: a trainer with feed.topic publishes it",
                            source_.topic));
  TACIT_ASSIGN(FeedIdentity identity, IdentityOf(NewestOf(ends)));
  if (identity.partitions != ends.partitions)
    return TopicRefused(source_.topic, fmt::format("has {} partitions, and its marks say {}",
                                                   ends.partitions, identity.partitions));
  std::optional<store::ReplicaVersion> checkpoint;
  if (!source_.checkpoint.empty()) {
    TACIT_ASSIGN(checkpoint, ReadCheckpoint(identity));
  }
  TACIT_RETURN_IF_ERROR(store_.Begin({.lineage = ToHex(identity.lineage),
                                      .feed = EncodeIdentity(identity),
                                      .learners = identity.learners}));
  if (checkpoint) {
    TACIT_RETURN_IF_ERROR(store_.Apply(*std::move(checkpoint)));
    sight_.served = sight_.newest = store_.Latest()->version();
    spdlog::info("began with checkpoint {}, commit {}", source_.checkpoint, sight_.served.value);
  }
  const auto latest = store_.Latest();
  return BeginReading(std::move(identity), latest ? std::optional(latest->version()) : std::nullopt,
                      {});
}

Status Replica::JoinAgain() {
  TACIT_ASSIGN(FeedIdentity identity, DecodeIdentity(store_.feed()));
  const auto latest = store_.Latest();
  if (latest == nullptr) return BeginReading(std::move(identity), std::nullopt, {});
  TACIT_ASSIGN(const Position position, DecodePosition(store_.position()));
  return BeginReading(std::move(identity), latest->version(), position.next);
}

Status Replica::BeginReading(FeedIdentity identity, std::optional<CommitSeq> base,
                             const std::map<int32_t, uint64_t>& next) {
  TACIT_ASSIGN(reader_, source_.open_reader
                            ? source_.open_reader()
                            : stream::KafkaTopicReader::Open(source_.properties, source_.topic));
  TACIT_ASSIGN(const auto spans, reader_->Spans(source_.patience));
  if (spans.size() != identity.partitions)
    return TopicRefused(source_.topic, fmt::format("has {} partitions, and its marks say {}",
                                                   spans.size(), identity.partitions));
  std::vector<stream::PartitionOffset> from;
  for (const auto& span : spans) {
    const auto known = next.find(span.partition);
    const uint64_t offset = known == next.end() ? 0 : known->second;
    if (offset < span.begin)
      return TopicRefused(
          source_.topic,
          fmt::format("partition {} begins at offset {}, and has to be read from {}: records were "
                      "deleted, not compacted, and rows are lost",
                      span.partition, span.begin, offset));
    if (offset > span.end)
      return TopicRefused(source_.topic,
                          fmt::format("partition {} ends at offset {}, and was read to {}: it was "
                                      "made anew, or has lost records",
                                      span.partition, span.end, offset));
    from.push_back({.partition = span.partition, .offset = offset});
  }
  const auto beginning =
      next.empty() ? Assembler::Beginning::kOfTopic : Assembler::Beginning::kBehindBase;
  assembler_.emplace(source_.topic, identity, base, beginning, source_.moves);
  identity_ = std::move(identity);
  return reader_->Seek(from);
}

Result<std::map<int32_t, PartitionSight>> Replica::AskEnds() {
  std::map<int32_t, PartitionSight> sights;
  for (uint32_t i = 0; i < identity_->partitions; ++i) {
    const auto partition = static_cast<int32_t>(i);
    sights[partition].next = reader_->Position(partition);
  }
  auto spans = reader_->Spans(source_.patience);
  if (!spans && spans.error().code != ErrorCode::kRefused)
    return Fail(ErrorCode::kUnavailable, spans.error().message);
  if (!spans) return Fail(std::move(spans.error()));
  if (spans->size() != identity_->partitions)
    return TopicRefused(source_.topic, fmt::format("has {} partitions now, and had {}",
                                                   spans->size(), identity_->partitions));
  sight_.records_behind = 0;
  for (const auto& span : *spans) {
    PartitionSight& one = sights[span.partition];
    one.end = span.end;
    if (span.end < one.next)
      return TopicRefused(source_.topic,
                          fmt::format("partition {} ends at offset {}, and was read to {}: it was "
                                      "made anew, or has lost records",
                                      span.partition, span.end, one.next));
    sight_.records_behind += span.end - one.next;
  }
  asked_ = Steady::now();
  return sights;
}

Status Replica::HoldNoMore() {
  if (assembler_->base() || assembler_->pending_bytes() <= source_.held_bytes_most) return {};
  std::vector<store::ReplicaLearner> learners;
  for (VersionLearner& from : assembler_->TakeRows())
    learners.push_back({.key = from.key, .rows = std::move(from.rows)});
  return store_.Fill(learners);
}

Status Replica::Apply(WholeVersion whole) {
  store::ReplicaVersion version{
      .tip = whole.end.tip,
      .learners = {},
      .entries = std::move(whole.entries),
      .position = EncodePosition({.published_ms = whole.end.time_ms, .next = whole.next}),
      .mark = whole.end.mark};
  for (const LearnerAtEnd& at_end : whole.end.learners) {
    store::ReplicaLearner& learner = version.learners.emplace_back();
    learner.key = at_end.key;
    learner.step = at_end.step;
    for (const VersionLearner& from : whole.learners) {
      if (from.key != at_end.key) continue;
      learner.rows = from.rows;
      learner.dense = from.dense;
      learner.released = from.released;
    }
  }
  TACIT_RETURN_IF_ERROR(store_.Apply(std::move(version)));
  sight_.served = whole.end.tip.seq;
  sight_.served_time_ms = whole.end.time_ms;
  if (sight_.served >= sight_.newest) {
    sight_.newest = sight_.served;
    sight_.newest_time_ms = sight_.served_time_ms;
  }
  sight_.versions += 1;
  sight_.records += whole.records;
  sight_.bytes += whole.bytes;
  return {};
}

// A checkpoint has rows as they are served at its commit. Rows with a moving average go on moving
// with the learner's steps, which cannot be told from that.
Result<store::ReplicaVersion> Replica::ReadCheckpoint(const FeedIdentity& identity) const {
  TACIT_ASSIGN(const store::ReadOnlyStore from,
               store::OpenReadOnly(source_.checkpoint, "", layouts_));
  const auto refused = [&](std::string_view why) {
    return Fail(ErrorCode::kRefused, fmt::format("checkpoint {}: {}", source_.checkpoint, why));
  };
  if (from.checkpoint != store::CheckpointKind::kRelease)
    return refused("is no release checkpoint");
  const store::Snapshot& snapshot = *from.snapshot;
  if (snapshot.lineage() != ToHex(identity.lineage))
    return refused(fmt::format("is of the store of lineage {}, the topic's versions are of {}",
                               snapshot.lineage(), ToHex(identity.lineage)));
  if (snapshot.version() < identity.whole_since)
    return refused(
        fmt::format("is of commit {}, before version {}, which was sent whole: begin "
                    "with the topic",
                    snapshot.version().value, identity.whole_since.value));
  if (layouts_.size() != identity.learners.size())
    return refused("the feed has learners that the configuration lacks: begin with the topic");
  store::ReplicaVersion version{.tip = {.seq = snapshot.version(),
                                        .head = snapshot.head(),
                                        .ledger_entries = snapshot.ledger_entries(),
                                        .learners = snapshot.learners(),
                                        .total = snapshot.total()},
                                .learners = {},
                                .entries = {},
                                .position = EncodePosition({})};
  const auto learners = static_cast<uint16_t>(layouts_.size());
  for (uint16_t i = 0; i < learners; ++i) {
    const auto record =
        std::ranges::find(identity.learners, layouts_[i].name, &store::LearnerRecord::name);
    if (record == identity.learners.end())
      return refused(fmt::format("the feed has no learner '{}'", layouts_[i].name));
    if (record->layout.average.on())
      return refused(
          fmt::format("learner '{}' serves a moving average (optimizer.ema), which moves "
                      "on from what a checkpoint does not hold: begin with the topic",
                      layouts_[i].name));
    store::ReplicaLearner& learner = version.learners.emplace_back();
    learner.key = record->key;
    auto rows = std::make_shared<store::RowDelta>();
    const auto tables = record->layout.space.tables();
    for (uint32_t table = 0; table < tables.size(); ++table) {
      std::vector<uint64_t> written;
      TACIT_RETURN_IF_ERROR(snapshot.ForWritten(
          LearnerIndex(i), table,
          [&](uint64_t row, std::span<const float>) { written.push_back(row); }));
      std::ranges::sort(written);
      const uint32_t dim = tables[table].dim;
      const size_t begin = rows->floats.size();
      rows->floats.resize(begin + written.size() * dim);
      TACIT_RETURN_IF_ERROR(
          snapshot.Rows(LearnerIndex(i), written, std::span(rows->floats).subspan(begin)));
      for (size_t r = 0; r < written.size(); ++r) rows->end.push_back(begin + (r + 1) * dim);
      rows->rows.insert(rows->rows.end(), written.begin(), written.end());
    }
    if (!rows->rows.empty()) learner.rows = std::move(rows);
    const std::span<const float> dense = snapshot.ServedDense(LearnerIndex(i));
    if (!dense.empty())
      learner.dense = std::make_shared<std::vector<float>>(dense.begin(), dense.end());
    learner.released = snapshot.Released(LearnerIndex(i));
  }
  TACIT_ASSIGN(const auto entries, snapshot.LedgerEntries(0, snapshot.ledger_entries()));
  for (uint64_t i = 0; i < entries.size(); ++i) version.entries[i] = entries[i];
  return version;
}

}  // namespace tacit::feed
