#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "stream/kafka/period_cut.h"
#include "stream/kafka/sequence.h"
#include "stream/source.h"

namespace tacit::stream {

// A topic's periods, one after the other, each cut over all partitions (CutPeriod) and then read
// partition by partition; a frame without records ends it, and names its ranges
// (RawRecords::period). A period is cut from the ends of the rounds up to the first that has
// enough, or up to a tick: so it is a function of public facts, however fast it is read. A start
// between two periods cuts the next one anew; periods before the place of a learner that is ahead
// end there.
class KafkaPeriods final : public KafkaSequence {
 public:
  // `times` are the topic's, and must outlive it. With `until_end` the last period is closed with
  // what is there once all rounds are begun.
  KafkaPeriods(Parts parts, OffsetsByTime& times, TopicPeriods periods, bool until_end)
      : KafkaSequence(std::move(parts)),
        times_(times),
        sizes_(periods.sizes),
        places_(std::move(periods.places)),
        until_end_(until_end),
        step_(periods.next) {}

  void Start(const PartitionStart& start) override;
  void DropRounds() override;
  void Clear() override;
  Result<bool> Take(MessageFetcher& fetcher, std::chrono::milliseconds timeout,
                    event::RawRecords* records, std::optional<LastRecord>* last) override;
  bool idle() const override;

 private:
  // The next period's offsets that are there.
  std::vector<OffsetRange> There() const;
  // The offsets up to the next place of a learner in each partition; empty where none is ahead.
  std::vector<OffsetRange> UpToPlaces() const;
  // Cuts the next period as soon as its rounds are there. Returns false if they are not yet.
  Result<bool> Cut(MessageFetcher& fetcher, Deadline deadline);
  void BeginRound(const Round& round);
  // Fills a frame with the end of the period, which is read.
  void End(event::RawRecords* records);

  OffsetsByTime& times_;
  const StepSizes sizes_;
  const std::vector<OffsetRange> places_;
  const bool until_end_;
  uint64_t step_;  // the number of the next period
  // By partition: the begin of the next period, and the end of the rounds begun.
  std::map<int32_t, uint64_t> begins_, ends_;
  bool tick_ = false;                // due at ends_
  std::vector<OffsetRange> period_;  // that is read; none is empty
  size_t reading_ = 0;               // the range of it that comes next
};

}  // namespace tacit::stream
