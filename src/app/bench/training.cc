#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "app/bench/bench.h"
#include "app/bench/bench_data.h"
#include "app/mechanism_factory.h"
#include "base/clock.h"
#include "store/store.h"
#include "train/position.h"

namespace tacit::app {
namespace {

constexpr size_t kSteps = 16;
constexpr double kSecondsPerTurn = 4;
constexpr int kTurns = 3;

// Both cores, a real store in a temporary folder, the demo's commit interval.
class TrainingRig {
 public:
  explicit TrainingRig(BenchSetup setup)
      : setup_(std::move(setup)),
        folder_(std::filesystem::temp_directory_path() /
                ("tacit-bench-" + std::to_string(::getpid()))),
        workers_({.workers = 2}),
        backend_(ops::MakeCpuBackend(workers_)) {}
  ~TrainingRig() {
    store_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  Status Open() {
    std::filesystem::create_directories(folder_);
    setup_.assembly.config.store.path = folder_ / "store";
    setup_.assembly.config.store.witness = folder_ / "witness";
    TACIT_ASSIGN(store_, store::EmbeddingStore::Open(MakeStoreOptions(setup_.assembly)));
    const LearnerPlan& plan = setup_.assembly.learners[0];
    TACIT_ASSIGN(auto mechanism,
                 MakeMechanism(setup_.assembly.config, 0, plan.options.model.space));
    learner_ = std::make_unique<train::ClickLearner>(
        plan.options, std::move(mechanism), noise::MakeNoiseSource(workers_), *backend_,
        store_->working_rows(LearnerIndex(0)), nullptr);
    return {};
  }

  // Trains for a while; with commits every second, or with one at the end that is not timed.
  Result<double> Turn(bool commits) {
    const SystemClock clock;
    const auto start = clock.Now();
    auto last_commit = start;
    uint64_t examples = 0;
    while (Seconds(clock.Now() - start) < kSecondsPerTurn) {
      TACIT_RETURN_IF_ERROR(Step(&examples));
      if (commits && clock.Now() - last_commit >= std::chrono::seconds(1)) {
        last_commit = clock.Now();
        TACIT_RETURN_IF_ERROR(Commit());
      }
    }
    if (commits) TACIT_RETURN_IF_ERROR(store_->Flush());
    const double rate = static_cast<double>(examples) / Seconds(clock.Now() - start);
    TACIT_RETURN_IF_ERROR(Commit());
    TACIT_RETURN_IF_ERROR(store_->Flush());
    return rate;
  }

  double RowsPerStep() const {
    return static_cast<double>(rows_written_) / static_cast<double>(position_.step);
  }

 private:
  Status Step(uint64_t* examples) {
    const stream::StepBatch& step = setup_.steps[position_.step % kSteps];
    const std::atomic<bool> abandon = false;
    train::StepReport report;
    TACIT_ASSIGN(const bool taken, learner_->TakeStep(step, abandon, &report));
    if (!taken) return Fail(ErrorCode::kInternal, "a step was abandoned");
    *examples += step.examples.size();
    rows_written_ += report.rows_written;
    ++position_.step;
    return {};
  }

  Status Commit() {
    if (position_.step == committed_steps_) return {};
    const LearnerPlan& plan = setup_.assembly.learners[0];
    const uint64_t begin = committed_steps_ * plan.batch, end = position_.step * plan.batch;
    store::CommitRequest request;
    request.learners.push_back({.learner = LearnerIndex(0),
                                .rows = store_->working_rows(LearnerIndex(0)).TakeDelta(),
                                .dense = learner_->CopyDense(),
                                .position = train::EncodePosition(position_),
                                .charges = {{.learner = plan.options.id,
                                             .charge = plan.charge,
                                             .steps = position_.step - committed_steps_,
                                             .topic = "bench",
                                             .ranges = {{0, begin, end}}}}});
    committed_steps_ = position_.step;
    return store_->Commit(std::move(request), [](Status) {});
  }

  BenchSetup setup_;
  std::filesystem::path folder_;
  WorkerPool workers_;
  std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<store::EmbeddingStore> store_;
  std::unique_ptr<train::ClickLearner> learner_;
  stream::Position position_;
  uint64_t committed_steps_ = 0, rows_written_ = 0;
};

}  // namespace

Result<std::vector<BenchRow>> BenchTraining() {
  TACIT_ASSIGN(BenchSetup setup, MakeBenchSetup("f32", true, kSteps));
  TrainingRig rig(std::move(setup));
  TACIT_RETURN_IF_ERROR(rig.Open());
  TACIT_RETURN_IF_ERROR(rig.Turn(false));  // warms up
  double with = 0, without = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    TACIT_ASSIGN(const double bare, rig.Turn(false));
    TACIT_ASSIGN(const double committing, rig.Turn(true));
    without += bare / kTurns;
    with += committing / kTurns;
  }
  return std::vector<BenchRow>{
      {"training-bare-f32", without, "examples/s on 2 cores", std::nullopt},
      {"training-with-commits-f32", with, "examples/s on 2 cores", without},
      {"training-rows-written", rig.RowsPerStep(), "rows a step", std::nullopt}};
}

}  // namespace tacit::app
