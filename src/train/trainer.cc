#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/files/log.h"
#include "base/text.h"
#include "metrics/families.h"
#include "train/learner/position.h"
#include "train/quality_news.h"
#include "train/watch/left_out_news.h"

namespace tacit::train {
using privacy::Spent;

// A learner, its budget and its work since the last commit.
struct Trainer::Seat {
  std::unique_ptr<Learner> learner;
  TrainerOptions::Budget budget;
  std::atomic<Spent> spent = Spent::kNone;
  double epsilon = 0;  // once everything taken so far is charged

  privacy::Bill pending;  // of the steps taken
  stream::Position position;
  // Unit user: the uses of users counted in the pending steps, as of the last of these steps.
  bool counts_users = false;
  std::unordered_map<Hash128, UserUses> uses;
  std::optional<LeftOutNews> left_out;  // unit user
  Clock::TimePoint silent_until;        // no further warning of a stretch below a baseline
  // The period's allocation as the store has it; nothing if not known.
  std::optional<std::string> stored_allocation;

  // A failure with the learner and the step that it came from, "step 7" or "after step 7".
  tl::unexpected<Error> Failed(std::string_view where, uint64_t step, Error error) const {
    return Fail(
        std::move(error).Context(fmt::format("learner '{}', {} {}", learner->id(), where, step)));
  }

  std::optional<store::AllowanceCommit> TakeAllowances() {
    if (!std::exchange(counts_users, false)) return std::nullopt;
    store::AllowanceCommit commit{.step = position.step, .uses = {}};
    commit.uses.reserve(uses.size());
    for (const auto& [user, one] : uses) commit.uses.push_back(one);
    uses.clear();
    return commit;
  }

  // Steps in blocks go on only with a period that was charged when it began.
  void CheckPaidFor(const stream::StepBatch& step) const {
    if (learner->charge().block_steps == 0 || step.kind != stream::StepBatch::Kind::kPeriodNext)
      return;
    TACIT_CHECK(position.allocation.has_value(), "a step of a period that was not charged");
    TACIT_CHECK(!step.after.allocation || step.after.allocation == position.allocation,
                "a step of another allocation than the period's");
  }

  // Takes the change that the store must make to the allocation: its bytes, empty to forget it.
  std::optional<std::string> TakeAllocation() {
    const privacy::Charge charge = learner->charge();
    if (charge.block_steps == 0) return std::nullopt;
    std::string now = EncodeAllocation(position.allocation, charge.noise_multiplier);
    if (stored_allocation == now) return std::nullopt;
    return stored_allocation = std::move(now);
  }
};

namespace {

constexpr std::chrono::hours kSilence(1);  // between two warnings of one learner's stretches

std::vector<std::string> Names(const std::vector<ResumedLearner>& learners) {
  std::vector<std::string> names;
  for (const ResumedLearner& resumed : learners) names.push_back(resumed.learner->id());
  return names;
}

std::vector<LedgerMetrics::Learner> Promised(const std::vector<ResumedLearner>& learners,
                                             const TrainerOptions& options) {
  const auto& budgets = options.budgets;
  TACIT_CHECK(budgets.size() == learners.size());
  std::vector<LedgerMetrics::Learner> promised;
  for (size_t i = 0; i < learners.size(); ++i)
    promised.push_back({learners[i].learner->id(), budgets[i].epsilon, budgets[i].delta});
  if (options.breaker != nullptr) {
    const BreakerOptions& breaker = options.breaker->options();
    promised.push_back({std::string(kBreakerAccount), breaker.epsilon, breaker.delta});
  }
  for (const auto& quality : options.qualities)
    if (quality != nullptr)
      promised.push_back({QualityAccount(quality->options().learner), quality->options().epsilon,
                          quality->options().delta});
  return promised;
}

// Looks at the bits without the sign: those of a larger number are larger, and those of what is no
// number are the largest. None ends the search early: so the loop is one of vectors.
bool AllNumbers(std::span<const float> floats) {
  uint32_t most = 0;
  for (const float x : floats) most = std::max(most, std::bit_cast<uint32_t>(x) & 0x7fffffffu);
  return most <= std::bit_cast<uint32_t>(store::kNumberMost);
}

// Checks the parameters and the optimiser's state. Both are computed after noise. Rows on their way
// home were checked where they come from (ClickEngine::settled_numbers).
bool AreNumbers(const store::LearnerCommit& commit) {
  return (!commit.rows || commit.rows->arrival != nullptr || AllNumbers(commit.rows->floats)) &&
         (!commit.dense ||
          (AllNumbers(commit.dense->parameters) && AllNumbers(commit.dense->optimizer)));
}

Status NoNumbers(const std::string& learner, const store::LearnerCommit& commit) {
  uint64_t steps = 0;
  for (const privacy::CommitCharge& charge : commit.charges) steps += charge.steps;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("learner '{}': its model has stopped being numbers, within the last {} "
                          "steps. They are charged, and neither committed nor served: the model "
                          "before them is. Lower the learner's optimizer.learning_rate (and "
                          "row_learning_rate) before it goes on",
                          learner, steps));
}

}  // namespace

