#include "wiring/restore/gap_users.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "metrics/registry.h"
#include "train/learner/position.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/source.h"

namespace tacit::wiring {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll(200);

bool NeedsUsers(const FoundGap& gap) { return gap.gap.users == store::LearnerGap::Users::kAll; }

// Counts the users of one gap's records.
class GapCounter {
 public:
  explicit GapCounter(FoundGap* gap) : gap_(gap) {
    for (const OffsetRange& range : gap->unaccounted) missing_ += range.size();
  }

  void Take(const event::RawRecords& records, const event::Batch& batch, const SipHash& hash) {
    for (const OffsetRange& range : gap_->unaccounted) {
      if (range.partition != records.partition) continue;
      const uint64_t begin = std::max(range.begin, records.first_offset);
      const uint64_t end = std::min(range.end, records.end_offset());
      if (begin >= end) continue;
      missing_ -= std::min(missing_, end - begin);
      CountUsers(begin, end, batch, hash);
    }
  }
  uint64_t missing() const { return missing_; }

  void Finish() {
    gap_->gap.users = store::LearnerGap::Users::kCounted;
    for (const auto& [user, records] : records_of_) {
      const uint64_t most = std::numeric_limits<uint32_t>::max();
      const uint64_t steps =
          records > most / gap_->steps_per_record ? most : records * gap_->steps_per_record;
      gap_->gap.counted.push_back({user, static_cast<uint32_t>(steps)});
    }
    std::ranges::sort(gap_->gap.counted, {}, &store::UserSteps::user);
  }

 private:
  void CountUsers(uint64_t begin, uint64_t end, const event::Batch& batch, const SipHash& hash) {
    if (batch.user.empty()) return;
    for (size_t i = 0; i < batch.size(); ++i) {
      if (batch.offset[i] < begin || batch.offset[i] >= end || batch.user[i].empty()) continue;
      ++records_of_[hash(batch.user[i])];
    }
  }

  FoundGap* const gap_;
  uint64_t missing_ = 0;  // offsets that were not delivered yet
  std::unordered_map<Hash128, uint64_t> records_of_;
};

// The first offset of each partition that any gap needs. Others are read on from where their
// learner came to, because a partition that was paused would keep its turn, and hold up the rest.
Result<std::vector<stream::PartitionOffset>> FirstOffsets(std::span<const FoundGap> gaps) {
  std::map<int32_t, uint64_t> first;
  for (const FoundGap& gap : gaps) {
    if (!NeedsUsers(gap)) continue;
    for (const OffsetRange& range : gap.unaccounted) {
      const auto [place, added] = first.try_emplace(range.partition, range.begin);
      if (!added) place->second = std::min(place->second, range.begin);
    }
  }
  for (const FoundGap& gap : gaps) {
    if (!NeedsUsers(gap)) continue;
    TACIT_ASSIGN(const stream::Position position, train::DecodePosition(gap.gap.position));
    for (const OffsetRange& next : position.next) first.try_emplace(next.partition, next.begin);
  }
  std::vector<stream::PartitionOffset> offsets;
  for (const auto& [partition, offset] : first)
    offsets.push_back({.partition = partition, .offset = offset});
  return offsets;
}

// A user whom the records do not name as they are read now is not counted, and may have been learnt
// from. Only the configuration decides this, and it is public.
Status CheckReading(const config::Config& config, const FoundGap& gap) {
  TACIT_ASSIGN(const stream::Position position, train::DecodePosition(gap.gap.position));
  if (position.reading == ReadingOf(config) && position.reading_since <= gap.counted_steps)
    return {};
  return Fail(ErrorCode::kNotFound,
              "these records were read under another source.format, source.json, source.csv, "
              "source.framing, source.max_record_bytes or schema, and may name other users now; "
              "restored with the settings of then, and changed afterwards, their users are "
              "counted");
}

uint64_t MissingOf(const std::vector<GapCounter>& counters) {
  uint64_t missing = 0;
  for (const GapCounter& counter : counters) missing += counter.missing();
  return missing;
}

// Reads until nothing is missing.
Status ReadAll(const Assembly& assembly, const config::Source& settings, stream::Source& source,
               const SipHash& hash, milliseconds patience, std::vector<GapCounter>* counters) {
  const auto codec = MakeCodec(settings, *assembly.transform, assembly.items);
  event::RawRecords records;
  event::Batch batch;
  std::vector<event::DeadLetter> dead;
  for (milliseconds idle(0); MissingOf(*counters) > 0;) {
    TACIT_ASSIGN(const stream::PollOutcome outcome, source.Poll(kPoll, &records));
    if (outcome == stream::PollOutcome::kNothing && (idle += kPoll) < patience) continue;
    if (outcome != stream::PollOutcome::kRecords) break;
    idle = milliseconds(0);
    assembly.transform->StartBatch(&batch);
    dead.clear();
    codec->Decode(records, &batch, &dead);
    for (GapCounter& counter : *counters) counter.Take(records, batch, hash);
  }
  if (const uint64_t missing = MissingOf(*counters); missing > 0)
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} of the records that were learnt from are not there", missing));
  return {};
}

