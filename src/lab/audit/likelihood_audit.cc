#include "lab/audit/likelihood_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/threads/worker_pool.h"
#include "lab/audit/tap.h"
#include "lab/audit/twin_audit.h"
#include "lab/audit/worlds.h"
#include "ops/backend.h"
#include "privacy/bill.h"
#include "train/click/memory_rows.h"
#include "wiring/assembly.h"
#include "wiring/plans/mechanism_factory.h"

namespace tacit::lab {
namespace {

using stream::StepBatch;

// The records: the canary's, one that touches the same rows and weighs little (so that the rows
// that have a sum are the same in both worlds), and another. A doubter is what the canary is, but
// with the other label; a stranger is what the other is, with a doubter's label.
enum Who : size_t { kCanary, kShadow, kOther, kPeople, kDoubter = kPeople, kStranger };
constexpr size_t kRecordsOfAUser = 3;

// A hand on the learner: it is asked to stay where it is, for the auditor knows the gradients at
// the first model alone. What follows a release is free, so this changes nothing of the charge.
constexpr double kNoMove = 1e-35;

tl::unexpected<Error> RefuseAudit(const std::string& learner, const std::string& why) {
  return Fail(ErrorCode::kRefused,
              fmt::format("learner '{}' cannot be audited in white-box: {}", learner, why));
}

// Empty if the learner can be audited.
std::string WhyNotAudited(const wiring::LearnerPlan& plan) {
  if (!plan.charge.Bounded()) return "it promises nothing, so that there is nothing to hold it to";
  if (plan.charge.zcdp_rho > 0)
    return "its rows are chosen by exponential noise, and the likelihood of a choice cannot be "
           "read off what the noise was added to";
  if (plan.opening_charge && plan.opening_charge->zcdp_rho > 0)
    return "its vocabulary is chosen by exponential noise (mechanism.vocabulary.query: gumbel), "
           "and the likelihood of a choice cannot be read off what the noise was added to";
  return "";
}

// A learner that keeps what it released, and goes on with it, has to be run beside its twin.
bool NeedsTwin(const config::Learner& learner, const wiring::LearnerPlan& plan) {
  const bool held = plan.promise.participation != privacy::ParticipationMode::kOnce;
  return plan.recommends || plan.opening_charge || plan.charge.sigma_clip > 0 ||
         (held && learner.privacy.of_users());
}

// The canary's numbers and label, and the crowd that a linear model has seen before it. The model
// decides which ones move the sums most: a unit of the network may be off on one side, and a label
// that is foreseen moves nothing.
struct Form {
  double size = 1;
  float label = 1;
  size_t doubters = 400;  // in each of the periods before the last
  size_t movers = 0;      // in the last one, among as many strangers as there were doubters
};

// Records in the learner's own space. The canary's numbers are large, the others' are not.
event::Batch MakeRecords(const event::FeatureTransform& transform, const RowSpace& space,
                         std::span<const Who> who, const Form& form) {
  event::Batch batch;
  batch.dense_width = transform.schema().dense.size();
  batch.slots = space.tables().size();
  for (size_t i = 0; i < who.size(); ++i) {
    batch.offset.push_back(i);
    batch.timestamp_ms.push_back(0);
    const bool doubts = who[i] == kDoubter || who[i] == kStranger;
    batch.label.push_back(who[i] == kCanary ? form.label : doubts ? 1 - form.label : 0);
    const bool large = who[i] == kCanary || who[i] == kDoubter;
    const double number = large ? form.size : who[i] == kShadow ? 0 : 0.5;
    batch.dense.insert(batch.dense.end(), batch.dense_width, static_cast<float>(number));
    for (const RowSpace::Table& table : space.tables()) {
      const bool elsewhere = who[i] == kOther || who[i] == kStranger;
      batch.row.push_back(table.first + (elsewhere ? table.rows - 1 : 0));
      batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
    }
  }
  return batch;
}

using Draws = std::vector<Tap::Draw>;

// A model that learns one step, with a tap in its noise.
class TappedLearner {
 public:
  static Result<std::unique_ptr<TappedLearner>> Make(const wiring::Assembly& assembly,
                                                     size_t index) {
    auto made = std::make_unique<TappedLearner>(assembly, index);
    TACIT_RETURN_IF_ERROR(made->Begin());
    return made;
  }
  TappedLearner(const wiring::Assembly& assembly, size_t index)
      : plan_(assembly.learners[index]), backend_(ops::MakeCpuBackend(workers_)) {}

