#include "tape/run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "support/fixed_noise.h"
#include "train/click/memory_rows.h"
#include "train/trainer.h"
#include "unit/train/remembering_store.h"
#include "wiring/plans/mechanism_factory.h"

namespace tacit::tape {
namespace {

using privacy::ParticipationMode;
using privacy::Query;
using stream::StepBatch;

constexpr uint64_t kOffsets = 3 * kPeriod, kFrame = 12;
constexpr size_t kUsers = 10;
constexpr char kCanaryUser[] = "user-0";

wiring::Assembly Assembled(const Case& tried, const test::TempDir& dir) {
  auto config = Configure(tried, dir.path());
  EXPECT_TRUE(config) << tried.name() << ": " << config.error().message;
  auto assembly = wiring::Assemble(*std::move(config));
  EXPECT_TRUE(assembly) << tried.name() << ": " << assembly.error().message;
  return *std::move(assembly);
}

// Records as a hostile user would make them, and those of everybody else.
class Records {
 public:
  Records(const Subject& subject, uint64_t seed) : subject_(subject), random_(seed) {
    const bool users = subject.tried().of_users();
    unit_.keeps_label = subject.tried().query == Query::kRepresentation;
    if (users) unit_.user = kCanaryUser;
    unit_.offset = users ? kOffsets : random_() % kOffsets;
    const auto& tables = subject.assembly().transform->row_space().tables();
    batch_.dense_width = subject.assembly().transform->schema().dense.size();
    batch_.slots = tables.size();
    // Choices by score list the rows that were touched: here each is touched in both worlds.
    const bool few = subject.tried().query == Query::kTopRows || random_() % 3 == 0;
    const double number = NumberOf(random_());
    const size_t share = 2 + random_() % kUsers;
    for (uint64_t offset = 0; offset < kOffsets; ++offset) {
      const size_t user = random_() % share == 0 ? 0 : 1 + random_() % (kUsers - 1);
      const bool canary = users ? user == 0 : offset == unit_.offset;
      Add(offset, fmt::format("user-{}", user), canary ? number : NumberOf(random_() % 3),
          few ? 4 : 1000);
    }
  }

  const Canary& unit() const { return unit_; }
  const event::Batch& batch() const { return batch_; }

 private:
  static double NumberOf(uint64_t drawn) {
    static constexpr std::array kNumbers = {1.0, 0.0, -0.5, 30.0, -30.0, 1e3, -1e6, 1e30};
    return kNumbers[drawn % kNumbers.size()];
  }
  void Add(uint64_t offset, const std::string& user, double number, uint64_t rows) {
    const auto& tables = subject_.assembly().transform->row_space().tables();
    batch_.offset.push_back(offset);
    batch_.timestamp_ms.push_back(static_cast<int64_t>(offset + 1));
    batch_.label.push_back(subject_.tried().of_items() ? 1 : static_cast<float>(random_() % 2));
    batch_.dense.insert(batch_.dense.end(), batch_.dense_width, static_cast<float>(number));
    for (const RowSpace::Table& table : tables) {
      batch_.row.push_back(table.first + random_() % std::min(rows, table.rows));
      batch_.slot_end.push_back(static_cast<uint32_t>(batch_.row.size()));
    }
    batch_.user.Append(user);
    if (subject_.tried().of_items()) batch_.item.push_back(random_() % kItems);
  }

  const Subject& subject_;
  std::mt19937_64 random_;
  Canary unit_;
  event::Batch batch_;
};

class NobodyBefore final : public stream::AllowanceView {
 public:
  Result<uint64_t> Read(std::span<UserUses>) override { return uint64_t{0}; }
};

// Keeps the bills. It has no ledger, whose epsilons take seconds and are not looked at here.
class BillStore final : public train::RememberingStore {
 public:
  double EpsilonAfter(std::span<const privacy::CommitCharge>) const override { return 0; }
  Status Commit(store::CommitRequest request, std::function<void(Status)> done) override {
    commits.push_back(std::move(request));
    done({});
    return {};
  }
};

// The histories that a world's store has.
class Histories {
 public:
  void Take(std::optional<store::HistoryCommit> commit) {
    if (!commit) return;
    step_ = commit->step;
    for (store::UserHistory& user : commit->appended) {
      auto& items = of_[user.user];
      items.insert(items.end(), user.items.begin(), user.items.end());
      if (items.size() > commit->items_most)
        items.erase(items.begin(), items.end() - static_cast<ptrdiff_t>(commit->items_most));
    }
  }
  Result<uint64_t> Read(std::span<store::UserHistory> users) const {
    for (store::UserHistory& user : users)
      if (const auto found = of_.find(user.user); found != of_.end()) user.items = found->second;
    return step_;
  }

