#include "wiring/learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "base/files/log.h"
#include "base/text.h"
#include "privacy/bill.h"
#include "train/learner/position.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/dead_letters.h"
#include "wiring/plans/mechanism_factory.h"

namespace tacit::wiring {
namespace {

// Loads the released state, if there is one. Refuses, before anything is served, a state of another
// mechanism than the configured one.
Status LoadReleased(const LearnerPlan& plan, const store::LearnerState& state,
                    train::Learner& learner) {
  if (!state.released) return {};
  const Status loaded = learner.LoadReleased(*state.released);
  if (loaded) return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("{}; use the store's own {}, or train under another id or in another "
                          "store",
                          loaded.error().message, plan.model->ReleaseKeys()));
}

// Returns the budget that has no room for any step that the learner could take next; kNone: one may
// have. No epsilon ever falls, and a step costs at least as much as one on no records does. The
// steps of a period in blocks are paid for when it begins.
privacy::Spent SpentForGood(const LearnerPlan& plan, uint64_t period_steps,
                            const privacy::Charge& charge, const stream::Position& position,
                            const LearningParts& parts) {
  privacy::Bill bill(plan.id, parts.source.topic());
  const bool in_blocks = charge.block_steps > 0;
  if (!in_blocks)
    bill.Add({}, charge, std::nullopt);
  else if (position.period_step == 0)
    bill.Add({.whole_period = true, .opens_period = true, .period_steps = period_steps}, charge,
             std::nullopt);
  const auto snapshot = parts.store.Latest();
  double own = 0, total = snapshot->total().epsilon;
  for (const privacy::LedgerTotal& spent : snapshot->learners())
    if (spent.learner == plan.id) own = spent.epsilon;
  const auto& budget = parts.assembly.total_budget;
  if (!bill.empty()) {
    own = parts.store.EpsilonAfter(bill.charges());
    if (budget) total = parts.store.TotalEpsilonAfter(bill.charges(), Delta(budget->delta));
  }
  if (own > plan.promise.epsilon) return privacy::Spent::kOwn;
  return budget && total > budget->epsilon ? privacy::Spent::kTotal : privacy::Spent::kNone;
}

}  // namespace

Result<std::vector<stream::Position>> ReadPositions(const Assembly& assembly,
                                                    const store::Store& store) {
  const uint64_t reading = ReadingOf(assembly.config);
  std::vector<stream::Position> positions;
  for (const LearnerPlan& plan : assembly.learners) {
    TACIT_ASSIGN(auto position, train::DecodePosition(store.State(plan.index).position));
    if (position.reading != reading) {
      position.reading = reading;
      position.reading_since = position.step;
    }
    TACIT_ASSIGN(const std::string allocation, store.ReadAllocation(plan.index));
    TACIT_ASSIGN(position.allocation,
                 train::DecodeAllocation(allocation, plan.charge.noise_multiplier));
    positions.push_back(std::move(position));
  }
  return positions;
}

std::string NothingLeftText(const std::string& learner, const stream::Position& position) {
  std::string text = fmt::format("learner '{}' has nothing left to learn", learner);
  if (position.step == 0 || position.reading_since < position.step) return text;
  return text +
         ": source or schema have changed since it read what is there. Records that could not be "
         "learnt from then are charged, and are not read again";
}

// The allowances that users have used: those in the store and those of steps cut since.
struct Learning::Allowances final : stream::AllowanceView {
  Allowances(const store::UserBook& in, LearnerIndex of) : store(in), learner(of) {}
  Result<uint64_t> Read(std::span<UserUses> users) override {
    return store.ReadAllowances(learner, users);
  }

  const store::UserBook& store;
  const LearnerIndex learner;
  stream::AllowanceBook book{*this};
};

Learning::Learning(LearningParts parts)
    : parts_(std::move(parts)),
      dead_letter_news_(parts_.clock, parts_.registry, PlaceOfDeadLetters(parts_.assembly.config)),
      watch_(parts_.assembly.transform->schema(), parts_.clock, parts_.registry) {}
Learning::~Learning() = default;

