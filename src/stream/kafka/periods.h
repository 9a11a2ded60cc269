#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "stream/kafka/period_cut.h"
#include "stream/kafka/period_share.h"
#include "stream/kafka/sequence.h"
#include "stream/source.h"

namespace tacit::stream {

// A topic's periods, one after the other, each cut over all partitions (CutPeriod) and then read
// partition by partition; a frame without records ends it, and names its ranges
// (RawRecords::period). A period is cut from the ends of the rounds up to the first that has
// enough, or up to a tick: so it is a function of public facts, however fast it is read. A start
// between two periods cuts the next one anew; periods before the place of a learner that is ahead
// end there.
//
// A period may be shared out. Then frames of its records come in the order in which its ranges were
// left to this process, and between them frames with sums.
class KafkaPeriods final : public KafkaSequence {
 public:
  struct Options {
    TopicPeriods periods;
    // Closes the last period with what is there once all rounds are begun.
    bool until_end = false;
    // Shares periods out; if null, all are read here.
    PeriodShare* share = nullptr;
    // Returns a period, as far as store and records tell of it, once the store has committed up to
    // these ranges' ends; nothing while it has not.
    std::function<std::optional<SharedPeriod>(std::span<const OffsetRange> before)> begin = {};
  };

  // `times` are the topic's, and must outlive it.
  KafkaPeriods(Parts parts, OffsetsByTime& times, Options options)
      : KafkaSequence(std::move(parts)),
        options_(std::move(options)),
        times_(times),
        step_(options_.periods.next) {}

  void Start(const PartitionStart& start) override;
  void DropRounds() override;
  void Clear() override;
  Result<bool> Take(MessageFetcher& fetcher, std::chrono::milliseconds timeout,
                    event::RawRecords* records, std::optional<LastRecord>* last) override;
  bool idle() const override;

 private:
  // The next period's offsets that are there.
  std::vector<OffsetRange> There() const;
  // Says who has behind it what comes next in a partition: of each learner, and of the breaker.
  std::vector<bool> Ahead(int32_t partition, uint64_t begin) const;
  // The offsets up to the next place in each partition, if somebody is ahead there. They are in
  // partitions where the same ones are ahead, so that each takes part in all of a period or in none
  // of it. Empty where nobody is.
  std::vector<OffsetRange> UpToPlaces() const;
  // The learners that learn from the period.
  std::vector<LearnerIndex> Learners() const;
  // Cuts the next period as soon as its rounds are there. Returns false if they are not yet.
  Result<bool> Cut(MessageFetcher& fetcher, Deadline deadline);
  void BeginRound(const Round& round);
  // Fills a frame with what comes next of a period that is shared out.
  Result<bool> TakeShared(MessageFetcher& fetcher, Deadline deadline, event::RawRecords* records);
  // Reads on in the ranges that were left to this process, until a frame is full, nothing comes or
  // they are read.
  Result<bool> ReadOwn(MessageFetcher& fetcher, Deadline deadline, event::RawRecords* records);
  // Fills a frame with the end of the period, which is read.
  void End(event::RawRecords* records);

  const Options options_;
  OffsetsByTime& times_;
  uint64_t step_;  // the number of the next period
  // By partition: the begin of the next period, and the end of the rounds begun.
  std::map<int32_t, uint64_t> begins_, ends_;
  bool tick_ = false;                // due at ends_
  std::vector<OffsetRange> period_;  // that is read; none is empty
  size_t reading_ = 0;               // the range of it that comes next
  // With a share: the period before, and whether this one has begun to be shared.
  std::vector<OffsetRange> before_;
  bool begun_ = false;
  std::map<int32_t, uint64_t> lost_until_;  // by partition: what lies before is lost
  std::vector<OffsetRange> own_;  // the ranges left to this process; the part that is not read
  std::vector<std::optional<LastRecord>> own_last_;
  bool own_recount_ = false;  // another process has summed them up too
};

}  // namespace tacit::stream
