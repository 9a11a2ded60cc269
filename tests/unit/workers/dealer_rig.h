#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "metrics/families.h"
#include "toy_topic.h"
#include "workers/dealer.h"

namespace tacit::workers {

using std::chrono::milliseconds;
using stream::PeriodPiece;

inline constexpr SharedKey kDealerKey{5};
inline constexpr Digest kDealerBuild{6};

// A clock that the test moves. People may have set its time of day back.
class SetClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(passed); }
  int64_t UnixMillis() const override {
    return 1'790'000'000'000 + unix_ms_off + passed / milliseconds(1);
  }

  Duration passed = std::chrono::seconds(1);
  int64_t unix_ms_off = 0;
};

// The topics in memory.
class HeldTopics final : public TrainerTopics {
 public:
  Status ReadSums(milliseconds, const Show& show) override {
    if (away) return Fail(ErrorCode::kUnavailable, "sums are away");
    while (read < sums.size()) {
      const KafkaRecord& record = sums[read++];
      if (read > old) caught_up_ = true;
      show(record.key, record.value);
    }
    caught_up_ = true;
    return {};
  }
  bool caught_up() const override { return caught_up_ && !away && !endless; }
  void WritePlan(std::string plan) override {
    if (!full) plans.push_back(DecodePlan(kDealerKey, plan).value());
  }
  bool plan_written() const override { return !full && !slow; }
  Status plan_status() const override {
    return full ? Fail(ErrorCode::kUnavailable, "plan is full") : Status();
  }
  Status DeleteShown() override {
    if (kept) return Fail(ErrorCode::kRefused, "not allowed");
    deleted = read;
    return {};
  }

  // Reading begins with the topic again.
  void Reopen() {
    old = sums.size();
    read = 0;
    caught_up_ = false;
  }

  std::vector<KafkaRecord> sums;
  size_t old = 0;  // sums that were there before the dealer
  std::vector<Plan> plans;
  size_t read = 0, deleted = 0;
  bool away = false, full = false, kept = false, endless = false, slow = false;

 private:
  bool caught_up_ = false;
};

class DealerTest : public ::testing::Test {
 protected:
  explicit DealerTest(double check = 0) : check_(check) {}

  void Begin(uint64_t version, const Ranges& ranges = {{0, 10, 50}, {1, 20, 60}},
             const std::vector<LearnerIndex>& learners = {LearnerIndex(0)},
             const Ranges& lost = {}) {
    head_ = Digest{static_cast<uint8_t>(100 + version)};
    stream::SharedPeriod period{
        .store = {.lineage = "a", .sequence = version, .head = ToHex(head_)},
        .step = version,
        .learners = learners,
        .ranges = ranges,
        .lost = lost};
    for (const OffsetRange& range : ranges)
      period.before[range.partition] = *topic_.Before(range.partition, range.begin);
    dealer_->Begin(std::move(period));
  }
  PeriodPiece Next() {
    auto piece = dealer_->Next(milliseconds(0));
    EXPECT_TRUE(piece) << piece.error().message;
    return piece.value_or(PeriodPiece());
  }
  void Pass(milliseconds time) { clock_.passed += time; }
  // A hello that answers the newest plan; of a worker that has the period's model, or this one.
  void Hello(const std::string& worker, const Digest& build = kDealerBuild, bool leaves = false,
             const std::string& trouble = "", std::optional<Digest> model = std::nullopt) {
    topics_.sums.push_back(
        SealHello(kDealerKey, {.origin = {worker, model.value_or(head_), build},
                               .version = 1,
                               .plan_ms = topics_.plans.empty() ? 0 : topics_.plans.back().time_ms,
                               .number = ++hellos_,
                               .leaves = leaves,
                               .trouble = trouble}));
  }
  // A stranger writes into the topic again what has lain there since.
  void Replay(size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) topics_.sums.push_back(KafkaRecord(topics_.sums[i]));
  }
  void Deliver(const std::string& worker, const Body& body) {
    for (KafkaRecord& record :
         SealBody(kDealerKey, {worker, head_, kDealerBuild}, EncodeBody(body)))
      topics_.sums.push_back(std::move(record));
  }
  Body Sum(const Ranges& ranges) const { return ToyBody(topic_, head_, ranges); }
  // Has the dealer know these workers: it deals to them.
  void Join(const std::vector<std::string>& workers) {
    Next();
    for (const std::string& worker : workers) Hello(worker);
    Next();
    Pass(kFirstHellos);
    Next();
  }
  // Reads the ranges that were left to the trainer.
  void Read(const Ranges& ranges) {
    std::vector<std::optional<stream::LastRecord>> last;
    for (const SummedRange& summed : Sum(ranges).ranges) last.push_back(summed.last);
    const Status read = dealer_->HaveRead(last);
    EXPECT_TRUE(read) << read.error().message;
  }
  // The ranges of the newest plan that are this worker's; an empty name: the trainer's.
  Ranges Planned(const std::string& worker) const {
    Ranges ranges;
    for (const Slice& slice : topics_.plans.back().slices)
      if (slice.worker == worker)
        ranges.insert(ranges.end(), slice.ranges.begin(), slice.ranges.end());
    return ranges;
  }
  double Count(metrics::CounterName name, const metrics::Labels& labels = {}) {
    return registry_.AddCounter(name, labels).value();
  }

  const double check_;
  const ToyTopic topic_{3, 2, 100};
  uint64_t hellos_ = 0;
  SetClock clock_;
  metrics::Registry registry_;
  HeldTopics topics_;
  Digest head_{};
  std::unique_ptr<Dealer> dealer_ = NewDealer();

  // The trainer dies, and starts again.
  void Restart() {
    topics_.Reopen();
    dealer_ = NewDealer();
  }

 private:
  std::unique_ptr<Dealer> NewDealer() {
    auto dealer = std::make_unique<Dealer>(
        DealerOptions{.key = kDealerKey,
                      .events = [](LearnerIndex, std::string_view part) -> Result<uint64_t> {
                        if (part.ends_with("bad")) return Fail(ErrorCode::kCorruption, "bad part");
                        ToySums sums;
                        sums.Add(std::string(part));
                        return sums.count;
                      },
                      .check = check_,
                      .held_bytes_most = 4 * kChunkBytes},
        topics_, clock_, registry_);
    dealer->SetStore({{LearnerIndex(0), 0}, {LearnerIndex(1), 7}}, kDealerBuild, "");
    return dealer;
  }
};

}  // namespace tacit::workers
