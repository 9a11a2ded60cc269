#include "feed/publisher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/crash_point.h"
#include "base/files/log.h"
#include "base/text.h"
#include "feed/record.h"
#include "feed/version_end.h"
#include "store/types/learner_record.h"

namespace tacit::feed {
namespace {

constexpr uint64_t kEntriesAtOnce = 1000;
constexpr uint64_t kBetweenSigns = 256;  // records, between two calls of on_progress
constexpr size_t kChunkBytes =
    (kPayloadBytesMost - sizeof(uint32_t)) / sizeof(float) * sizeof(float);

// Asks again while brokers are away, as PublisherOptions::keep_going says.
Status Persist(const PublisherOptions& options, const std::function<Status()>& request) {
  constexpr std::chrono::minutes kLongest(1);
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  for (;;) {
    Status done = request();
    if (options.on_progress) options.on_progress();
    if (done || done.error().code != ErrorCode::kUnavailable) return done;
    if (options.keep_going && !options.keep_going()) return done;
    if (std::chrono::steady_clock::now() >= deadline) return done;
  }
}

// Two who publish into one topic have one name, and so the later ends the earlier.
std::string TransactionsOf(const std::string& topic) { return "tacit-feed-" + topic; }

// A feed is named after the store, the start and the time that began it: no two are alike, since a
// term is drawn at random.
FeedId NewFeed(const store::Release& release, const std::string& topic, int64_t now_ms) {
  Sha256 sha;
  sha.Update(topic).Update(release.snapshot->lineage()).Update(release.term);
  sha.Update(ByteWriter().Put(now_ms).bytes());
  const Digest digest = sha.Finish();
  FeedId feed{};
  std::copy_n(digest.begin(), feed.size(), feed.begin());
  return feed;
}

tl::unexpected<Error> EndsRefused(const std::string& topic, std::string why) {
  return Fail(ErrorCode::kRefused, fmt::format("topic '{}': {}", topic, why));
}

constexpr char kTakeOver[] =
    "If nothing else publishes there any more and this store is to go on, start tacitd once with "
    "--take-over-feed";

Status CheckLineage(const std::string& topic, const PlacedEnd& newest, const FeedClaim& claim) {
  const VersionEnd& end = newest.end;
  const std::string lineage = ToHex(newest.origin.lineage);
  const uint64_t version = end.tip.seq.value;
  if (lineage != claim.lineage) {
    const bool ours = AccountsFor(claim.ancestors, lineage,
                                  {.seq = end.tip.seq, .term = end.term, .head = end.tip.head});
    return EndsRefused(
        topic,
        fmt::format("version {} there is of the store of lineage {}, this one is of {}{}. {}",
                    version, lineage, claim.lineage, ours ? ", which was restored from it" : "",
                    kTakeOver));
  }
  if (end.tip.seq > claim.version)
    return EndsRefused(topic,
                       fmt::format("version {} is published already and this store ends at commit "
                                   "{}: it is an older copy. {}",
                                   version, claim.version.value, kTakeOver));
  const bool other_head = end.tip.seq == claim.version && end.tip.head != claim.head;
  if (other_head || !claim.terms.Has({.seq = end.tip.seq, .term = end.term, .head = end.tip.head}))
    return EndsRefused(topic, fmt::format("version {} there is no commit of this store, though it "
                                          "has the same lineage: two copies of it have gone on. {}",
                                          version, kTakeOver));
  return {};
}

}  // namespace

uint64_t ModelsId(const std::vector<store::ReleasedLearner>& learners) {
  Sha256 sha;
  for (const store::ReleasedLearner& learner : learners)
    sha.Update(ByteWriter().Put(learner.key).bytes())
        .Update(learner.fingerprint)
        .Update(ByteWriter().PutString(learner.record).bytes());
  return ModelId(sha.Finish());
}

uint64_t PublisherBytes(std::span<const store::RowLayout> layouts, bool moves) {
  // librdkafka holds a record twice while it makes a request of it. One delta is read again.
  constexpr uint64_t kRead = 32 << 20;
  uint64_t bytes = uint64_t{2} * stream::KafkaProducerOptions().queued_bytes_max + kRead;
  for (const store::RowLayout& layout : layouts)
    bytes += (SendsBlocks(layout, moves) ? RowBlocks::BytesOf(layout, moves) : 0) +
             (moves ? layout.space.rows() * sizeof(uint64_t) : 0);
  return bytes;
}

Status CheckClaim(const std::string& topic, const NewestEnds& ends, const FeedClaim& claim,
                  bool takes_over) {
  if (ends.by_partition.empty()) {
    if (!ends.has_records) return {};
    return EndsRefused(topic, "has records of a feed and no mark: it was not written by tacitd");
  }
  const PlacedEnd& newest = std::ranges::max_element(ends.by_partition, {}, [](const auto& one) {
                              return one.second.origin.version;
                            })->second;
  if (newest.end.partitions != ends.partitions)
    return EndsRefused(topic, fmt::format("has {} partitions, and its marks say {}: rows would be "
                                          "looked for in others. Make a new topic for the feed",
                                          ends.partitions, newest.end.partitions));
  for (const auto& [partition, one] : ends.by_partition)
    if (one.end.feed != newest.end.feed)
      return EndsRefused(topic, fmt::format("partition {} has marks of another feed: it was "
                                            "written to by hand. Make a new topic for the feed",
                                            partition));
  return takes_over ? Status() : CheckLineage(topic, newest, claim);
}

// A version that is being sent: its counts by partition.
class Publisher::Version {
 public:
  Version(stream::KafkaProducer& producer, const PublisherOptions& options, uint32_t partitions,
          CommitSeq version, LineageId lineage)
      : producer_(producer), options_(options), parts_(partitions) {
    origin_.version = version;
    origin_.lineage = lineage;
    origin_.moves = options.moves.has_value();
  }

