#include "stream/kafka/periods.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

namespace tacit::stream {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kBetweenCommitLooks(2);

// The place in a partition; 0 if it lacks the partition.
uint64_t PlaceIn(const std::vector<OffsetRange>& place, int32_t partition) {
  const auto here = std::ranges::find(place, partition, &OffsetRange::partition);
  return here == place.end() ? 0 : here->begin;
}

template <class See>
void ForPlaces(const TopicPeriods& periods, const See& see) {
  for (const TopicPeriods::Member& member : periods.learners) see(member.place);
  see(periods.windows);
}

}  // namespace

void KafkaPeriods::Start(const PartitionStart& start) {
  reader_.Start(start);
  // Lost offsets are in the period, so that they are on the ledger.
  begins_.try_emplace(start.partition, start.offset - start.lost);
  if (start.lost > 0) lost_until_[start.partition] = start.offset;
}

// The period under way keeps its ends: it waits until they are there again.
void KafkaPeriods::DropRounds() {
  ForgetRounds();
  ends_.clear();
  tick_ = false;
}

void KafkaPeriods::Clear() {
  DropRounds();
  reader_.Clear();
  begins_.clear();
  lost_until_.clear();
  period_.clear();
  before_.clear();
  own_.clear();
  reading_ = 0;
}

std::vector<OffsetRange> KafkaPeriods::There() const {
  std::vector<OffsetRange> there;
  for (const auto& [partition, begin] : begins_) {
    const auto end = ends_.find(partition);
    there.push_back({partition, begin, end == ends_.end() ? begin : std::max(begin, end->second)});
  }
  return there;
}

std::vector<bool> KafkaPeriods::Ahead(int32_t partition, uint64_t begin) const {
  std::vector<bool> ahead;
  ForPlaces(options_.periods, [&](const std::vector<OffsetRange>& place) {
    ahead.push_back(PlaceIn(place, partition) > begin);
  });
  return ahead;
}

std::vector<OffsetRange> KafkaPeriods::UpToPlaces() const {
  std::vector<OffsetRange> up_to;
  std::vector<bool> ahead;  // in the partitions of the period
  for (const auto& [partition, begin] : begins_) {
    OffsetRange range{partition, begin, begin};
    const std::vector<bool> here = Ahead(partition, begin);
    if (std::ranges::find(here, true) != here.end() && (ahead.empty() || ahead == here)) {
      ahead = here;
      range.end = std::numeric_limits<uint64_t>::max();
      ForPlaces(options_.periods, [&](const std::vector<OffsetRange>& place) {
        if (const uint64_t at = PlaceIn(place, partition); at > begin)
          range.end = std::min(range.end, at);
      });
    }
    up_to.push_back(range);
  }
  if (ahead.empty()) up_to.clear();
  return up_to;
}

std::vector<LearnerIndex> KafkaPeriods::Learners() const {
  const OffsetRange& first = period_.front();
  const TopicPeriods& periods = options_.periods;
  std::vector<LearnerIndex> learners;
  for (const TopicPeriods::Member& member : periods.learners)
    if (PlaceIn(member.place, first.partition) <= first.begin &&
        (!periods.learns || periods.learns(member.learner)))
      learners.push_back(member.learner);
  return learners;
}

bool KafkaPeriods::idle() const {
  if (!period_.empty() || HasRound()) return false;
  return std::ranges::all_of(There(), [](const OffsetRange& range) { return range.size() == 0; });
}

Result<bool> KafkaPeriods::Take(MessageFetcher& fetcher, milliseconds timeout,
                                event::RawRecords* records, std::optional<LastRecord>* last) {
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
  for (const auto& partition : partitions())
    if (partition->has_cuts()) {
      partition->TakeCuts(records);
      return true;
    }
  if (period_.empty()) {
    TACIT_ASSIGN(const bool cut, Cut(fetcher, deadline));
    if (!cut) return false;
    begun_ = false;
  }
  if (options_.share != nullptr) return TakeShared(fetcher, deadline, records);
  for (; reading_ < period_.size(); ++reading_) {
    OffsetRange range = period_[reading_];
    // A part that is read already, or lost, is behind the partition's position.
    range.begin = std::max(range.begin, Find(range.partition)->next());
    if (range.begin >= range.end) continue;
    TACIT_RETURN_IF_ERROR(reader_.Begin(fetcher, range));
    TACIT_ASSIGN(const auto outcome, reader_.Take(fetcher, Left(deadline), records, last));
    if (outcome != KafkaRangeReader::Outcome::kDone)
      return outcome == KafkaRangeReader::Outcome::kRecords;
  }
  End(records);
  return true;
}