Trainer::Trainer(TrainerOptions options, std::vector<ResumedLearner> learners,
                 store::Committer& store, const Clock& clock, metrics::Registry& registry,
                 Progress& progress)
    : options_(std::move(options)),
      store_(store),
      clock_(clock),
      progress_(progress),
      metrics_(registry, Names(learners), progress),
      ledger_metrics_(registry, Promised(learners, options_), options_.total_budget),
      totals_(learners.size()) {
  for (size_t i = 0; i < learners.size(); ++i) {
    seats_.push_back(std::make_unique<Seat>());
    seats_.back()->learner = std::move(learners[i].learner);
    seats_.back()->position = std::move(learners[i].position);
    seats_.back()->budget = options_.budgets[i];
    if (seats_.back()->position.step > 0) progress_.Resume(i);
    if (options_.budgets[i].of_users)
      seats_.back()->left_out.emplace(seats_.back()->learner->id(), registry);
    seats_.back()->pending = privacy::Bill(seats_.back()->learner->id(), options_.topic);
  }
  for (size_t i = 0; i < learners.size(); ++i)
    if (const Spent spent = learners[i].spent; spent != Spent::kNone)
      ShowExhausted(*seats_[i], spent,
                    fmt::format("learner '{}': {} has no room for another step: it stays as it is, "
                                "and no record is read for it; serving continues",
                                seats_[i]->learner->id(),
                                spent == Spent::kTotal ? "the total budget" : "its budget"));
  halted_gauge_ = registry.AddGauge("tacit_training_halted");
  incomparable_ = registry.AddCounter("tacit_slices_incomparable_total");
  if (halted()) ShowHalt();
  Published();  // publishes what earlier runs have spent
}

Trainer::~Trainer() = default;

Result<Outcome> Trainer::Run(BoundedQueue<LearnerStep>& steps) {
  auto outcome = TrainOn(steps);
  heartbeat_.Rest();
  return outcome;
}

Result<Outcome> Trainer::TrainOn(BoundedQueue<LearnerStep>& steps) {
  if (options_.idle_priority && !SetIdlePriority())
    spdlog::warn("the system refuses SCHED_IDLE: training runs at normal priority");
  last_commit_ = clock_.Now();
  double waited = 0;
  while (!stopping_ && !halted() && !AllExhausted()) {
    const size_t queued = steps.size();
    const Clock::TimePoint asked = clock_.Now();
    const auto left = options_.commit_interval - (asked - last_commit_);
    heartbeat_.Rest();
    std::optional<LearnerStep> step = steps.PopFor(std::max(left, Clock::Duration::zero()));
    heartbeat_.Work();
    const double waited_here = Seconds(clock_.Now() - asked);
    totals_.AddWait(waited_here, queued);
    // Waiting begins where nothing is queued, even by a clock that stands still.
    if (queued == 0) waited += std::max(waited_here, 1e-9);
    if (step) {
      metrics_.Queued(queued, std::exchange(waited, 0));
      Learner* const told = Announce(steps.Peek());
      const Status taken = TakeStep(*step);
      // The next pop moves what was announced.
      if (told != nullptr) told->Withdraw();
      TACIT_RETURN_IF_ERROR(taken);
    } else if (steps.closed_and_empty()) {
      break;
    }
    const bool now = step && options_.commit_each_period && EndsPeriod(*step);
    if (now || clock_.Now() - last_commit_ >= options_.commit_interval)
      TACIT_RETURN_IF_ERROR(CommitPending());
  }
  TACIT_RETURN_IF_ERROR(CommitPending());
  TACIT_RETURN_IF_ERROR(store_.Flush());
  if (halted()) {
    ShowHalt();
    return Outcome::kHalted;
  }
  if (stopping_) return Outcome::kStopped;
  return AllExhausted() ? Outcome::kBudgetExhausted : Outcome::kEndOfSource;
}

