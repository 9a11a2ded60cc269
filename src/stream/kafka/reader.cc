#include "stream/kafka/reader.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>
#include <utility>

#include "base/check.h"

namespace tacit::stream {
namespace {

constexpr size_t kBatch = 4096;
// An answer exceeds the requested size if a single record does.
constexpr uint64_t kPartKBytesMin = 32, kAnswerKBytes = 1024;
constexpr Milliseconds kSlowQuestion(3000);   // brokers may need an election
constexpr Milliseconds kCommitTimeout(2000);  // at the end

}  // namespace

// Divides one budget of fetched bytes among the partitions, however many there are. Each part
// covers the messages in the partition's queue and the answer under way.
Status KafkaReader::SetSizes(size_t partitions, rd_kafka_conf_t* conf) const {
  uint64_t kbytes = 0;
  TACIT_CHECK(GetKafkaNumber(conf, "queued.max.messages.kbytes", &kbytes));
  const uint64_t part = std::max(kbytes / partitions, kPartKBytesMin);
  const uint64_t answer = std::min(part / 2, kAnswerKBytes);
  const auto set = [&](const char* name, uint64_t value) {
    return rd_kafka_conf_set(conf, name, std::to_string(value).c_str(), nullptr, 0) ==
           RD_KAFKA_CONF_OK;
  };
  TACIT_CHECK(set("queued.max.messages.kbytes", part - answer));
  const auto& given = options_.properties;
  if (given.Find("fetch.message.max.bytes") != nullptr ||
      given.Find("max.partition.fetch.bytes") != nullptr)
    return {};
  TACIT_CHECK(set("fetch.message.max.bytes", answer << 10));
  return {};
}

Status KafkaReader::MakeClient(size_t partitions) {
  if (client_ != nullptr && made_for_ == partitions) return {};
  Retire();
  const std::string* group = options_.properties.Find("group.id");
  if (group == nullptr || group->empty())
    return Fail(ErrorCode::kInvalidArgument,
                "kafka.group.id: required, and has no default: under it others see how far the "
                "store has read, and another store is kept from reading the same records");
  group_ = *group;
  TACIT_ASSIGN(KafkaConf conf,
               MakeKafkaConf(options_.properties, KafkaRole::kConsumer, context_.get()));
  TACIT_RETURN_IF_ERROR(SetSizes(partitions, conf.get()));
  rd_kafka_conf_set_offset_commit_cb(conf.get(), OnCommit);
  TACIT_ASSIGN(client_, MakeKafkaClient(std::move(conf), KafkaRole::kConsumer, *context_));
  rd_kafka_poll_set_consumer(client_.get());
  queue_.reset(rd_kafka_queue_get_consumer(client_.get()));
  made_for_ = partitions;
  return {};
}

Result<std::vector<int32_t>> KafkaReader::FirstRefresh() {
  const std::string& topic = options_.topic;
  if (client_ == nullptr) TACIT_RETURN_IF_ERROR(MakeClient(std::max<size_t>(made_for_, 1)));
  auto partitions = Refresh();
  if (partitions) return partitions;
  rd_kafka_queue_poll_callback(queue_.get(), 0);  // serves the errors that prevent connecting
  const KafkaContext::Events events = context_->TakeEvents();
  // An outdated certificate is no fault of this side and may be renewed: treat it like an outage.
  if (events.outdated)
    return Fail(ErrorCode::kUnavailable,
                fmt::format("topic '{}': {}", topic, events.unauthenticated));
  if (!events.unauthenticated.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("topic '{}': the brokers refuse a client with these settings: {}",
                            topic, events.unauthenticated));
  return partitions;
}

Status KafkaReader::OpenIdle() {
  TACIT_RETURN_IF_ERROR(FirstRefresh());
  open_ = true;
  return {};
}

Result<std::vector<PartitionStart>> KafkaReader::Open(const KafkaExpectation& expected) {
  const std::string& topic = options_.topic;
  TACIT_ASSIGN(const std::vector<int32_t> partitions, FirstRefresh());
  TACIT_RETURN_IF_ERROR(MakeClient(partitions.size()));
  TACIT_ASSIGN(const auto spans, ReadSpans(client_.get(), topic, partitions, kSlowQuestion));
  TACIT_RETURN_IF_ERROR(Check(expected, spans));
  TACIT_ASSIGN(auto starts, PlanStarts(topic, spans, expected.positions,
                                       options_.go_on_when_lost ? OnLost::kGoOn : OnLost::kRefuse));
  // Drops the events of attempts that failed before this success.
  rd_kafka_queue_poll_callback(queue_.get(), 0);
  context_->TakeEvents();
  std::vector<PartitionOffset> offsets;
  queues_.clear();
  for (const PartitionStart& start : starts) {
    offsets.push_back({start.partition, start.offset});
    Split(start.partition);
  }
  const KafkaPartitions list = MakePartitions(topic, offsets);
  const auto assigned = rd_kafka_assign(client_.get(), list.get());
  if (assigned != RD_KAFKA_RESP_ERR_NO_ERROR) return Unanswered("assigning", assigned);
  open_ = true;
  return starts;
}

// Checks that this is the topic that was read and that no other store reads it.
Status KafkaReader::Check(const KafkaExpectation& expected,
                          std::span<const PartitionSpan> spans) const {
  TACIT_ASSIGN(const auto to_check, LastRecordsToCheck(expected.identity, spans));
  TACIT_ASSIGN(const auto found,
               ReadRecordsAt(options_.properties, options_.topic, to_check, kSlowQuestion));
  TACIT_RETURN_IF_ERROR(CheckLastRecords(expected.identity, found));
  if (!expected.store) return {};
  std::vector<int32_t> partitions;
  for (const PartitionSpan& span : spans) partitions.push_back(span.partition);
  TACIT_ASSIGN(const auto committed,
               ReadGroup(client_.get(), options_.topic, partitions, kSlowQuestion));
  return CheckReader(options_.topic, group_, committed, *expected.store);
}

void KafkaReader::Close() {
  queues_.clear();
  queue_.reset();
  open_ = false;
  if (client_ == nullptr) return;
  const std::map<int32_t, uint64_t> committed = context_->committed;
  EndKafkaClient(std::move(client_), std::exchange(context_, std::make_shared<Context>()));
  context_->committed = committed;
}

// Ends the client in the background, since that takes a second.
void KafkaReader::Retire() {
  queue_.reset();
  if (client_ == nullptr) return;
  retired_ = std::async(std::launch::async,
                        [client = std::move(client_),
                         context = std::exchange(context_, std::make_shared<Context>())]() mutable {
                          EndKafkaClient(std::move(client), context);
                        });
}

Result<uint64_t> KafkaReader::Add(int32_t partition) {
  TACIT_ASSIGN(const auto spans,
               ReadSpans(client_.get(), options_.topic, {&partition, 1}, kQuestion));
  const PartitionOffset offset{partition, spans[0].begin};
  Split(partition);
  const KafkaPartitions list = MakePartitions(options_.topic, {&offset, 1});
  const KafkaError error(rd_kafka_incremental_assign(client_.get(), list.get()));
  if (error != nullptr) return Unanswered("assigning", rd_kafka_error_code(error.get()));
  return spans[0].begin;
}

// Assigns the partition anew: librdkafka 2.0 was seen to leave a request to seek unanswered that
// came while the partition's fetcher was starting.
Status KafkaReader::Seek(int32_t partition, uint64_t offset) {
  const bool reads = queues_.contains(partition);
  if (!reads) Split(partition);
  const PartitionOffset to{.partition = partition, .offset = offset};
  const KafkaPartitions list = MakePartitions(options_.topic, {&to, 1});
  for (const auto request : {rd_kafka_incremental_unassign, rd_kafka_incremental_assign}) {
    if (request == rd_kafka_incremental_unassign && !reads) continue;
    const KafkaError error(request(client_.get(), list.get()));
    if (error != nullptr) return Unanswered("assigning", rd_kafka_error_code(error.get()));
  }
  return {};
}

Status KafkaReader::Leave(int32_t partition) {
  const PartitionOffset from{.partition = partition, .offset = 0};
  const KafkaPartitions list = MakePartitions(options_.topic, {&from, 1});
  const KafkaError error(rd_kafka_incremental_unassign(client_.get(), list.get()));
  if (error != nullptr) return Unanswered("assigning", rd_kafka_error_code(error.get()));
  queues_.erase(partition);
  return {};
}

Result<std::vector<uint64_t>> KafkaReader::FirstFrom(int64_t time_ms,
                                                     std::span<const OffsetRange> ranges) {
  if (asker_ == nullptr) {
    TACIT_ASSIGN(asker_, MakeAsker(options_.properties, asker_context_.get()));
  }
  std::vector<int32_t> partitions;
  for (const OffsetRange& range : ranges) partitions.push_back(range.partition);
  TACIT_ASSIGN(const auto found,
               ReadOffsetsAt(asker_.get(), options_.topic, partitions, time_ms, kQuestion));
  rd_kafka_poll(asker_.get(), 0);  // no other code serves its callbacks
  std::vector<uint64_t> offsets;
  for (const OffsetRange& range : ranges) {
    const auto one = found.find(range.partition);
    if (one == found.end())
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("topic '{}' partition {}: its leader does not tell where the records "
                              "of a time begin",
                              options_.topic, range.partition));
    offsets.push_back(one->second.value_or(range.end));
  }
  return offsets;
}

