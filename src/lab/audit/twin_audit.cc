#include "lab/audit/twin_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/threads/worker_pool.h"
#include "lab/audit/twin_noise.h"
#include "lab/audit/worlds.h"
#include "ops/backend.h"
#include "train/click/memory_rows.h"
#include "wiring/plans/mechanism_factory.h"
#include "wiring/plans/mechanism_kinds.h"

namespace tacit::lab {
namespace {

using stream::StepBatch;

// ln of a ratio that says for certain; e to it is a number yet.
constexpr double kCertain = 600;
// Items of the catalogue: the learner's code and its price are the same for any number. Each run
// makes learners, of which counts have tables of pairs: they take the square of it.
constexpr uint32_t kItemsMost = 512, kCountedItemsMost = 64;
constexpr size_t kRecordsOfClicker = 3;
constexpr int kPilots = 3;
// A model of counts takes a tenth of a second to be made. It goes on with this many
// runs, whose users are new ones.
constexpr uint64_t kRunsOfCounts = 100;

// The records of the canary and of the others. Which ones move the sums most depends on the model.
struct People {
  size_t others = 2;
  size_t records = 1;    // of each
  bool alike = false;    // the others have what the canary has
  double number = 1;     // the canary's dense numbers
  float label = 1;       // the canary's
  float parameters = 1;  // the first model's, times this
};

std::vector<People> PeopleOfItems(const wiring::LearnerPlan& plan) {
  std::vector<People> tried;
  // Counts measure the pairs that stand out: many others make those of the canary do so.
  if (plan.charge.mechanism == privacy::MechanismKind::kCounts) {
    for (const size_t others : {3, 100, 400})
      tried.push_back({.others = others, .records = 2, .alike = true});
    return tried;
  }
  for (const float parameters : {1.0f, 10.0f})
    for (const size_t records : {2, 12})
      for (const bool alike : {false, true})
        tried.push_back({.others = alike ? size_t{20} : size_t{2},
                         .records = records,
                         .alike = alike,
                         .parameters = parameters});
  return tried;
}

std::vector<People> PeopleOfClicks(bool users) {
  std::vector<People> tried;
  for (const float label : {1.0f, 0.0f})
    for (const double number : {1.0, -1.0, 30.0, -30.0, 1e3, -1e3})
      tried.push_back({.records = users ? kRecordsOfClicker : 1, .number = number, .label = label});
  return tried;
}

// Records of everybody, the canary's first, those of one person side by side.
event::Batch RecordsOf(const People& people, const wiring::Assembly& assembly, uint32_t items) {
  event::Batch batch;
  const auto& tables = assembly.transform->row_space().tables();
  batch.dense_width = assembly.transform->schema().dense.size();
  batch.slots = tables.size();
  for (size_t person = 0; person <= people.others; ++person) {
    const bool canary = person == 0;
    const bool last = person == people.others && !people.alike;
    const double number = canary ? people.number : last ? 0.5 : 0;
    for (size_t i = 0; i < people.records; ++i) {
      batch.offset.push_back(batch.offset.size());
      batch.timestamp_ms.push_back(static_cast<int64_t>(batch.offset.size()));
      batch.label.push_back(items > 0 ? 1 : canary ? people.label : 0);
      batch.dense.insert(batch.dense.end(), batch.dense_width, static_cast<float>(number));
      for (const RowSpace::Table& table : tables) {
        batch.row.push_back(table.first + (last ? table.rows - 1 : 0));
        batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
      }
      batch.user.Append(fmt::format("person-{}", person));
      if (items == 0) continue;
      const uint32_t first = people.alike ? 0 : canary ? items / 2 : static_cast<uint32_t>(person);
      batch.item.push_back((first + static_cast<uint32_t>(i)) % items);
    }
  }
  return batch;
}

// Everybody comes for the first time.
class NobodyBefore final : public stream::AllowanceView {
 public:
  Result<uint64_t> Read(std::span<UserUses>) override { return uint64_t{0}; }
};

class TwinAudit final : public LikelihoodAudit {
 public:
  TwinAudit(std::shared_ptr<const wiring::Assembly> assembly, size_t index,
            LikelihoodAuditOptions options)
      : assembly_(std::move(assembly)), index_(index), options_(std::move(options)) {
    if (!options_.source) options_.source = [](size_t) { return noise::MakeNoiseSource(); };
  }