Status Trainer::Predict(BoundedQueue<LearnerStep>& steps) {
  // The last step need not have ended at a file's end.
  for (const auto& seat : seats_) progress_.EndDay(seat->learner->index().value, "");
  while (!stopping_) {
    const std::optional<LearnerStep> step = steps.Pop();
    if (!step) break;
    TACIT_CHECK(step->batch.kind == stream::StepBatch::Kind::kHeldOut);
    TACIT_RETURN_IF_ERROR(Preview(*seats_[step->learner.value], step->batch));
    for (const event::PublicCut& cut : step->batch.cuts)
      if (cut.kind == event::PublicCut::Kind::kFileEnd)
        progress_.EndHeldOutDay(step->learner.value, cut.name, {cut.offset, 1});
  }
  return {};
}

bool Trainer::EndsPeriod(const LearnerStep& step) const {
  // The decision on a window is committed with the steps behind it.
  if (step.window_end || step.batch.preview()) return false;
  return std::ranges::none_of(seats_, [&](const auto& seat) {
    if (seat->spent != Spent::kNone) return false;
    return std::ranges::any_of(step.batch.ranges, [&](const OffsetRange& range) {
      const auto& next = seat->position.next;
      const auto place = std::ranges::find(next, range.partition, &OffsetRange::partition);
      return place == next.end() || place->begin < range.end;
    });
  });
}

bool Trainer::AllExhausted() const {
  return std::ranges::all_of(seats_, [](const auto& seat) { return seat->spent != Spent::kNone; });
}

privacy::Bill Trainer::PendingWith(const Seat& seat, const stream::StepBatch& batch) {
  privacy::Bill bill = seat.pending;
  bill.Add(Billed(batch), seat.learner->charge(), seat.learner->opening_charge());
  return bill;
}

// The store already counts charges handed to it. The pending charges are checked together with the
// step's: the learner's own for its budget, all learners' for the total.
bool Trainer::WithinBudgets(Seat& seat, std::vector<privacy::CommitCharge> charges) {
  const double epsilon = store_.EpsilonAfter(charges);
  if (!(epsilon <= seat.budget.epsilon)) {
    Exhaust(
        seat, Spent::kOwn,
        fmt::format("epsilon to {:.4g}, over its budget of {:.4g}", epsilon, seat.budget.epsilon));
    return false;
  }
  if (const auto& total = options_.total_budget) {
    AddPendingOfOthers(&seat, &charges);
    const double all = store_.TotalEpsilonAfter(charges, Delta(total->delta));
    if (!(all <= total->epsilon)) {
      Exhaust(seat, Spent::kTotal,
              fmt::format("the epsilon of all learners together to {:.4g}, over the total budget "
                          "of {:.4g}",
                          all, total->epsilon));
      return false;
    }
  }
  seat.epsilon = std::max(seat.epsilon, epsilon);
  return true;
}

// Adds what is pending of all learners and accounts but `own`, one of them.
void Trainer::AddPendingOfOthers(const void* own,
                                 std::vector<privacy::CommitCharge>* charges) const {
  const auto add = [&](const void* other, const std::vector<privacy::CommitCharge>& pending) {
    if (other != own) charges->insert(charges->end(), pending.begin(), pending.end());
  };
  for (const auto& seat : seats_) add(seat.get(), seat->pending.charges());
  if (options_.breaker != nullptr) add(options_.breaker.get(), options_.breaker->pending());
  for (const auto& quality : options_.qualities)
    if (quality != nullptr) add(quality.get(), quality->pending());
}

// Tells whether the budgets have room for one more window of an account, whose charges with it are
// these.
bool Trainer::MayRelease(const void* own, double epsilon,
                         std::vector<privacy::CommitCharge> charges) const {
  if (!(store_.EpsilonAfter(charges) <= epsilon)) return false;
  if (!options_.total_budget) return true;
  AddPendingOfOthers(own, &charges);
  return store_.TotalEpsilonAfter(charges, Delta(options_.total_budget->delta)) <=
         options_.total_budget->epsilon;
}