// Gives a partition its own queue. This must precede the assignment: otherwise librdkafka puts the
// messages of all partitions into one queue.
void KafkaReader::Split(int32_t partition) {
  KafkaQueue queue(rd_kafka_queue_get_partition(client_.get(), options_.topic.c_str(), partition));
  TACIT_CHECK(queue != nullptr, "a partition without a queue");
  rd_kafka_queue_forward(queue.get(), nullptr);
  queues_.insert_or_assign(partition, PartitionQueue{std::move(queue), FetchWaker(client_.get())});
}

// librdkafka returns a batch when it is full or its time is up. So this waits for one message only,
// and then takes the others that are there without waiting.
Status KafkaReader::Fetch(int32_t partition, size_t max, Milliseconds timeout,
                          std::vector<FetchedMessage>* messages) {
  const auto found = queues_.find(partition);
  TACIT_CHECK(found != queues_.end(), "a partition that is not read");
  PartitionQueue& from = found->second;
  rd_kafka_queue_t* queue = from.queue.get();
  max = std::min(max, kBatch);
  batch_.resize(max);
  ssize_t got = rd_kafka_consume_batch_queue(queue, 0, batch_.data(), max);
  if (got == 0 && timeout.count() > 0) {
    if (from.waker.asleep())
      timeout = std::min(timeout, std::chrono::ceil<Milliseconds>(FetchWaker::kPause));
    batch_[0] = rd_kafka_consume_queue(queue, static_cast<int>(timeout.count()));
    if (batch_[0] != nullptr) {
      got = rd_kafka_consume_batch_queue(queue, 0, batch_.data() + 1, max - 1);
      got = std::max<ssize_t>(got, 0) + 1;
    }
  }
  const auto count = static_cast<size_t>(std::max<ssize_t>(got, 0));
  size_t bytes = 0;
  Status status;
  for (size_t i = 0; i < count; ++i) {
    const rd_kafka_resp_err_t error = batch_[i]->err;
    bytes += batch_[i]->len;
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      messages->push_back(TakeOver(batch_[i]));
      continue;
    }
    const KafkaMessage message(batch_[i]);
    if (status) status = OnError(*message);
  }
  if (from.waker.IsDue(count, bytes, rd_kafka_queue_length(queue),
                       std::chrono::steady_clock::now()))
    FetchWaker::Wake(client_.get(), options_.topic, {&partition, 1});
  return status;
}

