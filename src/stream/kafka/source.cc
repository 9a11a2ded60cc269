#include "stream/kafka/source.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/threads/mutex.h"
#include "metrics/families.h"
#include "stream/kafka/periods.h"
#include "stream/kafka/reader.h"
#include "stream/kafka/turns.h"
#include "stream/kafka/watcher.h"

namespace tacit::stream {
namespace {

using TimePoint = Clock::TimePoint;

constexpr Milliseconds kRetryMin(250), kRetryMax(2000);  // between tries to open
// Right after a topic is made, not every broker knows it.
constexpr Milliseconds kUnknownTopicPatience(3000);

class KafkaSource final : public Source {
 public:
  KafkaSource(KafkaSourceOptions options, std::unique_ptr<event::Envelope> envelope)
      : options_(std::move(options)),
        clock_(options_.clock == nullptr ? system_clock_ : *options_.clock),
        envelope_(std::move(envelope)),
        reader_(options_),
        sequence_(std::make_unique<KafkaTurns>(MakeParts())) {
    identity_.topic = options_.topic;
    if (options_.metrics == nullptr) return;
    waiting_gauge_ = options_.metrics->AddGauge("tacit_source_partitions_waiting");
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
  void SetPeriods(TopicPeriods periods) override {
    sequence_ = std::make_unique<KafkaPeriods>(
        MakeParts(), reader_,
        KafkaPeriods::Options{.periods = std::move(periods),
                              .until_end = options_.until_end,
                              .share = options_.share,
                              .begin = [this](auto before) { return BeginPeriod(before); }});
  }
  void Claim(const StoreClaim& store) override { expected_.store = store; }
  void Advise(std::span<const PartitionOffset> committed, const StoreClaim& store) override;
  SourceHealth health() const override;
  uint64_t RecordsAfter(std::span<const PartitionOffset> positions) const override;
  std::string Identity() const override { return identity_.Encode(); }
  Status VerifyIdentity(const std::string& stored) override;

 private:
  KafkaSequence::Parts MakeParts() {
    return {.options = {.topic = options_.topic,
                        .max_record_bytes = options_.max_record_bytes,
                        .metrics = options_.metrics},
            .clock = clock_,
            .envelope = envelope_.get(),
            .rounds = rounds_};
  }
  std::optional<SharedPeriod> BeginPeriod(std::span<const OffsetRange> before) const;
  void SetPaused(std::span<const int32_t> partitions, bool paused);
  bool AllPaused() const;
  Result<bool> Take(Milliseconds timeout, event::RawRecords* records,
                    std::optional<LastRecord>* last);

  // Tries to open. A failed Status ends the source for good.
  Status Open();
  std::string UnknownTopic() const;  // says so to operators, and what to do
  Status Begin(std::span<const PartitionStart> starts);
  void CloseFirstRound(std::span<const PartitionStart> starts);
  // Closes the client and drops what it has fetched; the positions stay, and Poll opens anew.
  void GiveUp();
  void Reopen(const std::string& why);

  // Does the periodic work: opens, checks the connection, commits for the group, refreshes.
  Status LookAfter();
  void Refresh();
  void CommitAdvice(bool wait);
  void ShowLag();
  void SetConnected(bool connected);
  void SetAlert(std::string alert);

  const SystemClock system_clock_;
  const KafkaSourceOptions options_;
  const Clock& clock_;
  const std::unique_ptr<event::Envelope> envelope_;
  KafkaReader reader_;
  KafkaExpectation expected_;  // kept up to date only while the reader is not open
  KafkaIdentity identity_;
  RoundQueue rounds_;
  std::unique_ptr<KafkaSequence> sequence_;
  std::unique_ptr<EndWatcher> watcher_;  // while it is open, unless it ends with what is there

  bool opened_before_ = false;
  Milliseconds retry_{kRetryMin};
  bool topic_unknown_ = false;  // as the last try to open had it
  TimePoint first_try_{}, next_try_{}, next_refresh_{}, first_tick_{}, next_advice_{};
  bool heard_ = false;  // a broker has answered since the last refresh
  bool commit_failed_ = false;

  // Shared with other threads.
  mutable Mutex mutex_;
  bool connected_ TACIT_GUARDED_BY(mutex_) = false;
  std::string alert_ TACIT_GUARDED_BY(mutex_);  // the source's; partitions have their own
  std::string stall_ TACIT_GUARDED_BY(mutex_);  // why a partition's turn stalls
  std::vector<PartitionOffset> advice_ TACIT_GUARDED_BY(mutex_);  // not yet committed for the group
  std::optional<StoreClaim> adviser_ TACIT_GUARDED_BY(mutex_);
  std::map<int32_t, uint64_t> committed_ TACIT_GUARDED_BY(mutex_);  // in adviser_
  metrics::Gauge waiting_gauge_;
};

// ---- positions

Status KafkaSource::VerifyIdentity(const std::string& stored) {
  if (stored.empty()) return {};
  TACIT_ASSIGN(KafkaIdentity identity, KafkaIdentity::Decode(stored));
  if (identity.topic != options_.topic)
    return Fail(ErrorCode::kRefused, fmt::format("the store has read topic '{}', but source.topic "
                                                 "is '{}': set it back, or use another store",
                                                 identity.topic, options_.topic));
  identity_ = std::move(identity);
  return {};
}

Status KafkaSource::Seek(std::span<const PartitionOffset> positions) {
  GiveUp();
  sequence_->Clear();
  sequence_->SetFirst(positions);
  expected_.positions.assign(positions.begin(), positions.end());
  opened_before_ = false;
  first_try_ = next_try_ = clock_.Now();
  const TimePoint deadline = first_try_ + options_.open_timeout;
  while (true) {
    TACIT_RETURN_IF_ERROR(Open());
    if (reader_.open()) return {};
    // A topic that its brokers do not know is waited for here until that is no mere delay.
    const TimePoint now = clock_.Now();
    const bool waited = now - first_try_ >= kUnknownTopicPatience;
    if (topic_unknown_ ? waited && !options_.until_end : now >= deadline) break;
    std::this_thread::sleep_for(kRetryMin);
  }
  spdlog::warn("{}; what is committed is served, and learning begins when {}", health().alert,
               topic_unknown_ ? "the topic is there" : "the brokers are back");
  return {};
}

std::string KafkaSource::UnknownTopic() const {
  const std::string* brokers = options_.properties.Find("bootstrap.servers");
  return fmt::format(
      "topic '{}': the brokers at {} have none of that name; make it, or correct source.topic",
      options_.topic, brokers == nullptr ? "kafka.bootstrap.servers" : *brokers);
}

Status KafkaSource::Open() {
  if (clock_.Now() < next_try_) return {};
  expected_.identity = identity_;
  auto starts = reader_.Open(expected_);
  if (starts) return Begin(*starts);
  Error& error = starts.error();
  topic_unknown_ = error.code == ErrorCode::kNotFound;
  if (topic_unknown_) error.message = UnknownTopic();
  next_try_ = clock_.Now() + retry_;
  retry_ = std::min(retry_ * 2, kRetryMax);
  // A source that ends with what is there wants an answer; another one waits for the topic.
  const bool patience = error.code == ErrorCode::kUnavailable ||
                        (topic_unknown_ && (!options_.until_end ||
                                            clock_.Now() - first_try_ < kUnknownTopicPatience));
  // An error after a successful opening may pass; before one it is a mistake. kRefused never
  // passes.
  if (error.code == ErrorCode::kRefused || (!opened_before_ && !patience)) return Fail(error);
  SetAlert(error.message);
  return {};
}

Status KafkaSource::Begin(std::span<const PartitionStart> starts) {
  const TimePoint now = clock_.Now();
  std::vector<int32_t> partitions;
  for (const PartitionStart& start : starts) {
    sequence_->Start(start);
    partitions.push_back(start.partition);
    if (start.lost > 0)
      spdlog::warn("topic '{}' partition {}: {} offsets before {} are lost, and stay unlearnt",
                   options_.topic, start.partition, start.lost, start.offset);
  }
  CloseFirstRound(starts);
  if (first_tick_ == TimePoint{}) first_tick_ = now + options_.tick;
  if (!options_.until_end) {
    TACIT_ASSIGN(watcher_,
                 EndWatcher::Make(options_, clock_, std::move(partitions), first_tick_, &rounds_));
  }
  if (opened_before_) spdlog::info("topic '{}': the brokers are back", options_.topic);
  if (std::exchange(topic_unknown_, false))
    spdlog::info("topic '{}' is there, and is read from now on", options_.topic);
  opened_before_ = true;
  retry_ = kRetryMin;
  next_refresh_ = now + options_.refresh;
  SetAlert("");
  SetConnected(true);
  return {};
}

// Closes a first round with everything that exists now. Rounds closed before an outage are still to
// be read, and this one comes after them; if records that they cover are gone, they are dropped.
void KafkaSource::CloseFirstRound(std::span<const PartitionStart> starts) {
  std::vector<PartitionEnd> ends;
  for (const PartitionStart& start : starts) ends.push_back({start.partition, start.end});
  if (rounds_.Close(ends, /*tick=*/false)) return;
  sequence_->DropRounds();
  rounds_.Close(ends, /*tick=*/false);
}

void KafkaSource::GiveUp() {
  // Each takes up to a second, so both end at the same time.
  const auto ending = std::async(std::launch::async, [this] { watcher_.reset(); });
  sequence_->DropFetched();
  reader_.Close();
  ending.wait();
  SetConnected(false);
}

// Makes the next client continue after the last record handed on; no record of this one can follow.
void KafkaSource::Reopen(const std::string& why) {
  GiveUp();
  expected_.positions.clear();
  for (const auto& partition : sequence_->partitions())
    expected_.positions.push_back({.partition = partition->id(), .offset = partition->next()});
  // This process made the group's commits since the start; its newest claim has their terms.
  {
    const MutexLock lock(mutex_);
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
    // Back-pressure lasts as long as a step: an outage and failed commits are noticed meanwhile.
    if (const Status served = reader_.open() ? reader_.Serve() : Status(); !served)
      Reopen(served.error().message);
    std::this_thread::sleep_for(timeout);
    return PollOutcome::kNothing;
  }
  std::optional<LastRecord> last;
  const Result<bool> taken = Take(timeout, records, &last);
  // A period whose sums contradict each other does so again.
  if (!taken && taken.error().code == ErrorCode::kRefused) return Fail(taken.error());
  if (!taken) {
    // The fault lies after the records delivered so far; a new client meets it again if it
    // persists.
    records->Clear();
    Reopen(taken.error().message);
    return PollOutcome::kNothing;
  }
  if (last) identity_.last[records->partition] = *last;
  if (options_.share != nullptr && !records->period.empty())
    identity_.last = options_.share->Last();
  if (*taken) return PollOutcome::kRecords;
  return options_.until_end && sequence_->idle() ? PollOutcome::kEnd : PollOutcome::kNothing;
}

Result<bool> KafkaSource::Take(Milliseconds timeout, event::RawRecords* records,
                               std::optional<LastRecord>* last) {
  TACIT_RETURN_IF_ERROR(reader_.Serve());
  return sequence_->Take(reader_, timeout, records, last);
}

std::vector<int32_t> KafkaSource::partitions() const {
  std::vector<int32_t> ids;
  for (const auto& partition : sequence_->partitions()) ids.push_back(partition->id());
  return ids;
}

// Leaves the client alone: it fetches only what fits its queues, and Resume continues at once.
void KafkaSource::SetPaused(std::span<const int32_t> partitions, bool paused) {
  for (const int32_t id : partitions)
    if (KafkaPartition* partition = sequence_->Find(id)) partition->SetPaused(paused);
}

bool KafkaSource::AllPaused() const {
  return !sequence_->partitions().empty() &&
         std::ranges::all_of(sequence_->partitions(), [](const auto& p) { return p->paused(); });
}

// ---- looking after it

Status KafkaSource::LookAfter() {
  if (!reader_.open()) {
    TACIT_RETURN_IF_ERROR(Open());
    if (!reader_.open()) return {};
  }
  // Idle connections may close too, so an outage is certain only if a request fails.
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
  if (now >= next_refresh_) {
    Refresh();
    next_refresh_ = clock_.Now() + options_.refresh;
  }
  if (watcher_ != nullptr && watcher_->shrunk())
    Reopen(fmt::format("topic '{}': a partition ends before where it did", options_.topic));
  return {};
}

void KafkaSource::Refresh() {
  const auto there = reader_.Refresh();
  heard_ |= watcher_ != nullptr && watcher_->TakeHeard();
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
  const size_t partitions = sequence_->partitions().size();
  if (there->size() < partitions) {
    Reopen(fmt::format("topic '{}' has {} partitions, it had {}", options_.topic, there->size(),
                       partitions));
    return;
  }
  SetConnected(true);
  SetAlert("");
}

void KafkaSource::Advise(std::span<const PartitionOffset> committed, const StoreClaim& store) {
  const MutexLock lock(mutex_);
  advice_.assign(committed.begin(), committed.end());
  adviser_ = store;
  for (const PartitionOffset& one : committed) committed_[one.partition] = one.offset;
}

// A period begins at the commit that has the one before it.
std::optional<SharedPeriod> KafkaSource::BeginPeriod(std::span<const OffsetRange> before) const {
  const MutexLock lock(mutex_);
  for (const OffsetRange& range : before) {
    const auto committed = committed_.find(range.partition);
    if (committed == committed_.end() || committed->second < range.end) return std::nullopt;
  }
  const std::optional<StoreClaim>& store = adviser_ ? adviser_ : expected_.store;
  TACIT_CHECK(store.has_value(), "periods are shared out for a store");
  return SharedPeriod{.store = store->now, .before = identity_.last};
}

void KafkaSource::CommitAdvice(bool wait) {
  std::vector<PartitionOffset> advice;
  StoreMark store;
  {
    const MutexLock lock(mutex_);
    if (adviser_) store = adviser_->now;
    advice = std::exchange(advice_, {});
  }
  std::erase_if(advice, [](const auto& a) { return a.offset == PartitionOffset::kNowhere; });
  if (!advice.empty()) {
    reader_.Commit(advice, store, wait);
    for (const PartitionOffset& position : advice)
      if (KafkaPartition* partition = sequence_->Find(position.partition))
        partition->Committed(position.offset);
  }
  const std::string failure = reader_.TakeCommitFailure();
  if (!failure.empty() && !commit_failed_)
    spdlog::warn(
        "group '{}': its offsets cannot be committed: {}. Training continues, because the store "
        "keeps its own, but lag tools see old ones",
        reader_.group(), failure);
  commit_failed_ = !failure.empty();
}

void KafkaSource::ShowLag() {
  size_t waiting = 0;
  for (const auto& partition : sequence_->partitions()) {
    partition->ShowLag(reader_.End(partition->id()), reader_.CommittedOffset(partition->id()));
    waiting += partition->waiting() ? 1 : 0;
  }
  waiting_gauge_.Set(static_cast<double>(waiting));
  const std::string stall = sequence_->stall();
  std::string before = stall;
  {
    const MutexLock lock(mutex_);
    stall_.swap(before);
  }
  if (!stall.empty() && before.empty()) spdlog::warn("{}", stall);
  if (stall.empty() && !before.empty()) spdlog::info("topic '{}': reading goes on", options_.topic);
}

uint64_t KafkaSource::RecordsAfter(std::span<const PartitionOffset>) const {
  uint64_t ahead = 0;
  for (const auto& partition : sequence_->partitions()) ahead += partition->ahead();
  return ahead;
}

void KafkaSource::SetConnected(bool connected) {
  const MutexLock lock(mutex_);
  connected_ = connected;
}

void KafkaSource::SetAlert(std::string alert) {
  const MutexLock lock(mutex_);
  alert_ = std::move(alert);
}

SourceHealth KafkaSource::health() const {
  const MutexLock lock(mutex_);
  SourceHealth health{.connected = connected_, .alert = alert_};
  if (health.alert.empty()) health.alert = stall_;
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