// Decides on a window, or passes over it: a restored copy may have counted its records before.
void Trainer::EndWindow(const LearnerStep& step) {
  TACIT_CHECK(options_.breaker != nullptr, "windows are cut for a breaker alone");
  source_identity_ = step.source_identity;
  Breaker& breaker = *options_.breaker;
  const WindowEnd& window = *step.window_end;
  const bool is_short = window.offsets() < breaker.options().least;
  if (!is_short && MayRelease(&breaker, breaker.options().epsilon, breaker.ChargesWith(window))) {
    breaker.Decide(window);
    return;
  }
  breaker.PassOver(window);
  if (std::exchange(is_short ? told_of_short_ : told_of_undecided_, true)) return;
  spdlog::warn(
      "source.halt_above: the records of window {} {}: it is passed over, and others like it",
      breaker.state().windows,
      is_short ? "are so few that the noise could decide by itself"
               : "may not be counted, since that would cross its budget or the total one");
}

PrivateQuality* Trainer::QualityOf(const Seat& seat) const {
  return options_.qualities.empty() ? nullptr
                                    : options_.qualities[seat.learner->index().value].get();
}

// Counts the predictions of a step that was taken, and releases the window that ends with it.
// Records that were counted before (in a restored copy) may have no room for another count.
void Trainer::SeeQuality(const Seat& seat, const stream::StepBatch& batch,
                         const StepReport& report) {
  PrivateQuality* const quality = QualityOf(seat);
  if (quality == nullptr) return;
  TACIT_CHECK(batch.kind == stream::StepBatch::Kind::kOnce, "each record is in one step of a pass");
  quality->See(seat.position.step - 1, batch.ranges, report.logits, batch.examples.label);
  if (!quality->due()) return;
  if (MayRelease(quality, quality->options().epsilon, quality->ChargesWithDue()))
    return quality->Release(seat.position);
  quality->PassOver();
  if (!std::exchange(told_of_unreleased_, true))
    spdlog::warn(
        "learner '{}': its predictions of a window may not be counted for quality, since that "
        "would cross the budget of that or the total one: the window is passed over, and others "
        "like it",
        seat.learner->id());
}

// Tells of a halt that is committed.
void Trainer::ShowHalt() {
  std::string why = options_.breaker->WhyHalted();
  halted_gauge_.Set(1);
  const MutexLock lock(halt_mutex_);
  if (std::exchange(why_halted_, why).empty())
    LogEvent(spdlog::level::err, "halted", {{"window", options_.breaker->state().windows}}, why);
}

std::string Trainer::why_halted() const {
  const MutexLock lock(halt_mutex_);
  return why_halted_;
}

void Trainer::Exhaust(Seat& seat, Spent spent, const std::string& why) {
  ShowExhausted(
      seat, spent,
      fmt::format(
          "learner '{}': the next step would bring {}: it stops learning, serving continues",
          seat.learner->id(), why));
  if (options_.on_exhausted) options_.on_exhausted(seat.learner->index());
}

void Trainer::ShowExhausted(Seat& seat, Spent spent, const std::string& message) {
  seat.spent = spent;
  metrics_.Exhausted(seat.learner->index().value, spent);
  LogEvent(spdlog::level::warn, "budget_exhausted",
           {{"learner", seat.learner->id()}, {"total", spent == Spent::kTotal ? 1 : 0}}, message);
}

// Announces the step that waits, if its learner will take it, and returns who was told.
Learner* Trainer::Announce(const LearnerStep* next) {
  if (next == nullptr || next->window_end) return nullptr;
  TACIT_CHECK(next->learner.value < seats_.size());
  const Seat& seat = *seats_[next->learner.value];
  if (seat.spent != Spent::kNone || next->batch.preview()) return nullptr;
  seat.learner->Announce(next->batch);
  return seat.learner.get();
}

Status Trainer::TakeStep(LearnerStep& step) {
  if (step.window_end) {
    EndWindow(step);
    return {};
  }
  TACIT_CHECK(step.learner.value < seats_.size());
  Seat& seat = *seats_[step.learner.value];
  if (seat.spent != Spent::kNone) return {};
  if (step.batch.preview()) return Preview(seat, step.batch);
  if (seat.pending.EndsBefore(Billed(step.batch))) TACIT_RETURN_IF_ERROR(CommitPending());
  seat.CheckPaidFor(step.batch);
  const Clock::TimePoint begin = clock_.Now();
  // Checked before the step: the opening charge may change once the period is open.
  privacy::Bill bill = PendingWith(seat, step.batch);
  if (!WithinBudgets(seat, bill.charges())) return {};
  const Clock::TimePoint start = clock_.Now();
  StepReport report;
  auto taken = seat.learner->TakeStep(step.batch, stopping_, &report);
  if (!taken) return seat.Failed("step", step.batch.after.step, std::move(taken.error()));
  if (!*taken) return {};
  seat.pending = std::move(bill);
  seat.position = step.batch.after;
  seat.counts_users |= step.batch.counts_users;
  for (const UserUses& uses : step.batch.uses) seat.uses[uses.user] = uses;
  source_identity_ = std::move(step.source_identity);
  Record(seat, step.batch, report,
         {.account = Seconds(start - begin), .learn = Seconds(clock_.Now() - start)});
  return {};
}