  Status Send(const RecordPlace& place, uint64_t model, std::string_view payload) {
    const std::string key = EncodeKey(place);
    const auto partition =
        stream::KafkaProducer::PartitionOfKey(key, static_cast<int32_t>(parts_.size()));
    TACIT_ASSIGN(const uint32_t checksum, SendTo(partition, key, place, model, payload));
    Part& part = parts_[static_cast<size_t>(partition)];
    part.records += 1;
    part.checksum += checksum;
    records_ += 1;
    return {};
  }

  // Cuts bytes into chunks, and returns their number.
  Result<uint32_t> SendChunks(RecordPlace place, uint64_t model, std::string_view bytes) {
    const size_t chunks = ChunksOf(bytes.size());
    if (chunks > kChunksMost)
      return Fail(ErrorCode::kRefused,
                  fmt::format("learner {} has {} bytes of one kind, more than a feed carries",
                              place.learner, bytes.size()));
    for (size_t chunk = 0; chunk < chunks; ++chunk) {
      place.number = chunk;
      ByteWriter payload;
      const std::string_view part = bytes.substr(chunk * kChunkBytes, kChunkBytes);
      payload.Put(static_cast<uint32_t>(chunks)).PutArray(std::span<const char>(part));
      TACIT_RETURN_IF_ERROR(Send(place, model, payload.bytes()));
    }
    return static_cast<uint32_t>(chunks);
  }

  static size_t ChunksOf(size_t bytes) { return (bytes + kChunkBytes - 1) / kChunkBytes; }

  // Sends the version end of every partition, whose counts it fills in.
  Status SendEnds(VersionEnd end, uint64_t model) {
    const RecordPlace place{.kind = RecordKind::kVersionEnd};
    end.partitions = static_cast<uint32_t>(parts_.size());
    end.all_records = records_;
    end.all_bytes = bytes_;
    for (uint32_t partition = 0; partition < end.partitions; ++partition) {
      end.partition = partition;
      end.records = parts_[partition].records;
      end.checksum = parts_[partition].checksum;
      TACIT_ASSIGN([[maybe_unused]] const uint32_t checksum,
                   SendTo(static_cast<int32_t>(partition), EncodeKey(place), place, model,
                          EncodeVersionEnd(end)));
    }
    return {};
  }