  // Back to the first model.
  Status Begin() {
    rows_ = std::make_unique<train::MemoryRows>(plan_.model->Rows());
    auto tap = std::make_unique<Tap>();
    tap_ = tap.get();
    TACIT_ASSIGN(learner_,
                 plan_.model->Make({.noise = std::move(tap),
                                    .backend = [this]() -> ops::Backend& { return *backend_; },
                                    .workers = workers_,
                                    .rows = *rows_}));
    return {};
  }

  // The numbers that leave in this step; without noise where there is no source.
  Result<std::span<const Tap::Draw>> Release(const StepBatch& step, noise::NoiseSource* noise) {
    tap_->From(noise);
    const std::atomic<bool> go_on = false;
    train::StepReport report;
    TACIT_ASSIGN(const bool taken, learner_->TakeStep(step, go_on, &report));
    TACIT_CHECK(taken, "nobody abandons the step");
    return tap_->draws();
  }

 private:
  const wiring::LearnerPlan& plan_;
  WorkerPool workers_{{.workers = 1}};
  const std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<train::MemoryRows> rows_;
  Tap* tap_ = nullptr;
  std::unique_ptr<train::Learner> learner_;
};

// The auditor's knowledge of a run of numbers that leave: those that the canary moves, their sum
// without it, and by how much they are moved.
struct Known {
  double stddev = 0;
  size_t size = 0;  // of all numbers
  std::vector<size_t> at;
  std::vector<double> base, moved;
  double squared = 0;  // of `moved`, in standard deviations
};

Known MakeKnown(const Tap::Draw& without, const Tap::Draw& with) {
  Known known{
      .stddev = without.stddev, .size = without.values.size(), .at = {}, .base = {}, .moved = {}};
  for (size_t i = 0; i < without.values.size(); ++i) {
    if (with.values[i] == without.values[i]) continue;
    known.at.push_back(i);
    known.base.push_back(static_cast<double>(without.values[i]));
    known.moved.push_back(static_cast<double>(with.values[i]) - known.base.back());
    known.squared += known.moved.back() * known.moved.back();
  }
  known.squared /= known.stddev * known.stddev;
  return known;
}

// ln of the likelihood ratio of the canary's being in these numbers.
double LogRatio(const Known& known, const Tap::Draw& seen) {
  double along = 0;
  for (size_t i = 0; i < known.at.size(); ++i)
    along += (static_cast<double>(seen.values[known.at[i]]) - known.base[i]) * known.moved[i];
  return along / (known.stddev * known.stddev) - known.squared / 2;
}

// By how much another contribution moves the numbers along the canary's, in its deviations.
double Along(const Known& known, const Known& other) {
  double along = 0;
  for (size_t i = 0, j = 0; i < known.at.size(); ++i) {
    while (j < other.at.size() && other.at[j] < known.at[i]) ++j;
    if (j < other.at.size() && other.at[j] == known.at[i]) along += known.moved[i] * other.moved[j];
  }
  return along / (known.stddev * known.stddev);
}

// Shared by the two kinds of runs.
class LikelihoodAuditBase : public LikelihoodAudit {
 public:
  LikelihoodAuditBase(std::shared_ptr<const wiring::Assembly> assembly, size_t index,
                      LikelihoodAuditOptions options)
      : assembly_(std::move(assembly)), index_(index), options_(std::move(options)) {
    if (!options_.source) options_.source = [](size_t) { return noise::MakeNoiseSource(); };
  }