  Status Prepare() {
    TACIT_RETURN_IF_ERROR(PlanModel());
    events_ = plan().charge.Events(once() ? 1 : configured().participation.PeriodSteps());
    if (plan().opening_charge) {
      for (const privacy::CountedEvent& event : plan().opening_charge->Events(1))
        events_.push_back(event);
    }
    const std::vector<People> tried =
        plan().recommends ? PeopleOfItems(plan()) : PeopleOfClicks(configured().privacy.of_users());
    People best;
    for (const People& people : tried) {
      TACIT_RETURN_IF_ERROR(Choose(people));
      moved_ = charged_ = 0;
      for (int i = 0; i < kPilots; ++i) TACIT_RETURN_IF_ERROR(Ok(RunOnce(0, false)));
      const double reach = std::sqrt(moved_ / charged_);
      if (!std::isfinite(reach) || reach <= 1.01 * reach_) continue;
      reach_ = reach;
      best = people;
    }
    return Choose(best);
  }

  const std::vector<privacy::CountedEvent>& events() const override { return events_; }
  double delta() const override { return plan().promise.delta; }
  double reach() const override { return reach_; }
  std::string run_text() const override {
    const std::string unit(privacy::Name(plan().promise.unit));
    const std::string opening = plan().opening_charge ? " and what opens it" : "";
    if (once()) return fmt::format("a step of once on one {}{}", unit, ItemsText());
    return fmt::format(
        "a period of {} of {}{} on one {}{}", privacy::Name(plan().promise.participation),
        Counted(configured().participation.PeriodSteps(), "step"), opening, unit, ItemsText());
  }
  Status Run(uint64_t runs, audit::RunStatistics* statistics) override {
    for (size_t i = workers_.size(); i < options_.workers; ++i) AddWorker();
    return RunInBothWorlds(
        runs, options_.workers, [&](size_t worker, bool canary) { return RunOnce(worker, canary); },
        statistics);
  }

 private:
  // A learner, with what it needs to live.
  struct Twin {
    std::unique_ptr<train::MemoryRows> rows;
    TwinNoise* noise = nullptr;
    std::unique_ptr<train::Learner> learner;
    std::shared_ptr<const store::DenseState> dense;
    std::shared_ptr<const std::string> released;
    std::shared_ptr<uint64_t> steps = std::make_shared<uint64_t>(0);  // taken so far
    bool possible = true;  // all that left may have come from it
  };
  struct Twins {
    Twin without, with;
    std::optional<Twin> beside;  // in the period, and not in its first step
    uint64_t runs = 0;

    bool possible() const {
      return without.possible && with.possible && (!beside || beside->possible);
    }
  };
  struct Worker {
    std::optional<Twins> twins;
    uint64_t runs = 0;
    std::unique_ptr<noise::NoiseSource> source;
    std::unique_ptr<WorkerPool> pool;
    std::unique_ptr<ops::Backend> backend;
    uint64_t next_offset = 0;
  };

  const wiring::LearnerPlan& plan() const { return assembly_->learners[index_]; }
  const config::Learner& configured() const { return assembly_->config.learners[index_]; }
  bool once() const { return plan().promise.participation == privacy::ParticipationMode::kOnce; }
  bool counts_pairs() const {
    return plan().charge.mechanism == privacy::MechanismKind::kCounts ||
           configured().model.sequence.start == config::Sequence::Start::kCounts;
  }
  // Tells of a catalogue that was cut.
  std::string ItemsText() const {
    if (items_ == 0 || items_ == assembly_->items->items()) return "";
    return fmt::format(
        " and the first {} of {} (each run makes its learners; neither price nor noise goes by the "
        "number of items)",
        items_, Counted(assembly_->items->items(), "item"));
  }
  size_t persons() const { return people_.others + 1; }
  static Status Ok(const Result<double>& ratio) {
    if (!ratio) return Fail(ratio.error());
    return {};
  }
  void AddWorker() {
    Worker made{.twins = {},
                .source = options_.source(workers_.size()),
                .pool = std::make_unique<WorkerPool>(WorkerPool::Options{.workers = 1}),
                .backend = nullptr};
    made.backend = ops::MakeCpuBackend(*made.pool);
    workers_.push_back(std::move(made));
  }

