#include "bench/training_rig.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "train/learner/position.h"

namespace tacit::bench {
namespace {

constexpr size_t kWorkers = 2;

}  // namespace

TrainingRig::TrainingRig(BenchSetup setup, Options options)
    : setup_(std::move(setup)),
      options_(std::move(options)),
      folder_(std::filesystem::temp_directory_path() /
              fmt::format("tacit-bench-{}-{}", options_.name, ::getpid())),
      workers_({.workers = kWorkers, .idle_priority = options_.idle_priority}),
      backend_(ops::MakeCpuBackend(workers_)) {}

TrainingRig::~TrainingRig() {
  learner_.reset();
  store_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Status TrainingRig::Open() {
  std::filesystem::create_directories(folder_);
  setup_.assembly.config.store.path = folder_ / "store";
  setup_.assembly.config.store.witness = folder_ / "witness";
  store::StoreOptions store = wiring::MakeStoreOptions(setup_.assembly);
  for (const store::LearnerLayout& layout : options_.more_learners)
    store.learners.push_back(layout);
  TACIT_ASSIGN(store_, store::Store::Open(std::move(store)));
  TACIT_ASSIGN(learner_, setup_.assembly.learners[0].model->Make(
                             {.noise = noise::MakeNoiseSource(workers_),
                              .backend = [this]() -> ops::Backend& { return *backend_; },
                              .workers = workers_,
                              .rows = store_->working_rows(LearnerIndex(0)),
                              .gpu = options_.gpu}));
  return {};
}

Status TrainingRig::Step(uint64_t* examples) {
  const stream::StepBatch& step = setup_.steps[position_.step % setup_.steps.size()];
  learner_->Announce(setup_.steps[(position_.step + 1) % setup_.steps.size()]);
  const std::atomic<bool> abandon = false;
  train::StepReport report;
  const Result<bool> taken = learner_->TakeStep(step, abandon, &report);
  learner_->Withdraw();
  TACIT_RETURN_IF_ERROR(taken);
  if (!*taken) return Fail(ErrorCode::kInternal, "a step was abandoned");
  *examples += step.examples.size();
  rows_written_ += report.rows_written;
  ++position_.step;
  return {};
}

Status TrainingRig::Commit() {
  if (position_.step == committed_steps_) return {};
  const wiring::LearnerPlan& plan = setup_.assembly.learners[0];
  TACIT_RETURN_IF_ERROR(learner_->Settle());
  const uint64_t begin = committed_steps_ * plan.batch, end = position_.step * plan.batch;
  store::CommitRequest request;
  request.learners.push_back({.learner = LearnerIndex(0),
                              .rows = store_->working_rows(LearnerIndex(0)).TakeDelta(),
                              .dense = learner_->CopyDense(),
                              .position = train::EncodePosition(position_),
                              .charges = {{.learner = plan.id,
                                           .charge = plan.charge,
                                           .steps = position_.step - committed_steps_,
                                           .topic = "bench",
                                           .ranges = {{0, begin, end}}}}});
  committed_steps_ = position_.step;
  return store_->Commit(std::move(request), [](const Status&) {});
}

double TrainingRig::RowsPerStep() const {
  return static_cast<double>(rows_written_) / static_cast<double>(position_.step);
}

}  // namespace tacit::bench
