#include "workers/dealer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/bytes.h"
#include "base/files/log.h"
#include "base/text.h"
#include "metrics/families.h"

namespace tacit::workers {
namespace {

using std::chrono::milliseconds;
using stream::PeriodPiece;

// While the trainer reads, it looks for sums so often.
constexpr milliseconds kBetweenLooks(20);
constexpr size_t kToldMost = 100;  // reasons of refusals, in a period: strangers write them too

// The refusals of a message, as metrics name them.
constexpr std::pair<Outcome, const char*> kRefusals[] = {{Outcome::kOtherBuild, "build"},
                                                         {Outcome::kUnsealed, "seal"},
                                                         {Outcome::kOtherTopic, "topic"},
                                                         {Outcome::kRefused, "period"},
                                                         {Outcome::kNoRoom, "memory"}};

}  // namespace

Dealer::Dealer(const DealerOptions& options, TrainerTopics& topics, const Clock& clock,
               metrics::Registry& registry)
    : options_(options),
      topics_(topics),
      clock_(clock),
      collector_(options.key, options.held_bytes_most),
      board_(options.patience),
      plan_ms_(clock.UnixMillis()),
      period_from_(plan_ms_ + 1),
      fresh_from_(plan_ms_ + 1),
      workers_(registry.AddGauge("tacit_workers")),
      period_seconds_(registry.AddGauge("tacit_period_seconds")),
      gap_seconds_(registry.AddGauge("tacit_period_gap_seconds")),
      by_trainer_(registry.AddCounter("tacit_slices_total", {{"by", "trainer"}})),
      by_workers_(registry.AddCounter("tacit_slices_total", {{"by", "workers"}})),
      checked_(registry.AddCounter("tacit_slices_checked_total")),
      repeated_(registry.AddCounter("tacit_slices_repeated_total")) {
  workers_.Set(NAN);  // nobody is looked for yet
  for (const auto& [outcome, why] : kRefusals)
    refused_[outcome] = registry.AddCounter("tacit_slices_refused_total", {{"why", why}});
}

void Dealer::Begin(stream::SharedPeriod period) {
  // All that was shown is of periods that are committed, or of no period of this store.
  Note(kDeletion, topics_.DeleteShown());
  period_ = std::move(period);
  head_before_ = std::exchange(head_, {});
  FromHex(period_.store.head, head_);
  if (!ended_) head_before_ = head_;
  learners_.clear();
  for (const LearnerIndex learner : period_.learners) learners_[keys_.at(learner)] = learner;
  collector_.Begin({.head = head_,
                    .build = build_,
                    .ranges = period_.ranges,
                    .before = period_.before,
                    .check = [this](const Body& body) { return Check(body); }});
  fresh_from_ = std::exchange(period_from_, plan_ms_ + 1);
  std::erase_if(heard_, [&](const auto& one) { return one.second.plan_ms < fresh_from_; });
  dealt_ = false;
  sums_.clear();
  checks_.clear();
  own_.clear();
  checking_ = false;
  if (!std::exchange(no_room_, false)) Note(kMemory, {});
  told_.clear();
  begun_ = clock_.Now();
  if (ended_) gap_seconds_.Set(Seconds(begun_ - *ended_));
}

Result<PeriodPiece> Dealer::Next(milliseconds timeout) {
  TACIT_RETURN_IF_ERROR(Follow(milliseconds(0)));
  PeriodPiece piece = Look();
  if (piece.kind != PeriodPiece::Kind::kNothing || timeout <= milliseconds(0)) return piece;
  TACIT_RETURN_IF_ERROR(Follow(timeout));
  return Look();
}

Status Dealer::Follow(milliseconds timeout) {
  if (period_.store.sequence == 0) return {};
  const auto now = clock_.Now();
  if (timeout <= milliseconds(0) && !own_.empty() && now - followed_ < kBetweenLooks) return {};
  followed_ = now;
  Status taken;
  const Status read = topics_.ReadSums(timeout, [&](std::string_view key, std::string_view value) {
    if (Status one = Take(key, value); !one && taken) taken = std::move(one);
  });
  Note(kSums, read);
  return taken;
}

Status Dealer::Take(std::string_view key, std::string_view value) {
  const auto record = ReadSums(key, value);
  if (!record) {
    Refuse(Outcome::kRefused, record.error().message);
    return {};
  }
  if (record->place) return TakeChunk(*record);
  TakeHello(*record);
  return {};
}

void Dealer::TakeHello(const SealedRecord& record) {
  auto hello = OpenHello(options_.key, record);
  if (!hello)
    return Refuse(Outcome::kUnsealed,
                  fmt::format("a hello of '{}' {}", record.origin.worker, hello.error().message));
  if (!IsFresh(*hello)) return;
  if (hello->origin.build != build_)
    return Refuse(Outcome::kOtherBuild, fmt::format("worker '{}' has another program or "
                                                    "configuration",
                                                    hello->origin.worker));
  hello->leaves |= hello->origin.head != head_ && hello->origin.head != head_before_;
  board_.Heard(*hello, clock_.Now());
}

bool Dealer::IsFresh(const Hello& hello) {
  if (hello.plan_ms > plan_ms_) {
    // Workers have read a plan of a clock that is ahead of this one, and take no plan below it.
    plan_ms_ = hello.plan_ms;
    fresh_from_ = period_from_ = plan_ms_ + 1;
    next_plan_ = {};
    return false;
  }
  if (hello.plan_ms < fresh_from_) return false;
  LastHello& last = heard_[hello.origin.worker];
  if (hello.number <= last.number) return false;
  last = {hello.plan_ms, hello.number};
  return true;
}

Result<std::vector<event::SummedPart>> Dealer::PartsOf(std::string_view sums) const {
  TACIT_ASSIGN(std::vector<LearnerPart> parts, DecodeParts(sums));
  const auto same = [](const LearnerPart& part, const auto& due) { return part.key == due.first; };
  if (!std::ranges::equal(parts, learners_, same))
    return Fail(ErrorCode::kCorruption, "they are not those of the plan's learners alone");
  std::vector<event::SummedPart> known;
  for (LearnerPart& part : parts) known.push_back({learners_.at(part.key), std::move(part.bytes)});
  return known;
}

Status Dealer::Check(const Body& body) const {
  TACIT_ASSIGN(const std::vector<event::SummedPart> parts, PartsOf(body.sums));
  if (!options_.events) return {};
  uint64_t others = 0;
  for (const SummedRange& one : body.ranges) others += one.empty;
  const event::SummedRecords records = RecordsOf(body);
  others += records.all_dead() + records.opted_out;
  const uint64_t offsets = CountOffsets(RangesOf(body));
  for (const event::SummedPart& part : parts) {
    TACIT_ASSIGN(const uint64_t events, options_.events(part.learner, part.bytes));
    if (events + others == offsets) continue;
    return Fail(ErrorCode::kCorruption,
                fmt::format("they have {} events, and with records that are none {} of {} offsets",
                            events, events + others, offsets));
  }
  return {};
}

Status Dealer::TakeChunk(const SealedRecord& record) {
  Taken taken = collector_.Take(record);
  for (const std::string& worker : collector_.forgotten()) {
    Refuse(Outcome::kNoRoom,
           fmt::format("a body of worker '{}' was forgotten for one of worker '{}': at most {} "
                       "bytes are held of those that are not whole",
                       worker, record.origin.worker, options_.held_bytes_most));
    GiveBack(worker);
  }
  switch (taken.outcome) {
    case Outcome::kPart:
    case Outcome::kOldHead:
      return {};
    case Outcome::kOtherRecords:
      Tell(taken.why);
      [[fallthrough]];
    case Outcome::kCovered:
      repeated_.Add();
      return {};
    case Outcome::kCounted:
      by_workers_.Add();
      board_.Covered(record.origin.worker, RangesOf(taken.body), clock_.Now());
      (IsChecked(record.place->body) ? checks_ : sums_)
          .push_back({.kind = PeriodPiece::Kind::kSums,
                      .ranges = RangesOf(taken.body),
                      .sums = PartsOf(taken.body.sums).value(),
                      .from = record.origin.worker,
                      .summed = RecordsOf(taken.body)});
      return {};
    case Outcome::kNoRoom:
      GiveBack(record.origin.worker);
      [[fallthrough]];
    case Outcome::kOtherBuild:
    case Outcome::kUnsealed:
    case Outcome::kRefused:
    case Outcome::kOtherTopic:
      Refuse(taken.outcome, taken.why);
      return {};
    case Outcome::kDiffers:
      break;
  }
  return Fail(ErrorCode::kRefused, std::move(taken.why));
}

void Dealer::GiveBack(const std::string& worker) {
  board_.GiveBack(worker, clock_.Now());
  next_plan_ = {};
}

void Dealer::Refuse(Outcome outcome, const std::string& why) {
  refused_.at(outcome).Add();
  if (outcome == Outcome::kNoRoom && !std::exchange(no_room_, true))
    Note(kMemory, Fail(ErrorCode::kUnavailable, why));
  Tell(why);
}

void Dealer::Tell(const std::string& why) {
  if (told_.size() < kToldMost && told_.insert(why).second)
    spdlog::warn("sums of workers: {}", why);
}

PeriodPiece Dealer::Look() {
  const auto now = clock_.Now();
  if (!sums_.empty()) {
    PeriodPiece piece = std::move(sums_.front());
    sums_.pop_front();
    return piece;
  }
  if (collector_.complete() && !checks_.empty()) return LeaveOwn();
  if (collector_.complete()) {
    ended_ = now;
    period_seconds_.Set(Seconds(now - begun_));
    return {.kind = PeriodPiece::Kind::kEnd};
  }
  if (!dealt_ && !MayDeal()) return {};
  if (!dealt_)
    Deal();
  else if (board_.Look(now) || now >= next_plan_)
    Announce();
  TakeBack();
  NoteWorkers();
  if (period_.store.sequence > 0) workers_.Set(static_cast<double>(board_.Workers().size()));
  return LeaveOwn();
}

bool Dealer::MayDeal() {
  if (joined_ || period_.store.sequence == 0) return true;
  const auto now = clock_.Now();
  if (!waits_since_ || now >= next_plan_) Announce();
  // Hellos are waited for once reading and writing have come so far, have failed, or take too long.
  if (!waits_since_) reads_since_ = now;
  Note(kPlan, topics_.plan_status());
  const bool comes_so_far = topics_.caught_up() && topics_.plan_written();
  const bool waits = !comes_so_far && trouble().empty() && now - reads_since_ < kCatchUpMost;
  if (!waits_since_ || waits) waits_since_ = now;
  joined_ = now - *waits_since_ >= kFirstHellos;
  return joined_;
}

void Dealer::Deal() {
  dealt_ = true;
  const Ranges gaps = collector_.Gaps(), there = Without(gaps, period_.lost);
  board_.Deal(there, clock_.Now(), /*own=*/Without(gaps, there));
  Announce();
}

void Dealer::Announce() {
  next_plan_ = clock_.Now() + kBetweenPlans;
  if (period_.store.sequence == 0) return;
  plan_ms_ = std::max(plan_ms_ + 1, clock_.UnixMillis());
  Plan plan{.head = head_,
            .build = build_,
            .version = period_.store.sequence,
            .time_ms = plan_ms_,
            .learners = {},
            .slices = board_.Announced()};
  for (const auto& [key, learner] : learners_)
    plan.learners.push_back({.key = key, .step = period_.step});
  topics_.WritePlan(EncodePlan(options_.key, plan));
}

void Dealer::TakeBack() {
  const Status written = topics_.plan_status();
  Note(kPlan, written);
  const std::vector<Slice> slices = board_.Announced();
  if (written || std::ranges::all_of(slices, &std::string::empty, &Slice::worker)) return;
  board_.ForgetWorkers();
  board_.Deal(Without(collector_.Gaps(), own_), clock_.Now());
  Announce();
}

void Dealer::NoteWorkers() {
  std::string names;
  for (const auto& [name, slices] : board_.Late()) {
    const std::string& says = board_.Workers().at(name).hello.trouble;
    names += fmt::format("{}'{}' (late slices: {}{}{})", names.empty() ? "" : ", ", name, slices,
                         says.empty() ? "" : "; it says: ", Printable(says));
  }
  Note(kLate, names.empty() ? Status() : Fail(ErrorCode::kUnavailable, names));
  Status deadly;
  for (const OpenSlice& slice : board_.open())
    if (slice.holder == OpenSlice::Holder::kNobody && slice.ends >= kEndsMost)
      deadly = Fail(ErrorCode::kUnavailable,
                    fmt::format("it begins at offset {} of partition {}", slice.ranges[0].begin,
                                slice.ranges[0].partition));
  Note(kDeadly, deadly);
}

PeriodPiece Dealer::LeaveOwn() {
  if (!own_.empty()) return {};
  const std::vector<Slice> slices = board_.Announced();
  const auto own = std::ranges::find(slices, "", &Slice::worker);
  checking_ = own == slices.end() && !checks_.empty();
  if (own != slices.end())
    collector_.Claim(own_ = own->ranges);
  else if (checking_)
    own_ = checks_.front().ranges;
  else
    return {};
  return {.kind = PeriodPiece::Kind::kRanges, .ranges = own_, .recount = checking_};
}

bool Dealer::IsChecked(const BodyName& body) const {
  ByteWriter text;
  text.PutString("tacit checked sums").PutArray(std::span<const uint8_t>(body));
  const Digest drawn = Hmac(secret_, text.bytes());
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(number); ++i) number = number << 8 | drawn[i];
  return static_cast<double>(number) * 0x1p-64 < options_.check;
}