  // The learner's own plan, for a short catalogue.
  Status PlanModel() {
    AddWorker();
    model_ = plan().model;
    if (!plan().recommends) return {};
    items_ = std::min(counts_pairs() ? kCountedItemsMost : kItemsMost, assembly_->items->items());
    const wiring::PlanParts parts{
        .config = assembly_->config,
        .index = index_,
        .transform = assembly_->transform,
        .items = std::make_shared<const event::ItemCatalogue>(assembly_->items->First(items_))};
    for (const wiring::LearnerKind& kind : wiring::AllLearnerKinds())
      if (kind.kind == configured().model.kind) {
        TACIT_ASSIGN(model_, kind.plan(parts));
      }
    TACIT_CHECK(model_->charge().noise_multiplier == plan().charge.noise_multiplier,
                "a catalogue's length moves no noise");
    return {};
  }

  Status Choose(const People& people) {
    people_ = people;
    records_ = RecordsOf(people, *assembly_, items_);
    first_model_ = nullptr;
    for (Worker& worker : workers_) worker.twins.reset();
    if (people.parameters != 1) {
      TACIT_ASSIGN(const Twin twin, MakeTwin(workers_.front()));
      auto dense = std::make_shared<store::DenseState>();
      if (const auto initial = twin.learner->CopyDense()) *dense = *initial;
      for (float& parameter : dense->parameters) parameter *= people.parameters;
      first_model_ = std::move(dense);
    }
    return {};
  }

  Result<Twin> MakeTwin(const Worker& worker) const {
    Twin twin;
    twin.rows = std::make_unique<train::MemoryRows>(model_->Rows());
    auto noise = std::make_unique<TwinNoise>();
    twin.noise = noise.get();
    wiring::LearnerParts parts{
        .noise = std::move(noise),
        .backend = [&worker]() -> ops::Backend& { return *worker.backend; },
        .workers = *worker.pool,
        .rows = *twin.rows,
        .dense = first_model_.get(),
        .histories = [steps = twin.steps](auto) -> Result<uint64_t> { return *steps; }};
    TACIT_ASSIGN(twin.learner, options_.learner ? options_.learner(*model_, std::move(parts))
                                                : model_->Make(std::move(parts)));
    return twin;
  }

  // The twins of the next run: new ones, or those of counts once more.
  Status Prepare(Worker& worker) const {
    ++worker.runs;
    if (counts_pairs() && worker.twins && worker.twins->possible() &&
        ++worker.twins->runs < kRunsOfCounts)
      return {};
    worker.twins.reset();
    TACIT_ASSIGN(Twin without, MakeTwin(worker));
    TACIT_ASSIGN(Twin with, MakeTwin(worker));
    std::optional<Twin> beside;
    if (plan().opening_charge) {
      TACIT_ASSIGN(beside, MakeTwin(worker));
    }
    worker.twins.emplace(std::move(without), std::move(with), std::move(beside));
    return {};
  }

  // The step of these people, and of nobody else, in the frame of another.
  StepBatch StepOf(const Worker& worker, const StepBatch& frame, std::span<const size_t> who,
                   uint64_t first) const {
    StepBatch step;
    step.kind = frame.kind;
    step.ranges = frame.ranges;
    step.period_steps = frame.period_steps;
    step.after = frame.after;
    step.examples = event::EmptyLike(records_);
    for (const size_t person : who) {
      step.examples.AppendRange(records_, person * people_.records, (person + 1) * people_.records);
      step.unit_of.resize(step.examples.size(), step.units++);
    }
    for (uint64_t& offset : step.examples.offset) offset += first;
    step.examples.user.Clear();
    for (const size_t person : who)
      for (size_t i = 0; i < people_.records; ++i)
        step.examples.user.Append(fmt::format("person-{}-of-{}", person, worker.runs));
    return step;
  }

