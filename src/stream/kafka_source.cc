#include "stream/kafka_source.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "stream/kafka_partition.h"
#include "stream/kafka_reader.h"

namespace tacit::stream {
namespace {

using metrics::Audience;
using TimePoint = Clock::TimePoint;

constexpr Milliseconds kRetryMin(250), kRetryMax(2000);  // of opening
// A topic made a moment ago is not known to every broker yet.
constexpr Milliseconds kUnknownTopicPatience(3000);

class KafkaSource final : public Source {
 public:
  KafkaSource(KafkaSourceOptions options, std::unique_ptr<event::Envelope> envelope)
      : options_(std::move(options)),
        clock_(options_.clock == nullptr ? system_clock_ : *options_.clock),
        envelope_(std::move(envelope)),
        reader_(options_) {
    identity_.topic = options_.topic;
    if (options_.metrics == nullptr) return;
    connected_gauge_ = options_.metrics->AddGauge(
        Audience::kPublic, "tacit_source_connected",
        "Whether the source of interactions is within reach and being read");
    waiting_gauge_ =
        options_.metrics->AddGauge(Audience::kOperator, "tacit_source_partitions_waiting",
                                   "Partitions held back by a message that cannot be read yet");
  }
  ~KafkaSource() override {
    if (reader_.open() && connected_) CommitAdvice(/*wait=*/true);
    GiveUp();
  }

  Status Init() { return reader_.MakeClient(); }

  std::string topic() const override { return options_.topic; }
  std::vector<int32_t> partitions() const override;
  Result<PollOutcome> Poll(Milliseconds timeout, event::RawRecords* records) override;
  Status Seek(std::span<const PartitionOffset> positions) override;
  void Pause(std::span<const int32_t> partitions) override { SetPaused(partitions, true); }
  void Resume(std::span<const int32_t> partitions) override { SetPaused(partitions, false); }
  void Claim(const StoreMark& store) override { expected_.store = store; }
  void Advise(std::span<const PartitionOffset> committed, const StoreMark& store) override;
  SourceHealth health() const override;
  uint64_t RecordsAfter(std::span<const PartitionOffset> positions) const override;
  std::string Identity() const override { return identity_.Encode(); }
  Status VerifyIdentity(const std::string& stored) override;

 private:
  KafkaPartition* Find(int32_t partition);
  void SetPaused(std::span<const int32_t> partitions, bool paused);
  bool AllPaused() const;
  bool AllEnded() const;

  // Tries to open; Status says what ends the source for good.
  Status Open();
  void Begin(std::span<const PartitionStart> starts);
  KafkaPartition& FindOrAdd(int32_t partition);
  // Lets go of the client and of what it has fetched; the positions stay, and Poll opens anew.
  void GiveUp();
  void Reopen(const std::string& why);

  // What is to be done every now and then.
  Status LookAfter();
  void Refresh();
  void CommitAdvice(bool wait);
  void ShowLag();
  void SetConnected(bool connected);
  void SetAlert(std::string alert);

  void Fetch(Milliseconds timeout);
  void OnError(const rd_kafka_message_t& message);
  bool Deliver(event::RawRecords* records);

  const SystemClock system_clock_;
  const KafkaSourceOptions options_;
  const Clock& clock_;
  const std::unique_ptr<event::Envelope> envelope_;
  KafkaReader reader_;
  KafkaExpectation expected_;  // kept up to date only while the reader is not open
  KafkaIdentity identity_;
  std::vector<std::unique_ptr<KafkaPartition>> partitions_;
  size_t turn_ = 0;  // whose records come next
  std::vector<rd_kafka_message_t*> fetched_;

  bool opened_before_ = false;
  Milliseconds retry_{kRetryMin};
  bool topic_unknown_ = false;  // as the last try to open had it
  TimePoint first_try_{}, next_try_{}, next_refresh_{}, next_tick_{}, next_advice_{};
  bool heard_ = false;  // something of the brokers since the last refresh
  bool commit_failed_ = false;
  std::optional<std::string> reopen_;  // why, as soon as messages are no longer looked at