// Predicts for the operator's metrics; nothing is learnt, released or charged.
Status Trainer::Preview(Seat& seat, const stream::StepBatch& batch) {
  StepReport report;
  const Clock::TimePoint begin = clock_.Now();
  const bool sums = batch.kind == stream::StepBatch::Kind::kSums;
  Status seen = sums ? TakeSums(seat, batch) : seat.learner->Preview(batch, &report);
  if (!seen) return seat.Failed("after step", seat.position.step, std::move(seen.error()));
  totals_.AddPreview(seat.learner->index().value, Seconds(clock_.Now() - begin));
  if (!sums && batch.kind != stream::StepBatch::Kind::kPreviewAgain) Predicted(seat, batch, report);
  PrivateQuality* const quality = QualityOf(seat);
  if (quality != nullptr && batch.kind == stream::StepBatch::Kind::kPreview)
    quality->SeePart(report.logits, batch.examples.label);
  return {};
}

// Takes what another process has summed up.
Status Trainer::TakeSums(Seat& seat, const stream::StepBatch& batch) {
  if (batch.recount) {
    TACIT_ASSIGN(const bool same, seat.learner->EndRecount(batch.sums));
    if (batch.sums.empty()) {
      incomparable_.Add();
      spdlog::warn(
          "sums of worker '{}' could not be checked: this process has met other records of their "
          "slice, or other schemas were known. Its own sums count",
          batch.sums_from);
    }
    if (same) return {};
    return Fail(ErrorCode::kRefused,
                fmt::format("worker '{}' has sent other sums than this process has of the same "
                            "records: one of the two is wrong",
                            batch.sums_from));
  }
  TACIT_ASSIGN(const PartFigures figures, seat.learner->AddPart(batch.sums));
  progress_.AddFigures(seat.learner->index().value, figures);
  if (PrivateQuality* const quality = QualityOf(seat)) quality->SeePart(figures);
  Judge(seat);
  return {};
}

void Trainer::Predicted(Seat& seat, const stream::StepBatch& batch, const StepReport& report) {
  const size_t learner = seat.learner->index().value;
  const EventTimes times = EventTimes::Of(batch.examples.timestamp_ms);
  if (!report.logits.empty()) {
    progress_.AddPredictions(learner, report.logits, batch.examples.label, report.loss_sum, times);
  } else {
    progress_.AddRankings(learner, report.examples, report.ranked, times);
  }
  Judge(seat);
}

// Judges a stretch of predictions once it is long enough.
void Trainer::Judge(Seat& seat) {
  if (options_.has_days) return;
  const size_t learner = seat.learner->index().value;
  const auto stretch = progress_.TakeStretch(learner);
  if (!stretch || clock_.Now() < seat.silent_until) return;
  if (TellBelowBaseline(seat.learner->id(),
                        fmt::format("its last {}", Counted(stretch->events, "record")), *stretch))
    seat.silent_until = clock_.Now() + kSilence;
}

void Trainer::Record(Seat& seat, const stream::StepBatch& batch, const StepReport& report,
                     StepTotals::Phases seconds) {
  const Clock::TimePoint begin = clock_.Now();
  const LearnerIndex index = seat.learner->index();
  // A period's events were predicted in its previews, before any of them was learnt from; so were
  // all of a step that comes without any, at whose end the report counts the previews' too.
  if (!batch.whole_period() && batch.examples.size() > 0) Predicted(seat, batch, report);
  SeeQuality(seat, batch, report);
  progress_.AddStep(index.value, report.rows_written, seat.epsilon);
  if (const auto day = progress_.EndDay(index.value, batch.cuts); day && day->Judged()) {
    TellBelowBaseline(seat.learner->id(), day->name, *day->Judged());
    TellTooGood(seat.learner->id(), day->name, *day->Judged());
  }
  metrics_.Step(index.value, report, batch.came, seconds.learn);
  // Later steps of a held period count nobody.
  if (batch.counts_users && seat.left_out) seat.left_out->See(batch.came);
  seconds.observe = Seconds(clock_.Now() - begin);
  totals_.AddStep(index.value, seconds, report, batch.units, batch.came,
                  store_.working_rows(index).stats());
}