Result<bool> KafkaPeriods::TakeShared(MessageFetcher& fetcher, Deadline deadline,
                                      event::RawRecords* records) {
  PeriodShare& share = *options_.share;
  if (!begun_) {
    auto period = options_.begin(before_);
    if (!period) {
      std::this_thread::sleep_for(std::min(Left(deadline), kBetweenCommitLooks));
      return false;
    }
    period->step = step_;
    period->learners = Learners();
    period->ranges = period_;
    for (const OffsetRange& range : period_)
      if (const auto lost = lost_until_.find(range.partition);
          lost != lost_until_.end() && lost->second > range.begin)
        period->lost.push_back({range.partition, range.begin, std::min(range.end, lost->second)});
    share.Begin(*std::move(period));
    begun_ = true;
  }
  TACIT_ASSIGN(PeriodPiece piece, share.Next(own_.empty() ? Left(deadline) : milliseconds(0)));
  switch (piece.kind) {
    case PeriodPiece::Kind::kSums:
      records->partition = period_.front().partition;
      records->first_offset = period_.front().begin;
      records->origin = std::move(piece.from);
      records->sums = std::move(piece.sums);
      records->summed = piece.summed;
      records->recount = piece.recount;
      return true;
    case PeriodPiece::Kind::kEnd:
      for (const OffsetRange& range : period_) Find(range.partition)->LeaveUntil(range.end);
      End(records);
      return true;
    case PeriodPiece::Kind::kRanges:
      own_ = std::move(piece.ranges);
      own_recount_ = piece.recount;
      own_last_.assign(own_.size(), std::nullopt);
      break;
    case PeriodPiece::Kind::kNothing:
      break;
  }
  return ReadOwn(fetcher, deadline, records);
}

Result<bool> KafkaPeriods::ReadOwn(MessageFetcher& fetcher, Deadline deadline,
                                   event::RawRecords* records) {
  for (; !own_.empty(); own_.erase(own_.begin())) {
    OffsetRange& range = own_.front();
    std::optional<LastRecord>& last = own_last_[own_last_.size() - own_.size()];
    if (const auto lost = lost_until_.find(range.partition); lost != lost_until_.end())
      range.begin = std::max(range.begin, lost->second);
    if (range.begin >= range.end) continue;
    TACIT_RETURN_IF_ERROR(reader_.Begin(fetcher, range));
    TACIT_ASSIGN(const auto outcome, reader_.Take(fetcher, Left(deadline), records, &last));
    if (outcome == KafkaRangeReader::Outcome::kDone) continue;
    if (outcome == KafkaRangeReader::Outcome::kNothing) return false;
    range.begin = records->end_offset();
    records->recount = own_recount_;
    return true;
  }
  if (!own_last_.empty()) TACIT_RETURN_IF_ERROR(options_.share->HaveRead(own_last_));
  own_last_.clear();
  return false;
}

void KafkaPeriods::End(event::RawRecords* records) {
  for (const OffsetRange& range : period_) begins_[range.partition] = range.end;
  before_ = period_;
  const OffsetRange& first = period_.front();
  records->partition = first.partition;
  records->first_offset = first.end;
  records->period = std::exchange(period_, {});
  reading_ = 0;
  ++step_;
}

void KafkaPeriods::BeginRound(const Round& round) {
  for (const PartitionEnd& moved : round.moved) ends_[moved.partition] = moved.end;
  tick_ |= round.tick;
}

Result<bool> KafkaPeriods::Cut(MessageFetcher& fetcher, Deadline deadline) {
  while (true) {
    std::vector<OffsetRange> there = UpToPlaces();
    const bool behind = !there.empty();
    if (!behind) there = There();
    const bool closes = behind || tick_ || (options_.until_end && !HasRound());
    auto cut = CutPeriod(there, options_.periods.sizes.Of(step_), closes, times_);
    if (!cut && cut.error().code != ErrorCode::kUnavailable) return Fail(std::move(cut.error()));
    if (!cut) {
      std::this_thread::sleep_for(Left(deadline));
      return false;
    }
    if (*cut) {
      if (**cut == there && !behind) tick_ = false;
      period_ = std::move(**cut);
      std::erase_if(period_, [](const OffsetRange& range) { return range.size() == 0; });
      if (!period_.empty()) return true;
    }
    TACIT_ASSIGN(const std::optional<Round> round, NextRound(fetcher, deadline));
    if (!round) return false;
    BeginRound(*round);
  }
}

}  // namespace tacit::stream