Result<std::unique_ptr<Learning>> Learning::Make(LearningParts parts,
                                                 const std::vector<stream::Position>& positions) {
  std::unique_ptr<Learning> learning(new Learning(std::move(parts)));
  TACIT_RETURN_IF_ERROR(learning->MakeAll(positions));
  return learning;
}

Result<std::unique_ptr<train::Learner>> Learning::MakeLearner(const LearnerPlan& plan,
                                                              const store::LearnerState& state,
                                                              const stream::Position& position) {
  store::Store& store = parts_.store;
  const auto make = [&](train::Gpu* gpu) {
    auto noise = noise::MakeNoiseSource(*workers_);
    if (parts_.noise) noise = parts_.noise(std::move(noise));
    auto made =
        plan.model->Make({.noise = std::move(noise),
                          .backend = [this]() -> ops::Backend& { return Backend(); },
                          .workers = *workers_,
                          .rows = store.working_rows(plan.index),
                          .dense = state.dense.get(),
                          .gpu = gpu,
                          .steps_taken = position.step,
                          .histories =
                              [&store, index = plan.index](std::span<store::UserHistory> users) {
                                return store.ReadHistories(index, users);
                              },
                          .user_key = store.user_key(),
                          .clock = &parts_.clock});
    on_gpu_ |= gpu != nullptr && made.has_value();
    return made;
  };
  TACIT_ASSIGN(auto learner, parts_.choose ? parts_.choose(plan, make) : make(nullptr));
  TACIT_RETURN_IF_ERROR(LoadReleased(plan, state, *learner));
  return learner;
}

std::string Learning::stream_trouble() const {
  const std::string dead = dead_letter_news_.trouble(), changed = watch_.trouble();
  return dead.empty() || changed.empty() ? dead + changed : dead + "; " + changed;
}

std::optional<stream::UserOptions> Learning::Users(size_t learner) {
  const Assembly& assembly = parts_.assembly;
  const config::Learner& configured = assembly.config.learners[learner];
  if (!configured.privacy.of_users()) return std::nullopt;
  allowances_.push_back(
      std::make_unique<Allowances>(parts_.store, assembly.learners[learner].index));
  return UsersOf(configured.participation, assembly.learners[learner].promise.bounds,
                 parts_.store.user_key(), allowances_.back()->book);
}

// Says whether a period whose allocation is unknown is taken once more, from its beginning. The
// part that was begun is paid for, and so would be the new one: where the budgets have no room for
// both, the period is closed, and learning goes on behind it.
bool Learning::BeginsAnew(size_t learner, const stream::Position& position) const {
  const Assembly& assembly = parts_.assembly;
  const LearnerPlan& plan = assembly.learners[learner];
  const config::Participation& p = assembly.config.learners[learner].participation;
  if (plan.charge.block_steps == 0 || position.period_step == 0 ||
      stream::KnowsAllocation(position, p.steps_per_period, p.blocks))
    return false;
  privacy::BilledStep step{
      .whole_period = true, .opens_period = true, .period_steps = p.PeriodSteps()};
  std::vector<OffsetRange> ranges;
  std::ranges::copy_if(position.next, std::back_inserter(ranges),
                       [](const OffsetRange& next) { return next.size() > 0; });
  step.ranges = ranges;
  privacy::Bill bill(plan.id, parts_.source.topic());
  bill.Add(step, plan.charge, plan.opening_charge);
  const auto& total = assembly.total_budget;
  const bool room = parts_.store.EpsilonAfter(bill.charges()) <= plan.promise.epsilon &&
                    (!total || parts_.store.TotalEpsilonAfter(
                                   bill.charges(), Delta(total->delta)) <= total->epsilon);
  spdlog::warn(
      "learner '{}': which records the steps left of its period hold is not known (the store is a "
      "restored copy, or the participation or noise was changed within the period): {}",
      plan.id,
      room ? "the period is begun anew, and charged once more"
           : "the period is closed after step " + std::to_string(position.period_step) +
                 ", since its budget has no room for another one on the same records");
  return room;
}

