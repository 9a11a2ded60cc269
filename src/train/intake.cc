#include "train/intake.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/threads/named_thread.h"

namespace tacit::train {
namespace {

constexpr std::chrono::milliseconds kPoll(100);

// Returns nothing if the learner has taken no step of the partition and so starts at its beginning.
std::optional<uint64_t> NextOffset(const stream::Position& position, int32_t partition) {
  for (const OffsetRange& range : position.next)
    if (range.partition == partition) return range.begin;
  return std::nullopt;
}

// The end of the partition's period that the learner has begun; 0: it has begun none.
uint64_t BegunUntil(const stream::Position& position, int32_t partition) {
  for (const OffsetRange& range : position.next)
    if (range.partition == partition && range.end > range.begin && position.period_step > 0)
      return range.end;
  return 0;
}

// Returns the frame and the examples of a run of records from offset `from` on.
event::RawRecords RunFrom(const event::RawRecords& records, const event::Batch& examples,
                          uint64_t from, uint64_t to, event::Batch* part) {
  event::RawRecords frame;
  frame.partition = records.partition;
  frame.first_offset = from;
  frame.end.resize(to - from);
  // A cut between two parts is the first one's.
  for (const event::PublicCut& cut : records.cuts)
    if ((cut.offset > from || from == records.first_offset) && cut.offset <= to)
      frame.cuts.push_back(cut);
  if (to == records.end_offset()) frame.period = records.period;
  const auto begin = std::ranges::lower_bound(examples.offset, from);
  const auto end = std::ranges::lower_bound(examples.offset, to);
  *part = EmptyLike(examples);
  part->AppendRange(examples, static_cast<size_t>(begin - examples.offset.begin()),
                    static_cast<size_t>(end - examples.offset.begin()));
  return frame;
}

}  // namespace

// Carries one learner from its stored position through the passes: drops records before the
// position, cuts the rest into steps and continues their numbering.
class Intake::Cutter {
 public:
  Cutter(const IntakeOptions::Learner& learner, bool any_order, BoundedQueue<LearnerStep>& steps)
      : learner_(learner), any_order_(any_order), steps_(steps), position_(learner.start) {
    StartPass();
  }

  bool Cut(const Piece& piece, const event::Batch& examples) {
    if (retired_) return true;
    const event::RawRecords& records = piece.records;
    if (any_order_) {
      if (IsOfPast(records)) return true;
      identity_ = &piece.source_identity;
      waiting_ = records.period.empty() ? waiting_ + records.size() : 0;
      return participation_->Cut(records.sums.empty() ? records : OwnSums(records), examples,
                                 Emitter());
    }
    TACIT_CHECK(records.sums.empty(), "sums come in any order");
    uint64_t& next = taken_[records.partition];
    const uint64_t end = records.end_offset();
    // A period may be behind the learner in the partition that its end comes with, and not in all.
    if (pass_ < position_.pass || (end < next && records.period.empty())) return true;
    identity_ = &piece.source_identity;
    const uint64_t from = std::min(next, end);
    next = std::max(next, end);
    begun_.try_emplace(records.partition, std::max(from, records.first_offset));
    const bool goes_on = CutFrom(from, records, examples);
    CountWaiting();
    return goes_on;
  }

  uint64_t waiting() const { return retired_ ? 0 : waiting_.load(); }

  bool EndPass(const std::string& identity) {
    if (retired_) return true;
    if (pass_ == position_.pass) {
      identity_ = &identity;
      if (!participation_->Finish(Emitter())) return false;
    }
    ++pass_;
    if (pass_ > position_.pass) {
      position_.pass = pass_;
      position_.period_start.clear();
      position_.next.clear();
      StartPass();
    }
    return true;
  }

  LearnerIndex learner() const { return learner_.index; }
  void Retire() { retired_ = true; }
  // The participation's failure, if the intake was not stopped.
  Status status() const { return participation_->status(); }

 private:
  // Tells whether records are of a period that the learner has behind it: none goes over its place.
  // The end of one is told of in any case.
  bool IsOfPast(const event::RawRecords& records) const {
    const auto next = NextOffset(position_, records.partition);
    return records.period.empty() && next && records.first_offset < *next;
  }

