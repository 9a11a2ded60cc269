#include "wiring/trainer_topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tacit::wiring {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kQuestion(2000);  // for one answer of the brokers
constexpr std::chrono::seconds kPause(2), kEndedPauseMost(60);
// The thread reads for so long between two looks at what else is to be done.
constexpr milliseconds kSlice(5);
constexpr milliseconds kRest(50);  // where it has nothing to read

}  // namespace

KafkaTrainerTopics::KafkaTrainerTopics(const config::Workers& config,
                                       stream::KafkaProperties properties)
    : plan_topic_(config.plan_topic()),
      sums_topic_(config.sums_topic()),
      properties_(std::move(properties)) {}

Status KafkaTrainerTopics::ReadSums(milliseconds timeout, const Show& show) {
  if (!thread_.started()) thread_.Start("tacit-workers", [this] { Loop(); });
  std::deque<Record> records;
  {
    const MutexLock lock(mutex_);
    came_.WaitFor(mutex_, timeout, [&]() TACIT_REQUIRES(mutex_) { return !records_.empty(); });
    records.swap(records_);
    bytes_ = 0;
  }
  for (const Record& record : records) {
    show(record.key, record.value);
    if (std::exchange(shown_of_, record.joined) != record.joined) shown_.clear();
    shown_[record.partition] = record.offset + 1;
    const MutexLock lock(mutex_);
    old_ -= record.old ? 1 : 0;
  }
  const MutexLock lock(mutex_);
  return sums_status_;
}

bool KafkaTrainerTopics::caught_up() const {
  const MutexLock lock(mutex_);
  return read_up_ && old_ == 0;
}

void KafkaTrainerTopics::WritePlan(std::string plan) {
  {
    const MutexLock lock(mutex_);
    new_plan_ = std::move(plan);
    plan_written_ = false;
  }
  thread_.Wake();
}

Status KafkaTrainerTopics::plan_status() const {
  const MutexLock lock(mutex_);
  return plan_status_;
}

bool KafkaTrainerTopics::plan_written() const {
  const MutexLock lock(mutex_);
  return plan_written_;
}

Status KafkaTrainerTopics::DeleteShown() {
  const MutexLock lock(mutex_);
  to_delete_ = shown_of_ == joined_ ? shown_ : Positions();
  return deletion_status_;
}

void KafkaTrainerTopics::Loop() {
  while (!thread_.stopping()) {
    SendNewPlan();
    DeleteAsked();
    FollowSums();
    if (sums_ == nullptr) thread_.Await(kRest);
  }
}

void KafkaTrainerTopics::FollowSums() {
  {
    const MutexLock lock(mutex_);
    if (Steady::now() < sums_again_ || bytes_ > kQueuedBytesMost) {
      came_.WaitFor(mutex_, kSlice, [] { return false; });
      return;
    }
  }
  Status read = sums_ == nullptr ? JoinSums() : Status();
  if (read) read = Read();
  if (!read) {
    sums_.reset();  // which may take a while
    sums_again_ = Steady::now() + kPause;
  }
  const MutexLock lock(mutex_);
  if (!read) read_up_ = false;
  sums_status_ = std::move(read);
}

Status KafkaTrainerTopics::JoinSums() {
  TACIT_ASSIGN(auto reader, stream::KafkaTopicReader::Open(properties_, sums_topic_));
  TACIT_ASSIGN(const auto spans, reader->Spans(kQuestion));
  std::vector<stream::PartitionOffset> begins;
  ends_.clear();
  for (const stream::PartitionSpan& span : spans) {
    begins.push_back({.partition = span.partition, .offset = span.begin});
    ends_[span.partition] = span.end;
  }
  TACIT_RETURN_IF_ERROR(reader->Seek(begins));
  sums_ = std::move(reader);
  const MutexLock lock(mutex_);
  ++joined_;
  return {};
}

Status KafkaTrainerTopics::Read() {
  bool came = false;
  TACIT_RETURN_IF_ERROR(sums_->Read(kSlice, [&](const stream::KafkaTopicRecord& record) -> Status {
    if (!record.key || !record.value) return {};
    came = true;
    const bool old = record.offset < ends_[record.partition];
    const MutexLock lock(mutex_);
    bytes_ += record.key->size() + record.value->size();
    old_ += old ? 1 : 0;
    records_.push_back({record.partition, record.offset, joined_, std::string(*record.key),
                        std::string(*record.value), old});
    return {};
  }));
  if (came) came_.NotifyAll();
  const bool up = std::ranges::all_of(
      ends_, [&](const auto& end) { return sums_->Position(end.first) >= end.second; });
  {
    const MutexLock lock(mutex_);
    read_up_ = up;
  }
  if (const std::string trouble = sums_->trouble(); !came && !trouble.empty())
    return Fail(ErrorCode::kUnavailable, fmt::format("topic '{}': {}", sums_topic_, trouble));
  return {};
}

void KafkaTrainerTopics::SendNewPlan() {
  std::string plan;
  {
    const MutexLock lock(mutex_);
    if (!new_plan_ || Steady::now() < plan_again_) return;
    plan = *std::exchange(new_plan_, std::nullopt);
  }
  Status sent = plan_ == nullptr ? JoinPlan() : Status();
  if (sent) sent = SendPlan(plan);
  if (!sent) {
    plan_.reset();  // what is open is aborted by the next one's start
    Steady::duration pause = kPause;
    // Two trainers that go on both would end each other's writing in turn.
    if (sent.error().code == ErrorCode::kRefused)
      pause = ended_pause_ =
          std::clamp<Steady::duration>(2 * ended_pause_, kPause, kEndedPauseMost);
    plan_again_ = Steady::now() + pause;
  }
  const MutexLock lock(mutex_);
  plan_written_ = sent && !new_plan_;
  if (!sent && !new_plan_) new_plan_ = std::move(plan);
  plan_status_ = std::move(sent);
}

Status KafkaTrainerTopics::JoinPlan() {
  TACIT_ASSIGN(auto producer,
               stream::KafkaProducer::Open({.properties = properties_,
                                            .topic = plan_topic_,
                                            .transactional_id = "tacit-plan-" + plan_topic_}));
  TACIT_ASSIGN(const int32_t partitions, producer->CountPartitions(kQuestion));
  if (partitions != 1)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("topic '{}' has {} partitions, and a plan is in one: make it anew with "
                            "tools/kafka workers",
                            plan_topic_, partitions));
  TACIT_RETURN_IF_ERROR(producer->InitTransactions(kQuestion));
  plan_ = std::move(producer);
  return {};
}

Status KafkaTrainerTopics::SendPlan(const std::string& plan) {
  TACIT_RETURN_IF_ERROR(plan_->BeginTransaction());
  TACIT_RETURN_IF_ERROR(plan_->Send({.partition = 0, .value = plan}, kQuestion));
  return plan_->CommitTransaction(kQuestion);
}

void KafkaTrainerTopics::DeleteAsked() {
  std::vector<stream::PartitionOffset> until;
  {
    const MutexLock lock(mutex_);
    if (!to_delete_ || sums_ == nullptr) return;
    const Positions asked = *std::exchange(to_delete_, std::nullopt);
    for (const auto& [partition, offset] : asked)
      until.push_back({.partition = partition, .offset = offset});
  }
  Status deleted = until.empty() ? Status() : sums_->DeleteBefore(until, kQuestion);
  const MutexLock lock(mutex_);
  deletion_status_ = std::move(deleted);
}

}  // namespace tacit::wiring