  Status Take(Twin& twin, StepBatch& step) const {
    static const std::atomic<bool> kNever = false;
    train::StepReport report;
    if (step.preview()) return twin.learner->Preview(step, &report);
    step.after.step = *twin.steps + 1;
    TACIT_ASSIGN(const bool taken, twin.learner->TakeStep(step, kNever, &report));
    TACIT_CHECK(taken, "nobody abandons the step");
    ++*twin.steps;
    TACIT_RETURN_IF_ERROR(twin.learner->Settle());
    twin.dense = twin.learner->CopyDense();
    if (auto released = twin.learner->TakeReleased()) twin.released = std::move(released);
    return {};
  }

  static bool SameState(const Twin& a, const Twin& b) {
    const bool dense = a.dense == nullptr || b.dense == nullptr
                           ? a.dense == b.dense
                           : a.dense->parameters == b.dense->parameters &&
                                 a.dense->optimizer == b.dense->optimizer;
    const bool released = a.released == nullptr || b.released == nullptr
                              ? a.released == b.released
                              : *a.released == *b.released;
    return dense && released;
  }

  // ln of how much likelier what has left is by this twin than by the one without the canary.
  static TwinRatio Compare(const Twin& twin, const Twin& without) {
    if (twin.possible && without.possible) return RatioOf(*twin.noise, *without.noise);
    return {.log = twin.possible ? kCertain : without.possible ? -kCertain : 0};
  }

  // One step taken by all twins, each with its own people; the first one leads.
  struct Part {
    Twin* twin;
    StepBatch step;
  };
  Status TakeAll(Worker& worker, std::span<Part> parts) const {
    Twin& leader = *parts.front().twin;
    leader.noise->Lead(worker.source.get());
    for (Part& part : parts) {
      if (part.twin != &leader) part.twin->noise->Follow(*leader.noise);
      TACIT_RETURN_IF_ERROR(Take(*part.twin, part.step));
      if (part.step.preview()) continue;
      part.twin->possible =
          part.twin == &leader || (!part.twin->noise->strayed() && SameState(*part.twin, leader));
    }
    return {};
  }

  Result<double> RunOnce(size_t number, bool canary) {
    Worker& worker = workers_[number];
    TACIT_RETURN_IF_ERROR(Prepare(worker));
    return once() ? RunStep(worker, canary) : RunPeriod(worker, canary);
  }

  Result<double> RunStep(Worker& worker, bool canary) {
    Twin &without = worker.twins->without, &with = worker.twins->with;
    StepBatch frame;
    frame.ranges = {{0, 0, std::max<uint64_t>(plan().batch, records_.size())}};
    std::vector<size_t> all(persons());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    std::array<Part, 2> parts{Part{&without, StepOf(worker, frame, std::span(all).subspan(1), 0)},
                              Part{&with, StepOf(worker, frame, all, 0)}};
    if (canary) std::swap(parts[0], parts[1]);
    TACIT_RETURN_IF_ERROR(TakeAll(worker, parts));
    const TwinRatio ratio = Compare(with, without);
    Note(number_of(worker), ratio.squared, plan().charge.MuSquared());
    return std::clamp(ratio.log, -kCertain, kCertain);
  }

  // A period in the product's own participation, which draws who is in which step.
  Result<double> RunPeriod(Worker& worker, bool canary);

  size_t number_of(const Worker& worker) const {
    return static_cast<size_t>(&worker - workers_.data());
  }
  // Only the pilots' runs are looked at, which one worker makes.
  void Note(size_t worker, double squared, double charged) {
    if (worker != 0) return;
    moved_ += squared;
    charged_ += charged;
  }