  // Shared with other threads.
  mutable std::mutex mutex_;
  bool connected_ = false;
  std::string alert_;                    // of the source; partitions have their own
  std::vector<std::string> waits_;       // of partitions
  std::vector<PartitionOffset> advice_;  // not yet committed for the group
  std::optional<StoreMark> adviser_;
  metrics::Gauge connected_gauge_, waiting_gauge_;
};

// ---- positions

Status KafkaSource::VerifyIdentity(const std::string& stored) {
  if (stored.empty()) return {};
  TACIT_ASSIGN(KafkaIdentity identity, KafkaIdentity::Decode(stored));
  if (identity.topic != options_.topic)
    return Fail(ErrorCode::kRefused,
                fmt::format("the store has read topic '{}', source.topic is '{}': a store goes on "
                            "with the topic it began with",
                            identity.topic, options_.topic));
  identity_ = std::move(identity);
  return {};
}

Status KafkaSource::Seek(std::span<const PartitionOffset> positions) {
  GiveUp();
  partitions_.clear();
  expected_.positions.assign(positions.begin(), positions.end());
  opened_before_ = false;
  first_try_ = next_try_ = clock_.Now();
  const TimePoint deadline = first_try_ + options_.open_timeout;
  while (true) {
    TACIT_RETURN_IF_ERROR(Open());
    if (reader_.open()) return {};
    // A topic that its brokers do not know is waited for as long as it takes to call it a mistake.
    if (clock_.Now() >= deadline && !topic_unknown_) break;
    std::this_thread::sleep_for(kRetryMin);
  }
  spdlog::warn("{}; what is committed is served, and learning begins when the brokers are back",
               health().alert);
  return {};
}

Status KafkaSource::Open() {
  if (clock_.Now() < next_try_) return {};
  expected_.identity = identity_;
  auto starts = reader_.Open(expected_);
  if (starts) {
    Begin(*starts);
    return {};
  }
  const Error& error = starts.error();
  topic_unknown_ = error.code == ErrorCode::kNotFound;
  next_try_ = clock_.Now() + retry_;
  retry_ = std::min(retry_ * 2, kRetryMax);
  const bool patience =
      error.code == ErrorCode::kUnavailable ||
      (error.code == ErrorCode::kNotFound && clock_.Now() - first_try_ < kUnknownTopicPatience);
  // What worked once may work again; what never has is a mistake. Another topic is another topic.
  if (error.code == ErrorCode::kRefused || (!opened_before_ && !patience)) return Fail(error);
  SetAlert(error.message);
  return {};
}

void KafkaSource::Begin(std::span<const PartitionStart> starts) {
  const TimePoint now = clock_.Now();
  for (const PartitionStart& start : starts) {
    KafkaPartition& partition = FindOrAdd(start.partition);
    partition.Start(start.offset, start.lost);
    if (start.lost > 0)
      spdlog::warn("topic '{}' partition {}: {} offsets before {} are lost, and stay unlearnt",
                   options_.topic, start.partition, start.lost, start.offset);
    // The client is new, and knows nothing of who is held back.
    if (partition.held_back()) reader_.Pause(start.partition, true);
  }
  if (opened_before_) spdlog::info("topic '{}': the brokers are back", options_.topic);
  opened_before_ = true;
  retry_ = kRetryMin;
  next_refresh_ = now + options_.refresh;
  if (next_tick_ == TimePoint{}) next_tick_ = now + options_.tick;
  SetAlert("");
  SetConnected(true);
}

KafkaPartition& KafkaSource::FindOrAdd(int32_t partition) {
  KafkaPartition* found = Find(partition);
  if (found != nullptr) return *found;
  partitions_.push_back(std::make_unique<KafkaPartition>(
      partition, options_.topic, options_.max_record_bytes, options_.metrics));
  return *partitions_.back();
}

void KafkaSource::GiveUp() {
  for (const auto& partition : partitions_) partition->DropFetched();
  reader_.Close();
  SetConnected(false);
}

// Another client goes on where records were last handed on; nothing of this one can get in between.
void KafkaSource::Reopen(const std::string& why) {
  GiveUp();
  expected_.positions.clear();
  for (const auto& partition : partitions_)
    expected_.positions.push_back({.partition = partition->id(), .offset = partition->next()});
  // What this process has committed for the group since the start is its own.
  {
    std::lock_guard lock(mutex_);
    if (adviser_) expected_.store = adviser_;
  }
  next_try_ = clock_.Now();
  first_try_ = next_try_;
  SetAlert(why);
  spdlog::warn("{}", why);
}

// ---- reading

Result<PollOutcome> KafkaSource::Poll(Milliseconds timeout, event::RawRecords* records) {
  records->Clear();
  TACIT_RETURN_IF_ERROR(LookAfter());
  if (!reader_.open() || AllPaused()) {
    std::this_thread::sleep_for(timeout);
    return PollOutcome::kNothing;
  }
  if (Deliver(records)) return PollOutcome::kRecords;
  Fetch(timeout);
  if (Deliver(records)) return PollOutcome::kRecords;
  if (options_.until_end && AllEnded()) return PollOutcome::kEnd;
  return PollOutcome::kNothing;
}

bool KafkaSource::Deliver(event::RawRecords* records) {
  const TimePoint now = clock_.Now();
  for (size_t i = 0; i < partitions_.size(); ++i) {
    KafkaPartition& partition = *partitions_[turn_];
    turn_ = (turn_ + 1) % partitions_.size();
    if (!partition.Ready(now)) continue;
    const bool waited = partition.waiting();
    const auto last = partition.Take(now, envelope_.get(), records);
    if (partition.waiting() != waited) {
      reader_.Pause(partition.id(), partition.held_back());
      if (partition.waiting()) spdlog::warn("{}", partition.wait());
    }
    if (last) identity_.last[partition.id()] = *last;
    if (records->size() > 0 || !records->marks.empty()) return true;
  }
  return false;
}

void KafkaSource::Fetch(Milliseconds timeout) {
  fetched_.clear();
  reader_.Fetch(timeout, &fetched_);
  for (rd_kafka_message_t* message : fetched_) {
    KafkaPartition* partition = Find(message->partition);
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR && partition != nullptr) {
      partition->Hold(message);
      heard_ = true;
      continue;
    }
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF && partition != nullptr) {
      partition->EndsAt(static_cast<uint64_t>(message->offset));
      heard_ = true;
    } else if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      OnError(*message);
    }
    rd_kafka_message_destroy(message);
  }
  // Whatever is wrong lies behind what came before it: a new client finds it again if it stays.
  if (reopen_) Reopen(*std::exchange(reopen_, std::nullopt));
}