train::IntakeOptions::Learner::MakeParticipation Learning::ParticipationOf(
    size_t learner, const stream::Position& position) {
  const Assembly& assembly = parts_.assembly;
  const config::Learner& configured = assembly.config.learners[learner];
  if (assembly.config.source.periods == config::Source::Periods::kTopic)
    return [part = OffsetsPerPart(assembly.config.training.workers)](stream::Position start) {
      return stream::MakeTopicPeriodParticipation(part, std::move(start));
    };
  const bool in_parts =
      ComesInParts(*assembly.learners[learner].model, configured, assembly.config.source);
  return MakeParticipationOf(
      configured.participation,
      {.has_files = assembly.config.source.traits().has_files,
       .users = Users(learner),
       .offsets_per_part = in_parts ? OffsetsPerPart(assembly.config.training.workers) : 0,
       .opening_offsets = assembly.learners[learner].model->OpeningRecords(),
       .growing_from = config::FirstPeriod(configured),
       .begins_anew = BeginsAnew(learner, position)});
}

// Periods of a topic are for all learners that still learn, and are the breaker's windows. The
// learner that is furthest back counts them, since it may be new; the opening is long enough for
// each.
stream::TopicPeriods Learning::PeriodsFor(const train::IntakeOptions& intake) const {
  const Assembly& assembly = parts_.assembly;
  stream::TopicPeriods periods{.sizes = {.full = assembly.learners[0].batch},
                               .next = std::numeric_limits<uint64_t>::max(),
                               .learners = {},
                               .learns = [this](LearnerIndex learner) {
                                 return trainer_->spent(learner) == privacy::Spent::kNone;
                               }};
  if (intake.windows) periods.windows = intake.windows->next;
  for (const train::IntakeOptions::Learner& learner : intake.learners) {
    if (learner.spent) continue;
    const size_t i = learner.index.value;
    stream::StepSizes& sizes = periods.sizes;
    sizes.opening = std::max(sizes.opening, assembly.learners[i].model->OpeningRecords());
    sizes.growing_from =
        std::max(sizes.growing_from, config::FirstPeriod(assembly.config.learners[i]));
    periods.next = std::min(periods.next, learner.start.step);
    periods.learners.push_back({.learner = learner.index, .place = learner.start.next});
  }
  return periods;
}

ops::Backend& Learning::Backend() {
  if (!backend_) backend_ = ops::MakeCpuBackend(*workers_);
  return *backend_;
}

Status Learning::ReadOptOut() {
  const std::string& path = parts_.assembly.config.source.opt_out;
  if (path.empty()) return {};
  auto read = train::OptOut::Read(path, parts_.store.user_key());
  if (!read) return Fail(std::move(read.error()).Context("source.opt_out"));
  opt_out_ = std::make_shared<const train::OptOut>(*std::move(read));
  spdlog::info("{} of {} are never learnt from", Counted(opt_out_->size(), "id"), path);
  if (const auto& odd = opt_out_->odd_lines(); odd.count > 0)
    spdlog::warn(
        "{}: {} from line {} on, with blanks at an end or before '#', control characters or bytes "
        "that are not UTF-8: each names the user whose id is written just so, and the one without "
        "blanks and comment",
        path, Counted(odd.count, "odd line"), odd.first);
  return {};
}

train::IntakeOptions Learning::EmptyIntake() const {
  const config::Source& source = parts_.assembly.config.source;
  train::IntakeOptions intake{.learners = {},
                              .filter = {.dedupe_window = source.dedupe_window,
                                         .dedupe_partitions = source.dedupe_partitions,
                                         .key = parts_.store.user_key(),
                                         .duplicates = duplicates_,
                                         .opt_out = opt_out_,
                                         .opted_out = opted_out_},
                              .passes = source.passes};
  if (const uint32_t runs = source.traits().runs_queued; runs > 0) intake.queued_records_max = runs;
  for (const config::Learner& learner : parts_.assembly.config.learners)
    intake.filter.needs_user |= learner.privacy.of_users();
  return intake;
}