 private:
  std::unordered_map<Hash128, std::vector<store::HistoryItem>> of_;
  uint64_t step_ = 0;
};

class Runner {
 public:
  Runner(const Subject& subject, uint64_t seed, const Planted& planted)
      : subject_(subject), planted_(planted), seed_(seed), records_(subject, seed) {
    store_.Add("it", subject.plan().model->Rows());
  }

  Reading Read() && {
    std::vector<train::LearnerStep> steps = Cut();
    const size_t restart = RestartIn(steps);
    Train(std::span(steps).first(restart), {});
    if (restart < steps.size())
      Train(std::span(steps).subspan(restart), steps[restart - 1].batch.after);
    CompareBill();
    CompareUses();
    return std::move(reading_);
  }

 private:
  // A place, other in each run, where the service stops and starts again: behind a step, and not
  // within a held period.
  size_t RestartIn(std::span<const train::LearnerStep> steps) const {
    std::vector<size_t> places = {steps.size()};
    for (size_t i = 1; i < steps.size(); ++i) {
      const StepBatch::Kind kind = steps[i].batch.kind;
      if (!steps[i - 1].batch.preview() &&
          (kind == StepBatch::Kind::kOnce || kind == StepBatch::Kind::kPreview))
        places.push_back(i);
    }
    return places[seed_ % places.size()];
  }

  std::unique_ptr<train::Learner> MakePair(uint64_t steps_taken) {
    auto pair = std::make_unique<PairLearner>(
        MakeWorld(store_.working_rows(LearnerIndex(0)), steps_taken, histories_[0]),
        MakeWorld(other_rows_, steps_taken, histories_[1]),
        PairLearner::Options{.unit = records_.unit(),
                             .covered = !subject_.tried().of_items() &&
                                        subject_.tried().query != Query::kRepresentation,
                             .plant = planted_.step},
        std::make_unique<noise::FixedNoise>(static_cast<uint8_t>(seed_ + steps_taken)), &reading_);
    if (steps_taken == 0 && (pair->charge() != subject_.plan().charge ||
                             pair->opening_charge() != subject_.plan().opening_charge))
      reading_.Wrong("the learner's price is not the one that was planned");
    return planted_.pair ? planted_.pair(std::move(pair)) : std::move(pair);
  }

