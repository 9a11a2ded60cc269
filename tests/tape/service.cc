#include "tape/service.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "tape/watched_noise.h"
#include "train/trainer.h"
#include "wiring/plans/mechanism_factory.h"

namespace tacit::tape {
namespace {

constexpr uint64_t kFrame = 12;  // offsets that come together

}  // namespace

std::string BytesOf(std::span<const float> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

std::string TextOf(const privacy::CommitCharge& charge) {
  const privacy::Charge& c = charge.charge;
  std::string text = fmt::format(
      "{} steps ({} an offset, {} paid) of {} {} {} {} {} {} {} {} {} {} over", charge.steps,
      charge.steps_per_offset, charge.paid_steps, privacy::Name(c.mechanism), c.noise_multiplier,
      c.sigma_selection, c.sigma_gradient, c.clip_selection, c.clip_gradient, c.sampling_rate,
      c.block_steps, c.sigma_clip, c.zcdp_rho);
  for (const OffsetRange& range : charge.ranges)
    text += fmt::format(" {}-{}", range.begin, range.end);
  return text + "; ";
}

std::vector<float> AllRows(store::WorkingRows& rows, const store::RowLayout& layout) {
  std::vector<uint64_t> ids(layout.space.rows());
  std::iota(ids.begin(), ids.end(), uint64_t{0});
  std::vector<float*> places(ids.size());
  EXPECT_TRUE(rows.Gather(ids, places));
  std::vector<float> all;
  for (const uint64_t id : ids)
    all.insert(all.end(), places[id], places[id] + layout.RowFloats(layout.space.TableOf(id)));
  return all;
}

WorldStore::WorldStore(const store::RowLayout& layout) : layout_(layout) { Add("it", layout); }

double WorldStore::EpsilonAfter(std::span<const privacy::CommitCharge> charges) const {
  double mu_squared = shown_.empty() ? 0 : shown_.back().mu_squared;
  for (const privacy::CommitCharge& charge : charges)
    mu_squared += static_cast<double>(charge.steps) * charge.charge.MuSquared();
  return mu_squared;
}

Status WorldStore::Commit(store::CommitRequest request, std::function<void(Status)> done) {
  for (store::LearnerCommit& commit : request.learners) {
    ShownCommit shown{.position = std::move(commit.position),
                      .rows = BytesOf(AllRows(working_rows(LearnerIndex(0)), layout_)),
                      .mu_squared = EpsilonAfter(commit.charges),
                      .rho = shown_.empty() ? 0 : shown_.back().rho};
    for (const privacy::CommitCharge& charge : commit.charges) {
      shown.bill += TextOf(charge);
      shown.rho += static_cast<double>(charge.steps) * charge.charge.zcdp_rho;
    }
    if (commit.released) shown.released = *commit.released;
    if (commit.dense)
      shown.dense = BytesOf(commit.dense->parameters) + BytesOf(commit.dense->optimizer);
    shown_.push_back(std::move(shown));
    if (commit.dense) dense_ = std::move(commit.dense);
    if (commit.released) released_ = std::move(commit.released);
    histories_.Take(std::move(commit.histories));
    if (!commit.allowances) continue;
    counts_.step = commit.allowances->step;
    for (const UserUses& uses : commit.allowances->uses) counts_.uses[uses.user] = uses;
  }
  done({});
  return {};
}

Result<uint64_t> WorldStore::Read(std::span<UserUses> users) {
  for (UserUses& uses : users) {
    const auto found = counts_.uses.find(uses.user);
    const Hash128 user = uses.user;
    uses = found == counts_.uses.end() ? counts_.floor : found->second;
    uses.user = user;
  }
  return counts_.step;
}

void WorldStore::RestoreCounts(uint64_t step, uint32_t allowance,
                               const Planted::AfterGap& after_gap) {
  uint32_t most = counts_.floor.used;
  for (const auto& [user, uses] : counts_.uses) most = std::max(most, uses.used);
  const store::UsersGap gap{.steps = static_cast<uint32_t>(step - copy_.step),
                            .allowance = allowance};
  const auto charged = [&](const UserUses& uses) {
    return after_gap ? after_gap(uses, gap, most) : store::AfterGap(uses, gap);
  };
  counts_ = copy_;
  for (auto& [user, uses] : counts_.uses) uses = charged(uses);
  counts_.floor = charged(counts_.floor);
  counts_.step = step;
}

Service::Service(const Subject& subject, const event::Batch& records, Options options)
    : subject_(subject),
      records_(records),
      options_(std::move(options)),
      store_(subject.plan().model->Rows()) {}

std::string Service::Run(const Make& make) {
  std::mt19937_64 random(options_.seed);
  noise::StartCoins(static_cast<uint8_t>(options_.seed));
  std::string why;
  for (bool ended = false; !ended && why.empty();) {
    const uint64_t most = 1 + random() % 3;
    std::vector<train::LearnerStep> steps;
    const bool restores = random() % 4 == 0, copies = random() % 2 == 0;
    if (restores && MayLoseCounts())
      store_.RestoreCounts(position_.step,
                           static_cast<uint32_t>(subject_.plan().promise.bounds.allowance),
                           options_.after_gap);
    if (copies) store_.CopyCounts();
    ended = Cut(random() % 2 == 0 ? most : std::numeric_limits<uint64_t>::max(), &steps);
    why = Train(std::move(steps), make);
  }
  return why;
}

// Steps of `once` are counted one by one; held periods have rules of their own
// (tests/planted/restore_bugs_test.cc).
bool Service::MayLoseCounts() const {
  return subject_.tried().of_users() && subject_.tried().mode == privacy::ParticipationMode::kOnce;
}

wiring::LearnerParts Service::Parts(std::unique_ptr<noise::NoiseSource> noise,
                                    store::WorkingRows& rows, Histories& histories,
                                    uint64_t steps_taken) {
  return {.noise = std::move(noise),
          .backend = [this]() -> ops::Backend& { return *backend_; },
          .workers = workers_,
          .rows = rows,
          .dense = store_.dense(),
          .steps_taken = steps_taken,
          .histories = [&histories](auto users) { return histories.Read(users); }};
}

std::string Service::Train(std::vector<train::LearnerStep> cut, const Make& make) {
  std::vector<train::ResumedLearner> learners;
  learners.push_back({.learner = make(position_.step), .position = position_});
  BoundedQueue<train::LearnerStep> steps(cut.size() + 1);
  for (train::LearnerStep& step : cut) {
    if (!step.batch.preview()) position_ = step.batch.after;
    steps.Push(std::move(step));
  }
  steps.Close();
  train::TrainerOptions options{.budgets = {{.epsilon = options_.budget, .delta = 1e-6}},
                                .total_budget = std::nullopt,
                                .topic = "log",
                                .commit_interval = {},
                                .idle_priority = false};
  const SystemClock clock;
  metrics::Registry registry;
  train::Progress progress(1);
  train::Trainer trainer(std::move(options), std::move(learners), store_, clock, registry,
                         progress);
  const auto outcome = trainer.Run(steps);
  if (!outcome) return outcome.error().message;
  return *outcome == train::Outcome::kBudgetExhausted ? "the budget is spent" : "";
}

// Cuts steps from the position on, `most` of them. Returns true at the stream's end.
bool Service::Cut(uint64_t most, std::vector<train::LearnerStep>* steps) {
  const wiring::LearnerPlan& plan = subject_.plan();
  const config::Participation& configured = subject_.configured().participation;
  stream::AllowanceBook book(store_);
  wiring::ParticipationSetting setting{.has_files = true,
                                       .opening_offsets = plan.model->OpeningRecords(),
                                       .growing_from = config::FirstPeriod(subject_.configured())};
  if (subject_.tried().of_users()) {
    setting.users = wiring::UsersOf(configured, plan.promise.bounds, {}, book);
    if (options_.lets_all_in) setting.users->allowance = 1000;
  }
  const auto participation = wiring::MakeParticipationOf(configured, setting)(position_);
  const auto emit = [&](stream::StepBatch&& step) {
    if (!step.preview()) --most;
    if (options_.plant) options_.plant(&step);
    steps->push_back(
        {.learner = LearnerIndex(0), .batch = std::move(step), .source_identity = "log"});
    return most > 0;
  };
  const auto at = [&](uint64_t offset) {
    return static_cast<size_t>(std::ranges::lower_bound(records_.offset, offset) -
                               records_.offset.begin());
  };
  for (uint64_t next = position_.next.empty() ? 0 : position_.next[0].begin; next < kOffsets;) {
    const uint64_t end = (next / kFrame + 1) * kFrame;
    event::RawRecords frame;
    frame.first_offset = next;
    frame.end.resize(end - next);
    event::Batch batch = event::EmptyLike(records_);
    batch.AppendRange(records_, at(next), at(end));
    if (!participation->Cut(frame, batch, emit)) {
      EXPECT_TRUE(participation->status());
      return false;
    }
    next = end;
  }
  return participation->Finish(emit);
}

}  // namespace tacit::tape