Status Dealer::HaveRead(const std::vector<std::optional<stream::LastRecord>>& last) {
  std::vector<SummedRange> summed;
  for (size_t i = 0; i < own_.size(); ++i) summed.push_back({.range = own_[i], .last = last[i]});
  const Ranges ranges = std::exchange(own_, {});
  if (std::exchange(checking_, false)) {
    checked_.Add();
    sums_.push_back(std::move(checks_.front()));
    sums_.back().recount = true;
    checks_.pop_front();
    return {};
  }
  const Taken taken = collector_.TakeOwn(summed);
  if (taken.outcome != Outcome::kCounted) return Fail(ErrorCode::kRefused, taken.why);
  by_trainer_.Add();
  board_.Covered("", ranges, clock_.Now());
  return {};
}

void Dealer::Note(Trouble trouble, const Status& status) {
  static constexpr const char* kDoing[kTroubles] = {
      "sums of workers are not read, and this trainer sums alone",
      "plans are not written, and this trainer sums alone",
      "sums that are committed are not deleted, and lie there until retention takes them",
      "workers have delivered nothing since a slice came late, and get none, or a small one, for "
      "growing pauses",
      "a slice has ended three workers: learning waits until a worker has summed it, and the "
      "trainer does not try it",
      "sums of workers have no room here, and this trainer sums their slices (shorter periods, or "
      "fewer workers, need less room)"};
  std::string text = status ? "" : fmt::format("{}: {}", kDoing[trouble], status.error().message);
  {
    const MutexLock lock(mutex_);
    if (troubles_[trouble] == text) return;
    troubles_[trouble].swap(text);
  }
  if (!status)
    spdlog::warn("{}: {}", kDoing[trouble], status.error().message);
  else
    spdlog::info("workers: what was in trouble goes on ({})", text);
}

std::string Dealer::trouble() const {
  const MutexLock lock(mutex_);
  std::string all;
  for (const std::string& one : troubles_)
    if (!one.empty()) all += (all.empty() ? "" : "; ") + one;
  return all;
}

}  // namespace tacit::workers
