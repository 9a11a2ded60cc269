#include "stream/kafka/watcher.h"

#include <utility>

namespace tacit::stream {
namespace {

using Steady = std::chrono::steady_clock;

constexpr Milliseconds kQuestion(1000);
// The time for each question when the partitions are asked one by one, as one leader is out of
// reach.
constexpr Milliseconds kSingleQuestion(200);

}  // namespace

Result<std::unique_ptr<EndWatcher>> EndWatcher::Make(const KafkaSourceOptions& options,
                                                     const Clock& clock,
                                                     std::vector<int32_t> partitions,
                                                     Clock::TimePoint first_tick,
                                                     RoundQueue* rounds) {
  std::unique_ptr<EndWatcher> watcher(
      new EndWatcher(options, clock, std::move(partitions), first_tick, rounds));
  TACIT_ASSIGN(watcher->client_, MakeAsker(options.properties, watcher->context_.get()));
  watcher->thread_.Start("tacit-rounds", [self = watcher.get()] { self->Run(); });
  return watcher;
}

EndWatcher::EndWatcher(const KafkaSourceOptions& options, const Clock& clock,
                       std::vector<int32_t> partitions, Clock::TimePoint first_tick,
                       RoundQueue* rounds)
    : options_(options),
      clock_(clock),
      rounds_(rounds),
      partitions_(std::move(partitions)),
      next_tick_(first_tick),
      next_look_(clock.Now() + options.refresh),
      ticks_(options.tick.count() > 0) {}

EndWatcher::~EndWatcher() {
  thread_.Stop();
  EndKafkaClient(std::move(client_), context_);
}

bool EndWatcher::TakeHeard() {
  const MutexLock lock(mutex_);
  return std::exchange(heard_, false);
}

bool EndWatcher::shrunk() const {
  const MutexLock lock(mutex_);
  return shrunk_;
}

// Asks at fixed times: a time that passes during an answer is skipped, and later ones do not move.
void EndWatcher::Run() {
  auto next = Steady::now() + options_.round;
  while (thread_.Rest(next - Steady::now())) {
    Ask();
    rd_kafka_poll(client_.get(), 0);  // no other code serves its callbacks
    while (next <= Steady::now()) next += options_.round;
  }
}

void EndWatcher::Ask() {
  if (shrunk()) return;
  LookForPartitions();
  auto answer = ReadEnds(client_.get(), options_.topic, partitions_, kQuestion);
  const std::vector<PartitionEnd> ends = answer ? std::move(*answer) : AskEach();
  if (ends.empty()) return;
  const auto now = clock_.Now();
  const bool tick = ticks_ && now >= next_tick_;
  while (ticks_ && next_tick_ <= now) next_tick_ += options_.tick;
  const bool closed = rounds_->Close(ends, tick);
  const MutexLock lock(mutex_);
  heard_ = true;
  shrunk_ = !closed;
}

std::vector<PartitionEnd> EndWatcher::AskEach() {
  std::vector<PartitionEnd> ends;
  for (const int32_t& partition : partitions_) {
    if (thread_.stopping()) return {};
    const auto answer = ReadEnds(client_.get(), options_.topic, {&partition, 1}, kSingleQuestion);
    if (answer) ends.insert(ends.end(), answer->begin(), answer->end());
  }
  return ends;
}

void EndWatcher::LookForPartitions() {
  if (clock_.Now() < next_look_) return;
  next_look_ = clock_.Now() + options_.refresh;
  auto there = ReadPartitions(client_.get(), options_.topic, kQuestion);
  if (there && there->size() > partitions_.size()) partitions_ = std::move(*there);
}

}  // namespace tacit::stream