// What librdkafka gets over by itself is its own affair. Anything else (the offset is out of range,
// a batch is damaged, the topic is gone) is looked at by opening anew, which either names what is
// wrong or reads the same once more: nothing is passed over.
void KafkaSource::OnError(const rd_kafka_message_t& message) {
  if (IsTransient(message.err)) return;
  reopen_ = fmt::format("topic '{}' partition {}: {}", options_.topic, message.partition,
                        rd_kafka_message_errstr(&message));
}

bool KafkaSource::AllEnded() const {
  return std::ranges::all_of(partitions_, [](const auto& p) { return p->ended(); });
}

// ---- flow

KafkaPartition* KafkaSource::Find(int32_t partition) {
  // Partitions are numbered from 0 and are mostly all there.
  const auto at = static_cast<size_t>(partition);
  if (at < partitions_.size() && partitions_[at]->id() == partition) return partitions_[at].get();
  for (const auto& one : partitions_)
    if (one->id() == partition) return one.get();
  return nullptr;
}

std::vector<int32_t> KafkaSource::partitions() const {
  std::vector<int32_t> ids;
  for (const auto& partition : partitions_) ids.push_back(partition->id());
  return ids;
}

// With all of them the client is left alone: it fetches no more than fits its queue, and goes on
// at once. One alone must not fill the queue of the others.
void KafkaSource::SetPaused(std::span<const int32_t> partitions, bool paused) {
  const bool all = partitions.size() >= partitions_.size();
  for (const int32_t id : partitions) {
    KafkaPartition* partition = Find(id);
    if (partition == nullptr || partition->paused() == paused) continue;
    const bool before = partition->held_back();
    partition->SetPaused(paused, all);
    if (reader_.open() && partition->held_back() != before)
      reader_.Pause(id, partition->held_back());
  }
}

bool KafkaSource::AllPaused() const {
  return !partitions_.empty() &&
         std::ranges::all_of(partitions_, [](const auto& p) { return p->paused(); });
}

// ---- looking after it

Status KafkaSource::LookAfter() {
  if (!reader_.open()) {
    TACIT_RETURN_IF_ERROR(Open());
    if (!reader_.open()) return {};
  }
  // A connection may have ended for no reason but that nobody needed it.
  if (reader_.TakeEvents().all_brokers_down && !reader_.Refresh()) {
    Reopen(fmt::format("topic '{}': no broker is within reach", options_.topic));
    return {};
  }
  const TimePoint now = clock_.Now();
  if (now >= next_advice_) {
    next_advice_ = now + options_.advise;
    CommitAdvice(/*wait=*/false);
    ShowLag();
  }
  if (now >= next_refresh_ && !AllPaused()) {
    Refresh();
    next_refresh_ = clock_.Now() + options_.refresh;
  }
  if (options_.tick.count() > 0 && now >= next_tick_) {
    next_tick_ = now + options_.tick;
    for (const auto& partition : partitions_) partition->Tick();
  }
  return {};
}