  const std::vector<privacy::CountedEvent>& events() const override { return events_; }
  double delta() const override { return plan().promise.delta; }
  double reach() const override { return reach_; }

  Status Run(uint64_t runs, audit::RunStatistics* statistics) override {
    TACIT_RETURN_IF_ERROR(MakeWorkers());
    return RunInBothWorlds(
        runs, options_.workers, [&](size_t worker, bool canary) { return RunOnce(worker, canary); },
        statistics);
  }

 protected:
  const wiring::LearnerPlan& plan() const { return assembly_->learners[index_]; }
  const config::Learner& configured() const { return assembly_->config.learners[index_]; }
  RowSpace Space() const {
    // The stream has a slot for each category, even for those the model does not read.
    return assembly_->transform->row_space();
  }

  StepBatch StepOf(std::span<const Who> who, const Form& form) const {
    StepBatch step;
    const bool users = configured().privacy.of_users();
    std::vector<Who> records;
    for (const Who one : who) {
      const size_t times = users ? kRecordsOfAUser : 1;
      for (size_t i = 0; i < times; ++i) {
        records.push_back(one);
        step.unit_of.push_back(step.units);
      }
      ++step.units;
    }
    step.examples = MakeRecords(*assembly_->transform, Space(), records, form);
    step.ranges = {{0, 0, std::max<uint64_t>(plan().batch, records.size())}};
    return step;
  }
  bool moves() const { return configured().model.kind == config::ModelKind::kLinear; }
  // Brings a learner to the model that is audited: the first one, or that of a linear model which
  // has seen, without noise, enough doubters to be sure of them. The auditor may choose the model,
  // and the canary's residual is a whole one then. (The first period may set the bias alone.) Then
  // movers, which are what the canary is, make its values move, so that what it adds to the sums
  // along the last move is whole too; too many of them would make its label foreseen.
  Status Bring(TappedLearner& learner, const Form& form) const {
    if (!moves()) return {};
    constexpr int kPeriods = 3;
    const StepBatch doubting = StepOf(std::vector<Who>(form.doubters, kDoubter), form);
    for (int i = 0; i < kPeriods; ++i)
      TACIT_RETURN_IF_ERROR(Ok(learner.Release(doubting, nullptr)));
    if (form.movers == 0) return {};
    std::vector<Who> last(form.doubters, kStranger);
    last.insert(last.end(), form.movers, kCanary);
    return Ok(learner.Release(StepOf(last, form), nullptr));
  }
  static Status Ok(const Result<std::span<const Tap::Draw>>& seen) {
    if (!seen) return Fail(seen.error());
    return {};
  }
  // Sums without noise of a step with these.
  Result<Draws> Exact(std::span<const Who> who, const Form& form) const {
    TACIT_ASSIGN(const auto learner, TappedLearner::Make(*assembly_, index_));
    TACIT_RETURN_IF_ERROR(Bring(*learner, form));
    TACIT_ASSIGN(const auto seen, learner->Release(StepOf(who, form), nullptr));
    return Draws(seen.begin(), seen.end());
  }

  virtual Result<double> RunOnce(size_t worker, bool canary) = 0;

  struct Worker {
    std::unique_ptr<TappedLearner> learner;
    std::unique_ptr<noise::NoiseSource> noise;
    std::unique_ptr<stream::Participation> participation;  // of held periods
    uint64_t next_offset = 0;
  };
  Worker& worker(size_t number) { return workers_[number]; }

  const std::shared_ptr<const wiring::Assembly> assembly_;
  const size_t index_;
  LikelihoodAuditOptions options_;
  std::vector<privacy::CountedEvent> events_;
  double reach_ = 0;
  Form form_;  // of the canary

 private:
  Status MakeWorkers() {
    while (workers_.size() < options_.workers) {
      Worker made;
      made.noise = options_.source(workers_.size());
      TACIT_ASSIGN(made.learner, TappedLearner::Make(*assembly_, index_));
      workers_.push_back(std::move(made));
    }
    return {};
  }