  // A part that is missing is empty, and so none: learning stops there.
  event::RawRecords OwnSums(const event::RawRecords& records) const {
    event::RawRecords own;
    own.origin = records.origin;
    own.recount = records.recount;
    const auto part = std::ranges::find(records.sums, learner_.index, &event::SummedPart::learner);
    own.sums.push_back({learner_.index, part == records.sums.end() ? "" : part->bytes});
    return own;
  }

  bool CutFrom(uint64_t from, const event::RawRecords& records, const event::Batch& examples) {
    if (from <= records.first_offset) return participation_->Cut(records, examples, Emitter());
    event::Batch rest;
    // The run may begin earlier because another learner is further back in the stream.
    const event::RawRecords frame = RunFrom(records, examples, from, records.end_offset(), &rest);
    return participation_->Cut(frame, rest, Emitter());
  }

  void CountWaiting() {
    uint64_t waiting = 0;
    for (const auto& [partition, begun] : begun_) {
      uint64_t from = begun;
      for (const OffsetRange& next : position_.next)
        if (next.partition == partition) from = std::max({from, next.begin, next.end});
      waiting += std::max(taken_[partition], from) - from;
    }
    waiting_ = waiting;
  }

  void StartPass() {
    begun_.clear();
    waiting_ = 0;
    taken_.clear();
    for (const OffsetRange& next : position_.next) taken_[next.partition] = next.begin;
    participation_ = learner_.participation(position_);
  }

  stream::Participation::Emit Emitter() {
    return [this](stream::StepBatch&& step) {
      position_ = step.after;
      step.number = stream::NewStepNumber();
      return steps_.Push({learner_.index, std::move(step), *identity_});
    };
  }

