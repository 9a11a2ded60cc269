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
#include "stream/step_sizes.h"

namespace tacit::stream {

// A topic's periods, one after the other, each cut over all partitions (CutPeriod) and then read
// partition by partition; a frame without records ends it, and names its ranges
// (RawRecords::period). A period is cut from the ends of the rounds up to the first that has
// enough, or up to a tick: so it is a function of public facts, however fast it is read. A start
// between two periods cuts the next one anew.
class KafkaPeriods final : public KafkaSequence {
 public:
  struct Options {
    StepSizes sizes;
    uint64_t next = 0;  // the number of the next period
    // Closes the last period with what is there once all rounds are begun.
    bool until_end = false;
  };

  // `times` are the topic's, and must outlive it.
  KafkaPeriods(Parts parts, OffsetsByTime& times, const Options& options)
      : KafkaSequence(std::move(parts)), options_(options), times_(times), step_(options.next) {}

  void Start(const PartitionStart& start) override;
  void DropRounds() override;
  void Clear() override;
  Result<bool> Take(MessageFetcher& fetcher, std::chrono::milliseconds timeout,
                    event::RawRecords* records, std::optional<LastRecord>* last) override;
  bool idle() const override;

 private:
  // The next period's offsets that are there.
  std::vector<OffsetRange> There() const;
  // Cuts the next period as soon as its rounds are there. Returns false if they are not yet.
  Result<bool> Cut(MessageFetcher& fetcher, Deadline deadline);
  void BeginRound(const Round& round);
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
};

}  // namespace tacit::stream