  std::vector<Worker> workers_;
};

// Tries several forms of the canary, then of the crowd before it if the model moves, and keeps the
// one that moves the sums most. `squared_at` says by how much, squared and in standard deviations.
template <class F>
Result<Form> Farthest(bool moves, F&& squared_at) {
  Form best;
  double most = -1;
  const auto consider = [&](const Form& form) -> Status {
    TACIT_ASSIGN(const double squared, squared_at(form));
    if (!std::isfinite(squared) || squared <= 1.000001 * most) return {};
    most = squared;
    best = form;
    return {};
  };
  for (const float label : {1.0f, 0.0f})
    for (const double size : {1.0, -1.0, 30.0, -30.0, 1e3, -1e3, 3e4, -3e4})
      TACIT_RETURN_IF_ERROR(consider({.size = size, .label = label}));
  if (!moves) return best;
  const double size = best.size;
  for (const float label : {1.0f, 0.0f})
    for (const size_t doubters : {100, 400, 1600})
      for (size_t movers = 1; movers <= doubters; movers *= 2)
        TACIT_RETURN_IF_ERROR(
            consider({.size = size, .label = label, .doubters = doubters, .movers = movers}));
  return best;
}

// A step of `once`.
class OnceAudit final : public LikelihoodAuditBase {
 public:
  using LikelihoodAuditBase::LikelihoodAuditBase;

  Status Prepare() {
    events_ = plan().charge.Events(1);
    TACIT_ASSIGN(form_, Farthest(moves(), [&](const Form& form) { return Know(form); }));
    TACIT_ASSIGN(const double squared, Know(form_));
    reach_ = std::sqrt(std::max(0.0, squared) / plan().charge.MuSquared());
    steps_ = {StepOf(PeopleOf(false, form_), form_), StepOf(PeopleOf(true, form_), form_)};
    return {};
  }
  std::string run_text() const override {
    return fmt::format("a step of once on one {}", privacy::Name(plan().promise.unit));
  }

 private:
  // A linear model releases the rows of its large tables by their counts: beside doubters enough
  // the canary's own are among them.
  std::vector<Who> PeopleOf(bool canary, const Form& form) const {
    std::vector<Who> people(moves() ? form.doubters : 1, moves() ? kDoubter : kShadow);
    people.push_back(kOther);
    if (canary) people.insert(people.begin(), kCanary);
    return people;
  }

  Result<double> Know(const Form& form) {
    TACIT_ASSIGN(const Draws without, Exact(PeopleOf(false, form), form));
    TACIT_ASSIGN(const Draws with, Exact(PeopleOf(true, form), form));
    known_.clear();
    double squared = 0;
    for (size_t i = 0; i < std::min(without.size(), with.size()); ++i) {
      const bool fits =
          without[i].values.size() == with[i].values.size() && without[i].stddev == with[i].stddev;
      known_.push_back(fits ? MakeKnown(without[i], with[i]) : Known());
      squared += known_.back().squared;
    }
    return squared;
  }

  Result<double> RunOnce(size_t number, bool canary) override {
    Worker& own = worker(number);
    // A linear model moves with each period, by a rule without a rate.
    if (moves()) {
      TACIT_RETURN_IF_ERROR(own.learner->Begin());
      TACIT_RETURN_IF_ERROR(Bring(*own.learner, form_));
    }
    TACIT_ASSIGN(const auto seen, own.learner->Release(steps_[canary ? 1 : 0], own.noise.get()));
    double ratio = 0;
    for (size_t i = 0; i < std::min(seen.size(), known_.size()); ++i) {
      // Rows that a noisy choice has left out, or brought in, make another call of it.
      const bool fits =
          seen[i].values.size() == known_[i].size && seen[i].stddev == known_[i].stddev;
      if (fits && known_[i].squared > 0) ratio += LogRatio(known_[i], seen[i]);
    }
    return ratio;
  }

  std::vector<Known> known_;
  std::array<StepBatch, 2> steps_;
};

// A period of `poisson` or `allocate`: the product's participation draws who is in which step. The
// auditor looks at the dense parameters, which every step releases.
class HeldAudit final : public LikelihoodAuditBase {
 public:
  using LikelihoodAuditBase::LikelihoodAuditBase;