  uint64_t records() const { return records_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t records_in(size_t partition) const { return parts_[partition].records; }

 private:
  struct Part {
    uint64_t records = 0, checksum = 0;
  };

  Result<uint32_t> SendTo(int32_t partition, std::string_view key, const RecordPlace& place,
                          uint64_t model, std::string_view payload) {
    if (payload.size() > kPayloadBytesMost)
      return Fail(ErrorCode::kRefused,
                  fmt::format("a record of learner {} has {} bytes, more than the {} that a feed "
                              "carries",
                              place.learner, payload.size(), kPayloadBytesMost));
    value_.clear();
    origin_.model = model;
    const uint32_t checksum = AppendValue(key, origin_, payload, &value_);
    bytes_ += key.size() + value_.size();
    if (++sent_ % kBetweenSigns == 0 && options_.on_progress) options_.on_progress();
    const stream::KafkaRecord record{.partition = partition, .key = key, .value = value_};
    Status sent = producer_.Send(record, options_.patience);
    if (!sent && sent.error().code == ErrorCode::kUnavailable)
      sent = Persist(options_, [&] { return producer_.Send(record, options_.patience); });
    TACIT_RETURN_IF_ERROR(std::move(sent));
    return checksum;
  }

  stream::KafkaProducer& producer_;
  const PublisherOptions& options_;
  std::vector<Part> parts_;
  RecordOrigin origin_;
  std::string value_;
  uint64_t records_ = 0, bytes_ = 0;
  uint64_t sent_ = 0;  // version ends among them
};

Publisher::Publisher(store::Releaser& store, const Clock& clock, PublisherOptions options)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      takes_over_(options_.takes_over) {}

Publisher::~Publisher() = default;

std::optional<CommitSeq> Publisher::published() const {
  return base_ ? std::optional(base_->version) : std::nullopt;
}

FeedClaim Publisher::Claim() const {
  const auto snapshot = store_.Latest();
  const auto ancestors = snapshot->ancestors();
  return {.lineage = snapshot->lineage(),
          .ancestors = {ancestors.begin(), ancestors.end()},
          .terms = store_.terms(),
          .version = snapshot->version(),
          .head = snapshot->head()};
}

// Reads until all partitions have the version ends of one version: in a transaction that
// was just decided they appear one after the other. Then checks that this store may go on from
// there.
Result<NewestEnds> Publisher::ReadEnds() const {
  const auto deadline = std::chrono::steady_clock::now() + options_.patience;
  for (;;) {
    TACIT_ASSIGN(NewestEnds ends,
                 ReadNewestEnds(options_.properties, options_.topic, options_.patience));
    const bool even = ends.by_partition.empty() ||
                      (ends.by_partition.size() == ends.partitions &&
                       std::ranges::all_of(ends.by_partition, [&](const auto& one) {
                         return one.second.origin == ends.by_partition.begin()->second.origin;
                       }));
    if (!even && std::chrono::steady_clock::now() < deadline) continue;
    TACIT_RETURN_IF_ERROR(CheckClaim(options_.topic, ends, Claim(), takes_over_));
    return ends;
  }
}

// A topic's version is built upon where it is whole, of this store and of these models; else the
// next version is sent whole.
void Publisher::TakeBase(const NewestEnds& ends, const store::Release& release) {
  base_.reset();
  partitions_ = ends.partitions;
  if (ends.by_partition.empty()) {
    feed_ = NewFeed(release, options_.topic, clock_.UnixMillis());
    previous_ = {};
    return;
  }
  const PlacedEnd& any = ends.by_partition.begin()->second;
  feed_ = any.end.feed;
  // A replica that follows a branch that this store was never on may have rows that no version of
  // ours has: the feed's id tells it.
  if (takes_over_ && !CheckLineage(options_.topic, any, Claim()))
    feed_ = NewFeed(release, options_.topic, clock_.UnixMillis());
  previous_ = any.origin.version;
  const uint64_t models = ModelsId(release.learners);
  const std::string lineage = release.snapshot->lineage();
  const bool whole = ends.by_partition.size() == ends.partitions &&
                     std::ranges::all_of(ends.by_partition, [&](const auto& one) {
                       const RecordOrigin& origin = one.second.origin;
                       return origin == any.origin && origin.model == models &&
                              origin.moves == options_.moves.has_value() &&
                              ToHex(origin.lineage) == lineage && origin.version <= release.tip.seq;
                     });
  // A store that takes over may have gone on from before what was published, and builds upon none.
  if (!whole || takes_over_) return;
  base_ = Base{.version = any.origin.version,
               .whole_since = any.end.whole_since,
               .ledger_entries = any.end.tip.ledger_entries};
}

Status Publisher::Join() {
  TACIT_RETURN_IF_ERROR(options_.check_topic ? options_.check_topic()
                                             : CheckCompacted(options_.properties, options_.topic,
                                                              options_.patience));
  // Before anything is taken over: who may not publish here does not end who may.
  TACIT_RETURN_IF_ERROR(ReadEnds());
  TACIT_ASSIGN(auto producer,
               stream::KafkaProducer::Open({.properties = options_.properties,
                                            .topic = options_.topic,
                                            .transactional_id = TransactionsOf(options_.topic)}));
  TACIT_RETURN_IF_ERROR(producer->InitTransactions(options_.patience));
  // Again, because the one before may have published meanwhile; from now on it cannot.
  TACIT_ASSIGN(const NewestEnds ends, ReadEnds());
  TACIT_ASSIGN(const store::Release release, store_.LatestRelease());
  TakeBase(ends, release);
  TACIT_ASSIGN(looker_, stream::KafkaTopicReader::Open(options_.properties, options_.topic));
  ends_.assign(partitions_, 0);
  producer_ = std::move(producer);
  if (base_) store_.TakenFromOutbox(base_->version);
  return {};
}

Result<std::optional<PublishedVersion>> Publisher::Publish() {
  if (refused_) return Fail(*refused_);
  const auto failed = [&](Error error) {
    producer_.reset();  // what is open is aborted by the next one's start, if not before
    const bool may_pass = error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kIo ||
                          error.code == ErrorCode::kNotFound;
    if (!may_pass) refused_ = error;
    if (may_pass) error.code = ErrorCode::kUnavailable;
    return Fail(std::move(error));
  };
  if (store_.Latest()->version().value == 0) return std::optional<PublishedVersion>();
  if (producer_ == nullptr)
    if (Status joined = Join(); !joined) return failed(std::move(joined.error()));
  auto release = store_.LatestRelease();
  if (!release) return failed(std::move(release.error()));
  if (base_ && release->tip.seq <= base_->version) return std::optional<PublishedVersion>();
  auto sent = Send(*release);
  if (!sent) return failed(std::move(sent.error()));
  return std::optional(*sent);
}

// A topic that was deleted and made anew takes our records as the old one did, and would have no
// rows but the changed ones. Its ends tell: they are before what we have written.
Status Publisher::CheckEnds() {
  const auto deadline = std::chrono::steady_clock::now() + options_.patience;
  for (;;) {
    TACIT_ASSIGN(const auto spans, looker_->Spans(options_.patience));
    const bool same = spans.size() == partitions_;
    // The ends of a transaction that was just decided are seen a moment later.
    const auto before = std::ranges::find_if(spans, [&](const stream::PartitionSpan& span) {
      return same && span.end < ends_[static_cast<size_t>(span.partition)];
    });
    if (same && before == spans.end()) {
      for (const stream::PartitionSpan& span : spans)
        ends_[static_cast<size_t>(span.partition)] = span.end;
      return {};
    }
    if (std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    const std::string what =
        same ? fmt::format("partition {} ends at offset {}, and was written to {}",
                           before->partition, before->end,
                           ends_[static_cast<size_t>(before->partition)])
             : fmt::format("has {} partitions now, and had {}", spans.size(), partitions_);
    return Fail(ErrorCode::kUnavailable,
                fmt::format("topic '{}': {}: it was made anew, or has lost records. It is joined "
                            "again",
                            options_.topic, what));
  }
}

std::span<const float> Publisher::FloatsOf(const store::ReleasedRow& row) {
  if (!options_.moves) return row.floats;
  floats_.assign(row.floats.begin(), row.floats.end());
  for (const size_t place : *options_.moves)
    floats_.push_back(place < row.state.size() ? row.state[place] : 0);
  return floats_;
}

Status Publisher::LoadRows(const store::Release& release) {
  if (!blocks_.empty()) return {};
  std::vector<std::unique_ptr<RowBlocks>> loaded;  // all of them, or none after a failure
  if (options_.mark) mark_.emplace(options_.mark->key);
  marked_.assign(release.learners.size(), MarkedRows());
  for (const store::ReleasedLearner& learner : release.learners) {
    TACIT_ASSIGN(const store::LearnerRecord record,
                 store::DecodeLearner(learner.key, learner.record));
    std::unique_ptr<RowBlocks> blocks;
    const bool moves = options_.moves.has_value();
    if (SendsBlocks(record.layout, moves))
      blocks = std::make_unique<RowBlocks>(record.layout, moves);
    const bool marked = mark_ && std::ranges::find(options_.mark->learners, record.name) !=
                                     options_.mark->learners.end();
    if (marked)
      marked_[learner.key] = {record.layout, std::vector<uint64_t>(record.layout.space.rows())};
    const auto put = [&](const store::ReleasedRow& row) -> Status {
      const std::span<const float> floats = FloatsOf(row);
      MarkRow(row, floats);
      if (blocks) blocks->Put(row.table, row.bucket, floats, false);
      return {};
    };
    if (blocks || marked)
      TACIT_RETURN_IF_ERROR(store_.ForReleasedRowsOf(release, learner.key, put));
    loaded.push_back(std::move(blocks));
  }
  blocks_ = std::move(loaded);
  return {};
}

void Publisher::MarkRow(const store::ReleasedRow& row, std::span<const float> floats) {
  MarkedRows& rows = marked_[row.learner];
  if (rows.numbers.empty()) return;
  const auto table = rows.layout.TableOfNumber(row.table);
  TACIT_CHECK(table, "a row is none of the layout's");
  const uint64_t place = rows.layout.space.tables()[*table].first + row.bucket;
  const uint64_t now = mark_->OfRow(row.learner, place, floats);
  mark_->Replace(std::exchange(rows.numbers[place], now), now);
}

Result<bool> Publisher::SendRows(const store::Release& release, std::optional<CommitSeq> since,
                                 Version& version) {
  TACIT_RETURN_IF_ERROR(LoadRows(release));
  for (const auto& blocks : blocks_)
    if (blocks) blocks->ForgetChanges();
  const auto model_of = [&](uint16_t learner) {
    return ModelId(release.learners[learner].fingerprint);
  };
  const auto take = [&](const store::ReleasedRow& row) -> Status {
    const std::span<const float> floats = FloatsOf(row);
    MarkRow(row, floats);
    if (const auto& blocks = blocks_[row.learner]) {
      blocks->Put(row.table, row.bucket, floats, true);
      return {};
    }
    return version.Send({.kind = RecordKind::kRow,
                         .learner = row.learner,
                         .table = row.table,
                         .number = row.bucket},
                        model_of(row.learner),
                        {reinterpret_cast<const char*>(floats.data()), floats.size_bytes()});
  };
  TACIT_ASSIGN(const bool shown, store_.ForReleasedRows(release, since, take));
  if (!shown) return false;
  const auto learners = static_cast<uint16_t>(blocks_.size());
  for (uint16_t learner = 0; learner < learners; ++learner) {
    if (!blocks_[learner]) continue;
    const auto send = [&](uint16_t table, uint64_t block, std::string_view payload) {
      return version.Send(
          {.kind = RecordKind::kBlock, .learner = learner, .table = table, .number = block},
          model_of(learner), payload);
    };
    TACIT_RETURN_IF_ERROR(blocks_[learner]->ForChanged(send));
  }
  return true;
}

Result<PublishedVersion> Publisher::Send(const store::Release& release) {
  TACIT_RETURN_IF_ERROR(CheckEnds());
  TACIT_ASSIGN(const LineageId lineage, LineageIdOf(release.snapshot->lineage()));
  TACIT_RETURN_IF_ERROR(producer_->BeginTransaction());
  Version version(*producer_, options_, partitions_, release.tip.seq, lineage);
  std::optional<CommitSeq> since = base_ ? std::optional(base_->version) : std::nullopt;
  TACIT_ASSIGN(const bool shown, SendRows(release, since, version));
  if (!shown) {
    since.reset();
    spdlog::warn(
        "version {} is sent whole: the store has no deltas of all commits since version {} "
        "any more (feed.backlog_bytes)",
        release.tip.seq.value, base_->version.value);
    TACIT_RETURN_IF_ERROR(SendRows(release, since, version));
  }
  CrashPoint("feed.rows_sent");
  VersionEnd end{.feed = feed_,
                 .previous = previous_ < release.tip.seq ? previous_ : CommitSeq(),
                 .whole_since = since ? base_->whole_since : release.tip.seq,
                 .term = release.term,
                 .time_ms = clock_.UnixMillis(),
                 .tip = release.tip,
                 .learners = {}};
  std::vector<std::shared_ptr<const std::string>> states;
  for (const store::ReleasedLearner& learner : release.learners) {
    const uint64_t model = ModelId(learner.fingerprint);
    states.push_back(marked_[learner.key].numbers.empty() ? nullptr : learner.released);
    const std::string_view dense(reinterpret_cast<const char*>(learner.dense.data()),
                                 learner.dense.size_bytes());
    const std::string_view released =
        learner.released ? std::string_view(*learner.released) : std::string_view();
    if (!since || learner.dense_seq > *since)
      TACIT_RETURN_IF_ERROR(
          version.SendChunks({.kind = RecordKind::kDense, .learner = learner.key}, model, dense));
    if (!since || learner.released_seq > *since)
      TACIT_RETURN_IF_ERROR(version.SendChunks(
          {.kind = RecordKind::kReleased, .learner = learner.key}, model, released));
    end.learners.push_back(
        {.key = learner.key,
         .record = learner.record,
         .step = learner.step,
         .dense_floats = learner.dense.size(),
         .dense_chunks = static_cast<uint32_t>(Version::ChunksOf(dense.size())),
         .released_bytes = released.size(),
         .released_chunks = static_cast<uint32_t>(Version::ChunksOf(released.size()))});
  }
  if (mark_) end.mark = mark_->Of(release.tip.head, states);
  // A commit may extend the last run of each learner, of the entries that were there, and those
  // runs come last.
  const uint64_t models = ModelsId(release.learners);
  const uint64_t known = since ? base_->ledger_entries : 0;
  for (uint64_t at = known - std::min<uint64_t>(known, release.learners.size());
       at < release.tip.ledger_entries;) {
    TACIT_ASSIGN(const auto entries, release.snapshot->LedgerEntries(at, kEntriesAtOnce));
    for (const std::string& entry : entries)
      TACIT_RETURN_IF_ERROR(
          version.Send({.kind = RecordKind::kLedger, .number = at++}, models, entry));
  }
  const PublishedVersion published{.version = release.tip.seq,
                                   .whole = !since,
                                   .records = version.records(),
                                   .bytes = version.bytes()};
  TACIT_RETURN_IF_ERROR(version.SendEnds(std::move(end), models));
  CrashPoint("feed.marked");
  TACIT_RETURN_IF_ERROR(
      Persist(options_, [this] { return producer_->CommitTransaction(options_.patience); }));
  CrashPoint("feed.committed");
  for (size_t partition = 0; partition < ends_.size(); ++partition)
    ends_[partition] += version.records_in(partition) + 1;  // and its version end
  base_ = Base{.version = release.tip.seq,
               .whole_since = since ? base_->whole_since : release.tip.seq,
               .ledger_entries = release.tip.ledger_entries};
  previous_ = release.tip.seq;
  takes_over_ = false;
  store_.TakenFromOutbox(release.tip.seq);
  return published;
}

}  // namespace tacit::feed