  // Trains learners that go on from the last commit, if there was one.
  void Train(std::span<train::LearnerStep> some, const stream::Position& position) {
    BoundedQueue<train::LearnerStep> steps(some.size());
    for (train::LearnerStep& step : some) steps.Push(std::move(step));
    steps.Close();
    std::vector<train::ResumedLearner> learners;
    learners.push_back({.learner = MakePair(position.step), .position = position});
    train::TrainerOptions options{.budgets = {{.epsilon = HUGE_VAL, .delta = 1e-6}},
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
    if (!outcome) reading_.Wrong(outcome.error().message);
  }

  World MakeWorld(store::WorkingRows& rows, uint64_t steps_taken,
                  const std::shared_ptr<Histories>& histories) {
    const wiring::ModelPlan& model = *subject_.plan().model;
    auto tape = std::make_unique<lab::TwinNoise>();
    World world{.noise = tape.get()};
    std::unique_ptr<noise::NoiseSource> noise = std::move(tape);
    if (planted_.noise) noise = planted_.noise(std::move(noise));
    wiring::LearnerParts parts{
        .noise = std::move(noise),
        .backend = *backend_,
        .workers = workers_,
        .rows = rows,
        .dense = reading_.dense.get(),
        .steps_taken = steps_taken,
        .histories = [histories](auto users) { return histories->Read(users); }};
    auto made = planted_.learner ? planted_.learner(subject_, std::move(parts))
                                 : model.Make(std::move(parts));
    EXPECT_TRUE(made) << made.error().message;
    world.learner = *std::move(made);
    if (reading_.released) {
      EXPECT_TRUE(world.learner->LoadReleased(*reading_.released));
    }
    world.settle = [histories, learner = world.learner.get()] {
      histories->Take(learner->TakeHistories());
      return learner->Settle();
    };
    world.rows = [&rows, layout = model.Rows()] { return AllOf(rows, layout); };
    return world;
  }

  static std::vector<float> AllOf(store::WorkingRows& rows, const store::RowLayout& layout) {
    std::vector<float> all;
    if (layout.space.rows() == 0) return all;
    std::vector<uint64_t> ids(layout.space.rows());
    std::iota(ids.begin(), ids.end(), uint64_t{0});
    std::vector<float*> places(ids.size());
    EXPECT_TRUE(rows.Gather(ids, places));
    for (const uint64_t id : ids)
      all.insert(all.end(), places[id], places[id] + layout.RowFloats(layout.space.TableOf(id)));
    return all;
  }

  std::vector<train::LearnerStep> Cut() {
    std::vector<train::LearnerStep> steps;
    const wiring::LearnerPlan& plan = subject_.plan();
    const config::Participation& configured = subject_.configured().participation;
    NobodyBefore nobody;
    stream::AllowanceBook book(nobody);
    wiring::ParticipationSetting setting{
        .has_files = true,
        .opening_offsets = plan.model->OpeningRecords(),
        .growing_from = config::FirstPeriod(subject_.configured())};
    if (subject_.tried().of_users()) {
      setting.users = wiring::UsersOf(configured, plan.promise.bounds, {}, book);
      if (planted_.lets_all_in) setting.users->allowance = 1000;
    }
    const auto participation = wiring::MakeParticipationOf(configured, setting)({});
    const auto emit = [&](StepBatch&& step) {
      steps.push_back(
          {.learner = LearnerIndex(0), .batch = std::move(step), .source_identity = "log"});
      return true;
    };
    for (uint64_t first = 0; first < kOffsets; first += kFrame) {
      event::RawRecords frame;
      frame.first_offset = first;
      frame.end.resize(kFrame);
      event::Batch batch = event::EmptyLike(records_.batch());
      batch.AppendRange(records_.batch(), first, first + kFrame);
      EXPECT_TRUE(participation->Cut(frame, batch, emit)) << participation->status().has_value();
    }
    EXPECT_TRUE(participation->Finish(emit));
    return steps;
  }

  // The bill up to each commit, one for each step, covers what was declared until then.
  void CompareBill() {
    double charged = 0, rho = 0, declared = 0;
    if (!reading_.parted && store_.commits.size() != reading_.steps)
      reading_.Wrong(fmt::format("{} commits of {} steps", store_.commits.size(), reading_.steps));
    for (size_t i = 0; i < reading_.declared.size() && i < store_.commits.size(); ++i) {
      for (const store::LearnerCommit& commit : store_.commits[i].learners)
        for (const privacy::CommitCharge& charge : commit.charges) {
          charged += static_cast<double>(charge.steps) * charge.charge.MuSquared();
          rho += static_cast<double>(charge.steps) * charge.charge.zcdp_rho;
        }
      declared += reading_.declared[i];
      if (declared > charged * (1 + 1e-9))
        reading_.Wrong(fmt::format("the bill of commit {} is mu^2 = {:.6g}, and {:.6g} was asked",
                                   i + 1, charged, declared));
    }
    if (reading_.choices > 0 && rho == 0) reading_.Wrong("a choice by score is not on the bill");
    // The other way round: nothing is charged that was not asked.
    if (!reading_.parted && declared < charged * 0.99)
      reading_.Wrong(
          fmt::format("the bill is mu^2 = {:.6g}, and {:.6g} was asked", charged, declared));
  }

  // The unit is in no more steps than its promise counts.
  void CompareUses() {
    const Case& tried = subject_.tried();
    const config::Participation& p = subject_.configured().participation;
    const uint64_t of_period =
        tried.mode == ParticipationMode::kAllocate ? p.blocks : p.PeriodSteps();
    uint64_t most = tried.mode == ParticipationMode::kOnce ? 1 : of_period;
    if (tried.of_users()) {
      const uint64_t allowance = subject_.plan().promise.bounds.allowance;
      most = tried.mode == ParticipationMode::kOnce ? allowance
                                                    : allowance / p.PeriodSteps() * of_period;
    }
    if (reading_.steps_with_unit > most)
      reading_.Wrong(fmt::format("the unit is in {} steps, and {} are counted",
                                 reading_.steps_with_unit, most));
  }

  const Subject& subject_;
  const Planted& planted_;
  const uint64_t seed_;
  const Records records_;
  WorkerPool workers_{{.workers = 1}};
  const std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
  BillStore store_;
  train::MemoryRows other_rows_{subject_.plan().model->Rows()};
  const std::array<std::shared_ptr<Histories>, 2> histories_ = {std::make_shared<Histories>(),
                                                                std::make_shared<Histories>()};
  Reading reading_;
};

}  // namespace

Subject::Subject(const Case& tried) : tried_(tried), assembly_(Assembled(tried, dir_)) {}

Reading ReadTape(const Subject& subject, uint64_t seed, const Planted& planted) {
  return Runner(subject, seed, planted).Read();
}

}  // namespace tacit::tape