  Status Prepare() {
    const config::Participation& p = configured().participation;
    block_steps_ = plan().charge.block_steps;
    steps_of_period_ = p.PeriodSteps();
    events_ = plan().charge.Events(steps_of_period_);
    const privacy::Charge in_full{.noise_multiplier = plan().charge.noise_multiplier};
    TACIT_ASSIGN(form_, Farthest(moves(), [&](const Form& form) { return Know(form); }));
    TACIT_ASSIGN(const double squared, Know(form_));
    reach_ = std::sqrt(std::max(0.0, squared)) * in_full.noise_multiplier;
    if (squared <= 0)
      return RefuseAudit(plan().id, "its model has no dense parameters that a record moves");
    return {};
  }
  std::string run_text() const override {
    return fmt::format("a period of {} of {} on one {}",
                       privacy::Name(plan().promise.participation),
                       Counted(steps_of_period_, "step"), privacy::Name(plan().promise.unit));
  }

 private:
  // The dense numbers of a step: those that an empty one releases. Rows, and counts of rows, may
  // come before and behind them.
  static std::optional<size_t> DenseAt(std::span<const Tap::Draw> seen, const Draws& empty) {
    for (size_t at = 0; at + empty.size() <= seen.size(); ++at) {
      bool fits = true;
      for (size_t i = 0; i < empty.size() && fits; ++i)
        fits = seen[at + i].values.size() == empty[i].values.size() &&
               seen[at + i].stddev == empty[i].stddev;
      if (fits) return at;
    }
    return std::nullopt;
  }

  // The contribution of one record's unit, along the canary's afterwards.
  Result<std::vector<Known>> ContributionOf(Who who, const Form& form) {
    const Who alone[] = {who};
    TACIT_ASSIGN(const Draws seen, Exact(alone, form));
    const auto at = DenseAt(seen, empty_);
    TACIT_CHECK(at.has_value(), "every step releases the dense parameters");
    std::vector<Known> known;
    for (size_t i = 0; i < empty_.size(); ++i) known.push_back(MakeKnown(empty_[i], seen[*at + i]));
    return known;
  }

  Result<double> Know(const Form& form) {
    TACIT_ASSIGN(Draws empty, Exact({}, form));
    std::erase_if(empty, [](const Tap::Draw& draw) { return draw.values.empty(); });
    empty_ = std::move(empty);
    TACIT_ASSIGN(known_, ContributionOf(kCanary, form));
    squared_ = 0;
    for (const Known& known : known_) squared_ += known.squared;
    for (const Who who : {kShadow, kOther}) {
      TACIT_ASSIGN(const std::vector<Known> other, ContributionOf(who, form));
      along_[who] = 0;
      for (size_t k = 0; k < known_.size(); ++k) along_[who] += Along(known_[k], other[k]);
    }
    return squared_;
  }

  // ln of the likelihood ratio of the canary's being in this step, for certain.
  Result<double> RatioOf(Worker& own, const StepBatch& step, uint64_t first_offset) {
    TACIT_ASSIGN(const auto seen, own.learner->Release(step, own.noise.get()));
    const auto at = DenseAt(seen, empty_);
    TACIT_CHECK(at.has_value(), "every step releases the dense parameters");
    double ratio = 0;
    for (size_t i = 0; i < known_.size(); ++i) ratio += LogRatio(known_[i], seen[*at + i]);
    for (const uint64_t offset : step.examples.offset)
      if (offset - first_offset != kCanary) ratio -= along_[offset - first_offset];
    constexpr double kCertain = 600;  // e^600 is a number yet
    return std::clamp(ratio, -kCertain, kCertain);
  }