// Opens the source as it lies, if it is the one that was read.
Result<std::unique_ptr<stream::Source>> OpenAgain(const config::Source& settings,
                                                  const LiveParts& live,
                                                  const std::string& source_identity) {
  TACIT_ASSIGN(auto source, OpenSource(settings, &live));
  TACIT_RETURN_IF_ERROR(source->VerifyIdentity(source_identity));
  return source;
}

}  // namespace

Status CheckReach(const Assembly& assembly, const std::string& source_identity,
                  std::span<const FoundGap> gaps) {
  const SystemClock clock;
  metrics::Registry registry;
  const LiveParts live{
      .kafka = assembly.config.kafka, .until_end = true, .clock = clock, .registry = registry};
  config::Source settings = assembly.config.source;
  settings.registry = {};
  // Records that are gone by now were there.
  settings.on_period_lost = config::Source::OnPeriodLost::kClose;
  const auto source = OpenAgain(settings, live, source_identity);
  if (!source) return {};
  for (const FoundGap& gap : gaps) {
    const auto position = train::DecodePosition(gap.gap.position);
    if (!position || position->next.empty()) continue;  // inspections have no place in a stream
    std::vector<stream::PartitionOffset> offsets;
    for (const OffsetRange& next : position->next)
      offsets.push_back({.partition = next.partition, .offset = std::max(next.begin, next.end)});
    const Status reached = (*source)->Seek(offsets);
    if (reached || (reached.error().code != ErrorCode::kRefused &&
                    reached.error().code != ErrorCode::kInvalidArgument))
      continue;
    return Fail(ErrorCode::kRefused,
                fmt::format("learner '{}': position.next: {}. Put the records back first; where "
                            "they are gone for good, tacit checkpoint restore --skip-records "
                            "charges every user",
                            gap.gap.charges.front().learner, reached.error().message));
  }
  return {};
}

Status CountUsersAgain(const Assembly& assembly, const std::string& source_identity,
                       const SipHash::Key& key, std::span<FoundGap> gaps, milliseconds patience) {
  std::vector<GapCounter> counters;
  for (FoundGap& gap : gaps) {
    if (!NeedsUsers(gap)) continue;
    if (gap.unaccounted.empty())
      return Fail(ErrorCode::kNotFound, "which records were learnt from cannot be told");
    TACIT_RETURN_IF_ERROR(CheckReading(assembly.config, gap));
    counters.emplace_back(&gap);
  }
  if (counters.empty()) return {};
  const SystemClock clock;
  metrics::Registry registry;
  const LiveParts live{
      .kafka = assembly.config.kafka, .until_end = true, .clock = clock, .registry = registry};
  config::Source settings = assembly.config.source;
  // Nothing tells which schemas were known when these records were learnt from. Records of every
  // schema are decoded: so none that was learnt from is passed over, and none with a forged id has
  // everybody charged.
  settings.registry = {};
  // They were learnt from under the configuration of then, which may have refused less: it knew
  // nothing of a feature that the schema got since.
  settings.missing = config::Source::Missing::kDefault;
  settings.ahead_max_hours = std::numeric_limits<uint32_t>::max();
  TACIT_ASSIGN(const auto source, OpenAgain(settings, live, source_identity));
  TACIT_ASSIGN(const std::vector<stream::PartitionOffset> first, FirstOffsets(gaps));
  TACIT_RETURN_IF_ERROR(source->Seek(first));
  TACIT_RETURN_IF_ERROR(ReadAll(assembly, settings, *source, SipHash(key), patience, &counters));
  for (GapCounter& counter : counters) counter.Finish();
  return {};
}

}  // namespace tacit::wiring