store::LearnerCommit Trainer::TakePending(Seat& seat) {
  Learner& learner = *seat.learner;
  store::LearnerCommit commit{.learner = learner.index(),
                              .rows = store_.working_rows(learner.index()).TakeDelta(),
                              .dense = learner.CopyDense(),
                              .position = EncodePosition(seat.position),
                              .charges = seat.pending.Take(),
                              .released = learner.TakeReleased(),
                              .allowances = seat.TakeAllowances(),
                              .histories = learner.TakeHistories(),
                              .allocation = seat.TakeAllocation()};
  learner.Rekey();
  return commit;
}

// Commits, and counts the time that training stands still for it.
Status Trainer::CommitPending() {
  last_commit_ = clock_.Now();
  const Status committed = HandOver();
  totals_.AddCommit(Seconds(clock_.Now() - last_commit_));
  return committed;
}

Status Trainer::HandOver() {
  store::CommitRequest request{.learners = {}, .source_identity = source_identity_};
  for (const auto& seat : seats_) {
    if (seat->pending.empty()) continue;
    if (Status settled = seat->learner->Settle(); !settled)
      return seat->Failed("after step", seat->position.step, std::move(settled.error()));
  }
  Status sound;
  for (const auto& seat : seats_) {
    if (seat->pending.empty()) continue;
    request.learners.push_back(TakePending(*seat));
    metrics_.Cached(seat->learner->index().value,
                    store_.working_rows(seat->learner->index()).stats());
    store::LearnerCommit& commit = request.learners.back();
    auto numbers = seat->learner->GivesNumbers();
    if (!numbers)
      return seat->Failed("after step", seat->position.step, std::move(numbers.error()));
    if (*numbers && AreNumbers(commit)) continue;
    // The released update is discarded, yet charged: the failure itself is public.
    commit.rows = nullptr;
    commit.dense = nullptr;
    sound = NoNumbers(seat->learner->id(), commit);
  }
  if (options_.breaker != nullptr)
    if (auto decided = options_.breaker->TakePending())
      request.learners.push_back(*std::move(decided));
  for (const auto& quality : options_.qualities)
    if (quality != nullptr)
      if (auto released = quality->TakePending()) request.learners.push_back(*std::move(released));
  if (request.learners.empty()) return {};
  TACIT_RETURN_IF_ERROR(
      store_.Commit(std::move(request), [this, reached = Reached()](Status status) {
        if (!status) {
          spdlog::error("commit failed: {}", status.error().message);
          stopping_ = true;
          return;
        }
        Published(clock_.UnixMillis());
        if (options_.on_published) options_.on_published();
        if (options_.advise && !reached.empty()) options_.advise(reached, *store_.Latest());
      }));
  if (!sound) TACIT_RETURN_IF_ERROR(store_.Flush());
  return sound;
}

// Skips learners whose budget is spent, unless all are: they would hold the offsets back.
std::vector<stream::PartitionOffset> Trainer::Reached() const {
  std::map<int32_t, uint64_t> least;
  const bool all = AllExhausted();
  bool first = true;
  for (const auto& seat : seats_) {
    if (!all && seat->spent != Spent::kNone) continue;
    std::map<int32_t, uint64_t> here;
    for (const OffsetRange& next : seat->position.next) here[next.partition] = next.begin;
    // A partition that some learner has not begun is not passed by all.
    if (first) least = here;
    std::erase_if(least, [&](const auto& entry) { return !here.contains(entry.first); });
    for (auto& [partition, offset] : least) offset = std::min(offset, here[partition]);
    first = false;
  }
  std::vector<stream::PartitionOffset> reached;
  for (const auto& [partition, offset] : least) reached.push_back({partition, offset});
  return reached;
}

Spent Trainer::spent(LearnerIndex learner) const { return seats_[learner.value]->spent; }

// Updates metrics from the newest commit, which was made at this Unix time; nothing if it was in an
// earlier run. Runs on the commit thread after the first commit.
void Trainer::Published(std::optional<int64_t> committed_ms) {
  const auto snapshot = store_.Latest();
  metrics_.Stored(store_.stats());
  ledger_metrics_.Show(*snapshot, committed_ms);
  for (const auto& seat : seats_) {
    const Learner& learner = *seat->learner;
    for (const privacy::LedgerTotal& total : snapshot->learners()) {
      if (total.learner == learner.id()) progress_.Committed(learner.index().value, total.epsilon);
    }
  }
}

}  // namespace tacit::train