Status KafkaReader::Serve() {
  while (const KafkaMessage message{rd_kafka_consume_queue(queue_.get(), 0)}) {
    TACIT_CHECK(message->err != RD_KAFKA_RESP_ERR_NO_ERROR, "a message outside its queue");
    TACIT_RETURN_IF_ERROR(OnError(*message));
  }
  return {};
}

// Ignores errors that librdkafka recovers from by itself. For any other (the offset is out of
// range, a batch is damaged, the topic is gone) the source opens anew, which either names the fault
// or reads the same records again: no record is skipped.
Status KafkaReader::OnError(const rd_kafka_message_t& message) const {
  if (IsTransient(message.err)) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("topic '{}' partition {}: {}", options_.topic, message.partition,
                          rd_kafka_message_errstr(&message)));
}

void KafkaReader::Commit(std::span<const PartitionOffset> offsets, const StoreMark& store,
                         bool wait) {
  const std::string metadata = Text(store);
  const KafkaPartitions list = MakePartitions(options_.topic, offsets);
  for (int i = 0; i < list->cnt; ++i) {
    list->elems[i].metadata = strdup(metadata.c_str());  // owned by the list
    list->elems[i].metadata_size = metadata.size();
  }
  if (!wait) {
    rd_kafka_commit(client_.get(), list.get(), 1);
    return;
  }
  const KafkaQueue answers(rd_kafka_queue_new(client_.get()));
  rd_kafka_commit_queue(client_.get(), list.get(), answers.get(), OnCommit,
                        static_cast<KafkaContext*>(context_.get()));
  rd_kafka_queue_poll_callback(answers.get(), static_cast<int>(kCommitTimeout.count()));
}

void KafkaReader::OnCommit(rd_kafka_t*, rd_kafka_resp_err_t error,
                           rd_kafka_topic_partition_list_t* offsets, void* opaque) {
  auto* context = static_cast<Context*>(static_cast<KafkaContext*>(opaque));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR && error != RD_KAFKA_RESP_ERR__NO_OFFSET)
    context->commit_failure = rd_kafka_err2str(error);
  for (int i = 0; offsets != nullptr && i < offsets->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = offsets->elems[i];
    if (one.err == RD_KAFKA_RESP_ERR_NO_ERROR && one.offset >= 0 && error == one.err)
      context->committed[one.partition] = static_cast<uint64_t>(one.offset);
  }
}

std::optional<uint64_t> KafkaReader::CommittedOffset(int32_t partition) const {
  const auto found = context_->committed.find(partition);
  if (found == context_->committed.end()) return std::nullopt;
  return found->second;
}

std::optional<uint64_t> KafkaReader::End(int32_t partition) const {
  int64_t low = 0, high = 0;
  const auto known =
      rd_kafka_get_watermark_offsets(client_.get(), options_.topic.c_str(), partition, &low, &high);
  if (known != RD_KAFKA_RESP_ERR_NO_ERROR || high < 0) return std::nullopt;
  return static_cast<uint64_t>(high);
}

}  // namespace tacit::stream