void KafkaSource::Refresh() {
  const auto there = reader_.Refresh();
  if (!there) {
    if (there.error().code == ErrorCode::kNotFound) {
      Reopen(there.error().message);
    } else if (!std::exchange(heard_, false)) {
      SetConnected(false);
      SetAlert(there.error().message);
    }
    return;
  }
  heard_ = false;
  if (there->size() < partitions_.size()) {
    Reopen(fmt::format("topic '{}' has {} partitions, it had {}", options_.topic, there->size(),
                       partitions_.size()));
    return;
  }
  SetConnected(true);
  SetAlert("");
  for (const int32_t partition : *there) {
    if (Find(partition) != nullptr) continue;
    const auto begin = reader_.Add(partition);
    if (!begin) {
      SetAlert(begin.error().message);
      continue;
    }
    FindOrAdd(partition).Start(*begin, 0);
    spdlog::info("topic '{}' has a new partition {}: it is read from offset {}", options_.topic,
                 partition, *begin);
  }
}

void KafkaSource::Advise(std::span<const PartitionOffset> committed, const StoreMark& store) {
  std::lock_guard lock(mutex_);
  advice_.assign(committed.begin(), committed.end());
  adviser_ = store;
}

void KafkaSource::CommitAdvice(bool wait) {
  std::vector<PartitionOffset> advice;
  StoreMark store;
  {
    std::lock_guard lock(mutex_);
    if (adviser_) store = *adviser_;
    advice = std::exchange(advice_, {});
  }
  std::erase_if(advice, [](const auto& a) { return a.offset == PartitionOffset::kNowhere; });
  if (!advice.empty()) {
    reader_.Commit(advice, store, wait);
    for (const PartitionOffset& position : advice)
      if (KafkaPartition* partition = Find(position.partition))
        partition->Committed(position.offset);
  }
  const std::string failure = reader_.TakeCommitFailure();
  if (!failure.empty() && !commit_failed_)
    spdlog::warn(
        "group '{}': its offsets cannot be committed: {}. Training goes on: the store "
        "keeps its own; but lag tools see old ones",
        reader_.group(), failure);
  commit_failed_ = !failure.empty();
}

void KafkaSource::ShowLag() {
  size_t waiting = 0;
  std::vector<std::string> waits;
  for (const auto& partition : partitions_) {
    partition->ShowLag(reader_.End(partition->id()), reader_.CommittedOffset(partition->id()));
    if (!partition->waiting()) continue;
    ++waiting;
    waits.push_back(partition->wait());
  }
  waiting_gauge_.Set(static_cast<double>(waiting));
  std::lock_guard lock(mutex_);
  waits_ = std::move(waits);
}

uint64_t KafkaSource::RecordsAfter(std::span<const PartitionOffset>) const {
  uint64_t ahead = 0;
  for (const auto& partition : partitions_) ahead += partition->ahead();
  return ahead;
}

void KafkaSource::SetConnected(bool connected) {
  std::lock_guard lock(mutex_);
  connected_ = connected;
  connected_gauge_.Set(connected);
}

void KafkaSource::SetAlert(std::string alert) {
  std::lock_guard lock(mutex_);
  alert_ = std::move(alert);
}

SourceHealth KafkaSource::health() const {
  std::lock_guard lock(mutex_);
  SourceHealth health{.connected = connected_, .alert = alert_};
  if (health.alert.empty() && !waits_.empty()) health.alert = waits_.front();
  return health;
}

}  // namespace

Result<std::unique_ptr<Source>> OpenKafkaSource(KafkaSourceOptions options,
                                                std::unique_ptr<event::Envelope> envelope) {
  if (options.topic.empty())
    return Fail(ErrorCode::kInvalidArgument, "source.topic: a Kafka source needs one");
  TACIT_CHECK(options.max_record_bytes > 0 && options.max_record_bytes < (1u << 30));
  auto source = std::make_unique<KafkaSource>(std::move(options), std::move(envelope));
  TACIT_RETURN_IF_ERROR(source->Init());
  return source;
}

}  // namespace tacit::stream