  Result<double> RunOnce(size_t number, bool canary) override {
    Worker& own = worker(number);
    if (own.participation == nullptr) {
      config::Participation p = configured().participation;
      p.period = kPeople;
      p.period_files = 0;
      own.participation = wiring::MakeParticipationOf(p, {})({});
    }
    constexpr Who kAll[] = {kCanary, kShadow, kOther};
    event::Batch records = MakeRecords(*assembly_->transform, Space(), kAll, form_);
    if (!canary) {
      event::Batch others = event::EmptyLike(records);
      others.AppendRange(records, 1, kPeople);
      records = std::move(others);
    }
    const uint64_t first = std::exchange(own.next_offset, own.next_offset + kPeople);
    for (uint64_t& offset : records.offset) offset += first;
    event::RawRecords frame;
    frame.first_offset = first;
    frame.end.resize(kPeople);
    const double share = 1 / static_cast<double>(std::max<uint64_t>(1, block_steps_));
    const double rate = plan().charge.sampling_rate;
    double ratio = 0, of_block = 0;
    uint64_t taken = 0;
    Status failed;
    own.participation->Cut(frame, records, [&](StepBatch&& step) {
      if (step.preview()) return true;
      const auto in_step = RatioOf(own, step, first);
      if (!in_step) {
        failed = Fail(in_step.error());
        return false;
      }
      ++taken;
      if (block_steps_ == 0) {
        ratio += std::log1p(rate * std::expm1(*in_step));
      } else {
        of_block += share * std::exp(*in_step);
        if (taken % block_steps_ == 0) ratio += std::log(std::exchange(of_block, 0));
      }
      return true;
    });
    TACIT_RETURN_IF_ERROR(std::move(failed));
    TACIT_CHECK(taken == steps_of_period_, "the period is not full");
    return ratio;
  }

  uint64_t block_steps_ = 0, steps_of_period_ = 0;
  Draws empty_;
  std::vector<Known> known_;  // by how much the canary moves the dense numbers
  double squared_ = 0;
  std::array<double, kPeople> along_{};
};

}  // namespace

Result<std::unique_ptr<LikelihoodAudit>> LikelihoodAudit::Make(config::Config config,
                                                               const std::string& learner,
                                                               LikelihoodAuditOptions options) {
  // The others' noise takes its time to be found, and says nothing of this one's.
  std::erase_if(config.learners, [&](const config::Learner& other) { return other.id != learner; });
  if (config.learners.empty())
    return Fail(ErrorCode::kNotFound, fmt::format("there is no learner '{}'", learner));
  config.budget = {};
  constexpr size_t index = 0;
  const config::Config as_it_is = config;
  const privacy::Laws laws = privacy::MakeLaws();
  for (config::Learner& each : config.learners)
    each.optimizer.learning_rate = each.optimizer.row_learning_rate = kNoMove;
  const auto assemble = [&](config::Config of) -> Result<std::shared_ptr<const wiring::Assembly>> {
    TACIT_ASSIGN(wiring::Assembly assembled,
                 wiring::Assemble(std::move(of), nullptr, wiring::AllLearnerKinds(), laws));
    return std::make_shared<const wiring::Assembly>(std::move(assembled));
  };
  TACIT_ASSIGN(auto assembly, assemble(std::move(config)));
  const wiring::LearnerPlan& plan = assembly->learners[index];
  const std::string why = WhyNotAudited(plan);
  if (!why.empty()) return RefuseAudit(learner, why);
  if (NeedsTwin(as_it_is.learners[index], plan)) {
    TACIT_ASSIGN(assembly, assemble(as_it_is));
    return MakeTwinAudit(assembly, index, std::move(options));
  }
  const auto prepare = [&](auto made) -> Result<std::unique_ptr<LikelihoodAudit>> {
    TACIT_RETURN_IF_ERROR(made->Prepare());
    return std::unique_ptr<LikelihoodAudit>(std::move(made));
  };
  if (plan.promise.participation == privacy::ParticipationMode::kOnce)
    return prepare(std::make_unique<OnceAudit>(assembly, index, std::move(options)));
  return prepare(std::make_unique<HeldAudit>(assembly, index, std::move(options)));
}

}  // namespace tacit::lab