  const IntakeOptions::Learner learner_;
  const bool any_order_;
  BoundedQueue<LearnerStep>& steps_;
  uint64_t pass_ = 0;                  // pass of the records that are cut now
  stream::Position position_;          // after the last emitted step
  std::map<int32_t, uint64_t> taken_;  // per partition: the offset after the last record taken
  std::map<int32_t, uint64_t> begun_;  // per partition of this pass: the first offset taken
  std::atomic<uint64_t> waiting_ = 0;
  const std::string* identity_ = nullptr;
  std::unique_ptr<stream::Participation> participation_;
  std::atomic<bool> retired_ = false;
};

Intake::Intake(IntakeOptions options, stream::Source& source, const event::Codec& codec,
               const event::FeatureTransform& transform, event::DeadLetterSink& dead_letters)
    : options_(std::move(options)),
      source_(source),
      codec_(codec),
      transform_(transform),
      dead_letters_(dead_letters),
      pieces_(options_.queued_records_max),
      steps_(options_.queued_steps_max),
      filter_(options_.filter) {}

Intake::~Intake() { Stop(); }

Status Intake::Start() {
  const size_t spent = std::erase_if(options_.learners, [](const auto& one) { return one.spent; });
  if (spent > 0 && options_.learners.empty()) {
    steps_.Close();
    // The source looks whether it is the one that was read, and no record has to be there.
    return source_.Seek(FirstPositions(0));
  }
  for (const IntakeOptions::Learner& learner : options_.learners)
    cutters_.push_back(std::make_unique<Cutter>(learner, options_.parts_in_any_order, steps_));
  first_pass_ = std::numeric_limits<uint64_t>::max();
  for (const IntakeOptions::Learner& learner : options_.learners)
    first_pass_ = std::min(first_pass_, learner.start.pass);
  starts_ = FirstPositions(first_pass_);
  std::vector<stream::PartitionOffset> read_from = starts_;
  if (options_.windows && first_pass_ == 0) {
    if (options_.windows->offsets == 0)
      periods_.emplace(options_.windows->next);
    else
      ReadOpenWindows(&read_from);
  }
  TACIT_RETURN_IF_ERROR(source_.Seek(read_from));
  poller_ = NamedThread("tacit-poll", [this] { Poll(); });
  decoding_ = options_.decode_threads;
  for (uint32_t i = 0; i < options_.decode_threads; ++i)
    decoders_.push_back(NamedThread("tacit-decode", [this] { Decode(); }));
  return {};
}

void Intake::Retire(LearnerIndex learner) {
  for (const auto& cutter : cutters_)
    if (cutter->learner() == learner) cutter->Retire();
}

uint64_t Intake::offsets_waiting(LearnerIndex learner) const {
  for (const auto& cutter : cutters_)
    if (cutter->learner() == learner) return cutter->waiting();
  return 0;
}

void Intake::Stop() {
  stopping_ = true;
  pieces_.Close();
  steps_.Close();
  turns_.Close();
  // Once all are decoded none waits, and who has the sink may go on with it.
  if (decoding_ > 0) dead_letters_.Interrupt();
  if (poller_.joinable()) poller_.join();
  for (std::thread& decoder : decoders_)
    if (decoder.joinable()) decoder.join();
}

Status Intake::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

void Intake::Fail(Error error) {
  const MutexLock lock(mutex_);
  if (status_) status_ = tacit::Fail(std::move(error));
}

// Returns where reading must begin so that no learner misses a record: the least of their
// positions. An unreachable source lists no partitions yet, but the positions do.
std::vector<stream::PartitionOffset> Intake::FirstPositions(uint64_t pass) const {
  std::set<int32_t> partitions;
  for (const int32_t partition : source_.partitions()) partitions.insert(partition);
  for (const IntakeOptions::Learner& learner : options_.learners)
    for (const OffsetRange& next : learner.start.next) partitions.insert(next.partition);
  std::vector<stream::PartitionOffset> positions;
  for (const int32_t partition : partitions) {
    stream::PartitionOffset first{.partition = partition,
                                  .offset = stream::PartitionOffset::kNowhere};
    for (const IntakeOptions::Learner& learner : options_.learners) {
      if (learner.start.pass > pass) continue;
      std::optional<uint64_t> next;
      if (learner.start.pass == pass) next = NextOffset(learner.start, partition);
      if (next) first.offset = std::min(first.offset, *next);
      first.from_beginning |= !next;
      // Periods of other partitions that came before the begun one's end would be held until then.
      if (next)
        first.first_until = std::max(first.first_until, BegunUntil(learner.start, partition));
    }
    // Every learner is past this pass: its records need not be read.
    first.from_beginning |= first.offset == stream::PartitionOffset::kNowhere;
    first.before = filter_.window();
    positions.push_back(first);
  }
  return positions;
}

// Open windows are counted again from their beginning. Where none is known, because none was
// decided yet or the breaker was off for a while, it begins at the last multiple of its length that
// the learners are past: a start, and a kill, leave no window out.
void Intake::ReadOpenWindows(std::vector<stream::PartitionOffset>* positions) {
  const IntakeOptions::Windows& windows = *options_.windows;
  std::map<int32_t, OffsetRange> open;
  for (const OffsetRange& next : windows.next) open[next.partition] = next;
  for (stream::PartitionOffset& position : *positions) {
    if (position.from_beginning || position.offset == 0) continue;
    const auto known = open.find(position.partition);
    if (known == open.end() || position.offset > known->second.begin + windows.offsets) {
      const uint64_t begin = (position.offset - 1) / windows.offsets * windows.offsets;
      open[position.partition] = {position.partition, begin, begin};
    }
    position.offset = std::min(position.offset, open[position.partition].begin);
  }
  std::vector<OffsetRange> begins;
  for (const auto& [partition, range] : open) begins.push_back(range);
  windows_.emplace(windows.offsets, begins);
}

event::RawRecords Intake::TakeSpare() {
  const MutexLock lock(spare_mutex_);
  if (spare_.empty()) return {};
  event::RawRecords records = std::move(spare_.back());
  spare_.pop_back();
  return records;
}

void Intake::GiveSpare(event::RawRecords records) {
  const MutexLock lock(spare_mutex_);
  spare_.push_back(std::move(records));
}

void Intake::Poll() {
  for (uint64_t pass = 0; pass < options_.passes && !stopping_; ++pass) {
    if (pass >= first_pass_) {
      if (Status status = PollPass(pass); !status) {
        Fail(std::move(status.error()));
        break;
      }
    }
    if (stopping_ || !pieces_.Push({{}, source_.Identity(), true})) break;
  }
  pieces_.Close();
}

Status Intake::PollPass(uint64_t pass) {
  if (pass > first_pass_) TACIT_RETURN_IF_ERROR(source_.Seek(FirstPositions(pass)));
  while (!stopping_ && !pieces_.closed()) {
    Piece piece{.records = TakeSpare(), .source_identity = {}};
    TACIT_ASSIGN(const stream::PollOutcome outcome, source_.Poll(kPoll, &piece.records));
    if (outcome == stream::PollOutcome::kEnd) return {};
    if (outcome == stream::PollOutcome::kNothing) {
      GiveSpare(std::move(piece.records));
      continue;
    }
    CountPiece(pass, &piece);
    TACIT_RETURN_IF_ERROR(HandOn(pass, std::move(piece)));
  }
  return {};
}

// Counts what was just polled, and notes the source's identity as of it.
void Intake::CountPiece(uint64_t pass, Piece* piece) {
  records_read_ += piece->records.size();
  const stream::PartitionOffset read{.partition = piece->records.partition,
                                     .offset = piece->records.end_offset()};
  records_ahead_ = source_.RecordsAfter(std::span(&read, 1)) +
                   (options_.passes - 1 - pass) * source_.RecordsAfter({});
  piece->source_identity = source_.Identity();
}

// While the queue is full, keeps polling the paused source, for its upkeep. It delivers nothing but
// of a partition that is new, and so not paused: then it is polled no more until that is handed on.
Status Intake::HandOn(uint64_t pass, Piece piece) {
  if (pieces_.PushFor(&piece, kPoll)) return {};
  const std::vector<int32_t> partitions = source_.partitions();
  source_.Pause(partitions);
  std::optional<Piece> early;
  while (!stopping_ && !pieces_.closed() && !pieces_.PushFor(&piece, kPoll)) {
    if (early) continue;
    Piece next;
    TACIT_ASSIGN(const stream::PollOutcome outcome,
                 source_.Poll(std::chrono::milliseconds(0), &next.records));
    if (outcome != stream::PollOutcome::kRecords) continue;
    CountPiece(pass, &next);
    early = std::move(next);
  }
  source_.Resume(partitions);
  return early ? HandOn(pass, *std::move(early)) : Status();
}

std::optional<Intake::Ticketed> Intake::Take() {
  const MutexLock lock(taking_);
  auto piece = pieces_.Pop();
  if (!piece) return std::nullopt;
  return Ticketed{std::move(*piece), tickets_++};
}

void Intake::Decode() {
  event::Batch batch;
  std::vector<event::DeadLetter> dead;
  while (auto taken = Take()) {
    if (!taken->piece.ends_pass) {
      transform_.StartBatch(&batch);
      dead.clear();
      codec_.Decode(taken->piece.records, &batch, &dead);
      // A header names columns, and is neither good nor bad.
      records_read_ -= taken->piece.records.size() - batch.size() - dead.size();
    }
    if (!turns_.Await(taken->ticket)) break;
    if (Status status = TakeTurn(&taken->piece, &batch, &dead); !status) {
      // A write of dead letters that was interrupted is not a failure.
      if (!stopping_) Fail(std::move(status.error()));
      stopping_ = true;
    }
    if (stopping_) {
      turns_.Close();
      break;
    }
    turns_.Next();
    if (!taken->piece.ends_pass) GiveSpare(std::move(taken->piece.records));
  }
  pieces_.Close();
  if (--decoding_ == 0) steps_.Close();
}

Status Intake::TakeTurn(Piece* taken, event::Batch* batch, std::vector<event::DeadLetter>* dead) {
  const Piece& piece = *taken;
  if (piece.ends_pass) {
    if (++decoded_pass_ > first_pass_) filter_.BeginPass();
    windows_.reset();
    periods_.reset();
    for (const auto& cutter : cutters_)
      if (!cutter->EndPass(piece.source_identity)) return cutter->status();
    return {};
  }
  filter_.Apply(piece.records, batch, dead);
  records_good_ += batch->size();
  if (piece.records.recount)
    Recount(*dead, &taken->records);
  else if (!piece.records.sums.empty())
    CountSummed(piece.records.summed);
  const std::vector<event::DeadLetter> counted =
      windows_ || periods_ ? *dead : std::vector<event::DeadLetter>();
  DropTold(piece.records, dead);
  if (!dead->empty()) {
    TACIT_RETURN_IF_ERROR(dead_letters_.Write(*dead));
    records_dead_ += dead->size();
  }
  if (options_.on_decoded && decoded_pass_ <= first_pass_)
    options_.on_decoded(piece.records, *batch, *dead);
  Status status;
  if (windows_)
    CutWindows(piece, *batch, counted, &status);
  else if (periods_)
    CutPeriod(piece, *batch, counted, &status);
  else
    CutSteps(piece, *batch, &status);
  return status;
}

void Intake::CountSummed(const event::SummedRecords& summed) {
  records_read_ += summed.records;
  records_dead_ += summed.all_dead();
  records_good_ += summed.records - summed.all_dead() - summed.opted_out;
  options_.filter.opted_out.Add(static_cast<double>(summed.opted_out));
}

void Intake::Recount(std::span<const event::DeadLetter> dead, event::RawRecords* records) {
  constexpr auto kSchema = static_cast<size_t>(event::BadPart::kSchema);
  recounted_.records += records->size();
  for (const event::DeadLetter& letter : dead) ++recounted_.dead[static_cast<size_t>(letter.part)];
  if (records->size() > 0) return;
  const event::SummedRecords own = std::exchange(recounted_, {});
  // Compaction and deletion take records meanwhile, and one of two processes may know a schema that
  // the other does not know yet.
  const event::SummedRecords summed = std::exchange(records->summed, {});
  if (own.records != summed.records || own.dead[kSchema] != summed.dead[kSchema])
    records->sums.clear();
}

// Returns false after a failure, and where the intake was stopped.
bool Intake::CutSteps(const Piece& piece, const event::Batch& batch, Status* status) {
  for (const auto& cutter : cutters_)
    if (!cutter->Cut(piece, batch)) {
      *status = cutter->status();
      return false;
    }
  return true;
}

// Returns false where the intake was stopped.
bool Intake::EndWindow(const Piece& piece, std::optional<WindowEnd> window) {
  return !window || steps_.Push({.learner = LearnerIndex(0),
                                 .batch = {},
                                 .source_identity = piece.source_identity,
                                 .window_end = std::move(window)});
}

// A period is decided before it is released: its window ends before its steps.
bool Intake::CutPeriod(const Piece& piece, const event::Batch& batch,
                       std::span<const event::DeadLetter> dead, Status* status) {
  periods_->Take(piece.records, dead);
  const std::vector<OffsetRange>& period = piece.records.period;
  if (!period.empty() && !EndWindow(piece, periods_->End(period))) return false;
  return CutSteps(piece, batch, status);
}

// Cuts the piece at the ends of its windows, so that no step that comes before a window's end in
// the queue has a record from behind it.
bool Intake::CutWindows(const Piece& piece, const event::Batch& batch,
                        std::span<const event::DeadLetter> dead, Status* status) {
  const event::RawRecords& records = piece.records;
  uint64_t from = records.first_offset;
  do {
    uint64_t to = records.end_offset();
    auto ended = windows_->Take(records.partition, from, &to, dead);
    if (from == records.first_offset && to == records.end_offset()) {
      if (!CutSteps(piece, batch, status)) return false;
    } else {
      Piece part{.records = {}, .source_identity = piece.source_identity};
      event::Batch examples;
      part.records = RunFrom(records, batch, from, to, &examples);
      if (!CutSteps(part, examples, status)) return false;
    }
    if (!EndWindow(piece, std::move(ended))) return false;
    from = to;
  } while (from < records.end_offset());
  return true;
}

void Intake::DropTold(const event::RawRecords& records,
                      std::vector<event::DeadLetter>* dead) const {
  if (decoded_pass_ > first_pass_) return;
  for (const stream::PartitionOffset& start : starts_)
    if (start.partition == records.partition && !start.from_beginning)
      std::erase_if(*dead, [&](const auto& letter) { return letter.offset < start.offset; });
}

}  // namespace tacit::train
