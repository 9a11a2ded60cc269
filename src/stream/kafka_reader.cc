#include "stream/kafka_reader.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace tacit::stream {
namespace {

constexpr size_t kBatch = 4096;
constexpr Milliseconds kSlowQuestion(3000);   // it may take the brokers an election
constexpr Milliseconds kCommitTimeout(2000);  // at the end

}  // namespace

Status KafkaReader::MakeClient() {
  if (client_ != nullptr) return {};
  const std::string* group = options_.properties.Find("group.id");
  if (group == nullptr || group->empty())
    return Fail(ErrorCode::kInvalidArgument,
                "kafka.group.id: required, and has no default: under it others see how far the "
                "store has read, and another store is kept from reading the same records");
  group_ = *group;
  TACIT_ASSIGN(KafkaConf conf,
               MakeKafkaConf(options_.properties, KafkaRole::kConsumer, context_.get()));
  rd_kafka_conf_set_offset_commit_cb(conf.get(), OnCommit);
  TACIT_ASSIGN(client_, MakeKafkaClient(std::move(conf), KafkaRole::kConsumer, *context_));
  rd_kafka_poll_set_consumer(client_.get());
  queue_.reset(rd_kafka_queue_get_consumer(client_.get()));
  waker_.emplace(client_.get());
  return {};
}

Result<std::vector<PartitionStart>> KafkaReader::Open(const KafkaExpectation& expected) {
  const std::string& topic = options_.topic;
  TACIT_RETURN_IF_ERROR(MakeClient());
  auto partitions = Refresh();
  if (!partitions) {
    rd_kafka_queue_poll_callback(queue_.get(), 0);  // which says why it cannot connect
    const std::string why = context_->TakeEvents().unauthenticated;
    if (!why.empty())
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("topic '{}': the brokers let nobody in with these settings: {}", topic, why));
    return Fail(std::move(partitions.error()));
  }
  TACIT_ASSIGN(const auto spans, ReadSpans(client_.get(), topic, *partitions, kSlowQuestion));
  TACIT_RETURN_IF_ERROR(Check(expected, spans));
  TACIT_ASSIGN(auto starts, PlanStarts(topic, spans, expected.positions,
                                       options_.go_on_when_lost ? OnLost::kGoOn : OnLost::kRefuse));
  // Attempts that failed on the way here are over.
  rd_kafka_queue_poll_callback(queue_.get(), 0);
  context_->TakeEvents();
  std::vector<PartitionOffset> offsets;
  assigned_.clear();
  for (const PartitionStart& start : starts) {
    offsets.push_back({start.partition, start.offset});
    assigned_.push_back(start.partition);
  }
  const KafkaPartitions list = MakePartitions(topic, offsets);
  const auto assigned = rd_kafka_assign(client_.get(), list.get());
  if (assigned != RD_KAFKA_RESP_ERR_NO_ERROR) return Unanswered("assigning", assigned);
  open_ = true;
  return starts;
}

// Whether it is the topic that was read, and nobody else reads it.
Status KafkaReader::Check(const KafkaExpectation& expected,
                          std::span<const PartitionSpan> spans) const {
  TACIT_ASSIGN(const auto to_check, MarksToCheck(expected.identity, spans));
  TACIT_ASSIGN(const auto found,
               ReadMarks(options_.properties, options_.topic, to_check, kSlowQuestion));
  TACIT_RETURN_IF_ERROR(CheckMarks(expected.identity, found));
  if (!expected.store) return {};
  std::vector<int32_t> partitions;
  for (const PartitionSpan& span : spans) partitions.push_back(span.partition);
  TACIT_ASSIGN(const auto committed,
               ReadGroup(client_.get(), options_.topic, partitions, kSlowQuestion));
  return CheckReader(options_.topic, group_, committed, *expected.store);
}

void KafkaReader::Close() {
  queue_.reset();
  open_ = false;
  if (client_ == nullptr) return;
  const std::map<int32_t, uint64_t> committed = context_->committed;
  EndKafkaClient(std::move(client_), std::exchange(context_, std::make_shared<Context>()));
  context_->committed = committed;
}

Result<uint64_t> KafkaReader::Add(int32_t partition) {
  TACIT_ASSIGN(const auto spans,
               ReadSpans(client_.get(), options_.topic, {&partition, 1}, kQuestion));
  const PartitionOffset offset{partition, spans[0].begin};
  const KafkaPartitions list = MakePartitions(options_.topic, {&offset, 1});
  const KafkaError error(rd_kafka_incremental_assign(client_.get(), list.get()));
  if (error != nullptr) return Unanswered("assigning", rd_kafka_error_code(error.get()));
  assigned_.push_back(partition);
  return spans[0].begin;
}

// A batch waits until it is full or its time is up: so one message is waited for, and what is there
// then is taken without waiting.
void KafkaReader::Fetch(Milliseconds timeout, std::vector<rd_kafka_message_t*>* messages) {
  const size_t before = messages->size();
  messages->resize(before + kBatch);
  ssize_t got = rd_kafka_consume_batch_queue(queue_.get(), 0, messages->data() + before, kBatch);
  if (got == 0 && timeout.count() > 0) {
    rd_kafka_message_t* first =
        rd_kafka_consume_queue(queue_.get(), static_cast<int>(timeout.count()));
    if (first != nullptr) {
      (*messages)[before] = first;
      got =
          rd_kafka_consume_batch_queue(queue_.get(), 0, messages->data() + before + 1, kBatch - 1);
      got = std::max<ssize_t>(got, 0) + 1;
    }
  }
  messages->resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  size_t bytes = 0;
  for (size_t i = before; i < messages->size(); ++i) bytes += (*messages)[i]->len;
  if (waker_->IsDue(messages->size() - before, bytes, rd_kafka_queue_length(queue_.get()),
                    std::chrono::steady_clock::now()))
    FetchWaker::Wake(client_.get(), options_.topic, assigned_);
}

void KafkaReader::Pause(int32_t partition, bool pause) {
  const PartitionOffset which{partition, 0};
  const KafkaPartitions list = MakePartitions(options_.topic, {&which, 1});
  if (pause) {
    rd_kafka_pause_partitions(client_.get(), list.get());
  } else {
    rd_kafka_resume_partitions(client_.get(), list.get());
  }
}

void KafkaReader::Commit(std::span<const PartitionOffset> offsets, const StoreMark& store,
                         bool wait) {
  const std::string metadata = Text(store);
  const KafkaPartitions list = MakePartitions(options_.topic, offsets);
  for (int i = 0; i < list->cnt; ++i) {
    list->elems[i].metadata = strdup(metadata.c_str());  // the list's
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