  const std::shared_ptr<const wiring::Assembly> assembly_;
  const size_t index_;
  LikelihoodAuditOptions options_;
  std::shared_ptr<const wiring::ModelPlan> model_;
  uint32_t items_ = 0;
  std::vector<privacy::CountedEvent> events_;
  double reach_ = 0;
  double moved_ = 0, charged_ = 0;  // of pilots
  People people_;
  event::Batch records_;
  std::shared_ptr<const store::DenseState> first_model_;  // if null, as the learner begins
  std::vector<Worker> workers_;
};

Result<double> TwinAudit::RunPeriod(Worker& worker, bool canary) {
  Twin &without = worker.twins->without, &with = worker.twins->with;
  std::optional<Twin>& beside = worker.twins->beside;
  NobodyBefore nobody;
  stream::AllowanceBook book(nobody);
  config::Participation p = configured().participation;
  p.period = records_.size();
  p.period_files = 0;
  wiring::ParticipationSetting setting;
  if (configured().privacy.of_users())
    setting.users = wiring::UsersOf(configured().participation, plan().promise.bounds, {}, book);
  const auto participation = wiring::MakeParticipationOf(p, setting)({});

  const uint64_t first = std::exchange(worker.next_offset, worker.next_offset + records_.size());
  event::Batch records = event::EmptyLike(records_);
  records.AppendRange(records_, canary ? 0 : people_.records, records_.size());
  for (uint64_t& offset : records.offset) offset += first;
  event::RawRecords frame;
  frame.first_offset = first;
  frame.end.resize(records_.size());

  const uint64_t block = plan().charge.block_steps;
  const double rate = plan().charge.sampling_rate;
  const double in_full = 1 / (plan().charge.noise_multiplier * plan().charge.noise_multiplier);
  double ratio = 0, of_block = 0;
  uint64_t taken = 0;
  bool previewed = false;
  Status failed;
  const auto take = [&](const StepBatch& seen) -> Status {
    std::vector<size_t> others;
    bool in = false;
    for (size_t i = 0; i < seen.examples.size(); ++i) {
      const size_t person = (seen.examples.offset[i] - first) / people_.records;
      if (person == 0) in = true;
      if (person > 0 && (others.empty() || others.back() != person)) others.push_back(person);
    }
    // One of the others touches the canary's rows in every step, because the rows of a sum show
    // who touched them. The auditor knows the others' steps, and looks at runs of that kind.
    if (!plan().recommends && (others.empty() || others.front() != 1))
      others.insert(others.begin(), 1);
    std::vector<size_t> all = others;
    if (!seen.preview() || !std::exchange(previewed, true)) all.insert(all.begin(), 0);
    std::vector<Part> parts;
    parts.push_back({&without, StepOf(worker, seen, others, first)});
    parts.push_back({&with, StepOf(worker, seen, all, first)});
    const bool opens = beside && taken == 0;
    if (beside)
      parts.push_back({&*beside, StepOf(worker, seen, seen.preview() ? all : others, first)});
    if (canary) std::swap(parts[0], parts[in ? 1 : opens ? 2 : 0]);
    TACIT_RETURN_IF_ERROR(TakeAll(worker, parts));
    if (seen.preview()) return {};
    const TwinRatio with_it = Compare(with, without);
    const TwinRatio opening = opens ? Compare(*beside, without) : TwinRatio{};
    Note(number_of(worker), with_it.squared,
         in_full + (opens ? plan().opening_charge->MuSquared() : 0));
    const double in_step = std::clamp(with_it.log - opening.log, -kCertain, kCertain);
    ratio += opening.log;
    ++taken;
    if (block == 0) {
      ratio += std::log1p(rate * std::expm1(in_step));
    } else {
      of_block += std::exp(in_step) / static_cast<double>(block);
      if (taken % block == 0) ratio += std::log(std::exchange(of_block, 0));
    }
    return {};
  };
  participation->Cut(frame, records, [&](StepBatch&& step) {
    failed = take(step);
    return failed.has_value();
  });
  TACIT_RETURN_IF_ERROR(std::move(failed));
  TACIT_RETURN_IF_ERROR(participation->status());
  TACIT_CHECK(taken == p.PeriodSteps(), "the period is not full");
  return std::clamp(ratio, -kCertain, kCertain);
}

}  // namespace

Result<std::unique_ptr<LikelihoodAudit>> MakeTwinAudit(
    std::shared_ptr<const wiring::Assembly> assembly, size_t index,
    LikelihoodAuditOptions options) {
  auto made = std::make_unique<TwinAudit>(std::move(assembly), index, std::move(options));
  TACIT_RETURN_IF_ERROR(made->Prepare());
  return std::unique_ptr<LikelihoodAudit>(std::move(made));
}

}  // namespace tacit::lab