Status Learning::MakeAll(const std::vector<stream::Position>& positions) {
  const Assembly& assembly = parts_.assembly;
  const config::Training& training = assembly.config.training;
  codec_ = MakeCodec(assembly.config.source, *assembly.transform, assembly.items);
  if (parts_.decode) codec_ = parts_.decode(std::move(codec_));
  workers_ = std::make_unique<WorkerPool>(
      WorkerPool::Options{.workers = training.workers, .idle_priority = training.idle_priority});
  TACIT_RETURN_IF_ERROR(ReadOptOut());
  train::IntakeOptions intake = EmptyIntake();
  intake.decode_threads = assembly.config.source.decode_threads;
  intake.on_decoded = [this](const event::RawRecords& records, const event::Batch& batch,
                             std::span<const event::DeadLetter> dead) {
    dead_letter_news_.See(records, dead);
    watch_.See(batch);
  };
  std::vector<train::ResumedLearner> learners;
  for (size_t i = 0; i < assembly.learners.size(); ++i) {
    const LearnerPlan& plan = assembly.learners[i];
    TACIT_ASSIGN(auto learner, MakeLearner(plan, parts_.store.State(plan.index), positions[i]));
    const privacy::Spent spent =
        SpentForGood(plan, assembly.config.learners[i].participation.PeriodSteps(),
                     learner->charge(), positions[i], parts_);
    learners.push_back({std::move(learner), positions[i], spent});
    intake.learners.push_back({.index = plan.index,
                               .participation = ParticipationOf(i, positions[i]),
                               .start = positions[i],
                               .spent = spent != privacy::Spent::kNone});
  }
  intake.parts_in_any_order = !assembly.config.workers.topic.empty();
  train::TrainerOptions trainer = MakeTrainerOptions(assembly, parts_.source.topic());
  // A GPU waits for the thread that feeds it.
  trainer.idle_priority &= !on_gpu_;
  trainer.advise = parts_.advise;
  trainer.on_published = parts_.on_published;
  if (assembly.breaker) {
    TACIT_ASSIGN(trainer.breaker, MakeBreaker(*assembly.breaker, parts_.store,
                                              parts_.source.topic(), parts_.past_halt));
    intake.windows = {.offsets = assembly.breaker->window, .next = trainer.breaker->state().next};
  }
  if (assembly.config.source.periods == config::Source::Periods::kTopic)
    parts_.source.SetPeriods(PeriodsFor(intake));
  TACIT_ASSIGN(trainer.qualities, MakeQualities(assembly.qualities, assembly.learners.size(),
                                                parts_.store, parts_.source.topic()));
  trainer.on_exhausted = [this](LearnerIndex learner) { intake_->Retire(learner); };
  trainer_ = std::make_unique<train::Trainer>(std::move(trainer), std::move(learners), parts_.store,
                                              parts_.clock, parts_.registry, parts_.progress);
  intake_ = std::make_unique<train::Intake>(std::move(intake), parts_.source, *codec_,
                                            *assembly.transform, parts_.dead_letters);
  return {};
}

Status Learning::PredictHeldOut(stream::Source& files) {
  const Assembly& assembly = parts_.assembly;
  TACIT_ASSIGN(const std::vector<stream::Position> reached, ReadPositions(assembly, parts_.store));
  train::IntakeOptions held_out = EmptyIntake();
  held_out.passes = 1;
  for (size_t i = 0; i < assembly.learners.size(); ++i) {
    const LearnerPlan& plan = assembly.learners[i];
    // Users' histories go on from there; the records of these files are others.
    stream::Position start;
    start.step = reached[i].step;
    held_out.learners.push_back(
        {.index = plan.index,
         .participation =
             [batch = plan.batch, users = Users(i)](stream::Position from) {
               return stream::MakeHeldOutParticipation(
                   {.offsets_per_step = batch, .start = std::move(from), .users = users});
             },
         .start = std::move(start)});
  }
  train::Intake intake(std::move(held_out), files, *codec_, *assembly.transform,
                       parts_.dead_letters);
  TACIT_RETURN_IF_ERROR(intake.Start());
  TACIT_RETURN_IF_ERROR(trainer_->Predict(intake.steps()));
  intake.Stop();
  return intake.status();
}

}  // namespace tacit::wiring
