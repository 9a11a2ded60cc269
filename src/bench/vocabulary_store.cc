#include "bench/vocabulary_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "base/clock.h"
#include "bench/vocabulary_data.h"
#include "store/store.h"
#include "train/learner/position.h"
#include "wiring/assembly.h"
#include "wiring/plans/code_version.h"

namespace tacit::bench {
namespace {

constexpr size_t kStoreWarmUpSteps = 100;

class StoreRig {
 public:
  explicit StoreRig(uint64_t vocabulary)
      : options_(VocabularyLearner(vocabulary)),
        folder_(std::filesystem::temp_directory_path() /
                fmt::format("tacit-bench-vocabulary-{}", ::getpid())) {}
  ~StoreRig() {
    learner_.reset();
    store_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  Status Open() {
    std::filesystem::create_directories(folder_);
    auto mechanism = VocabularyAdaFest(options_.model.space);
    charge_ = mechanism->charge();
    const model::Pctr shape(options_.model, *backend_);
    store::LearnerLayout layout{.name = options_.id,
                                .rows = train::MakeRowLayout(options_, shape),
                                .promise = {.learner = options_.id,
                                            .epsilon = 1e9,
                                            .delta = 1e-6,
                                            .model_fingerprint = shape.Fingerprint()}};
    store::StoreOptions options;
    options.path = folder_ / "store";
    options.witness = folder_ / "witness";
    options.memory_bytes = uint64_t{256} << 20;
    options.row_cache_bytes = uint64_t{256} << 20;
    options.code_version = wiring::CodeVersion();
    options.learners.push_back(std::move(layout));
    TACIT_ASSIGN(store_, store::Store::Open(std::move(options)));
    learner_ = std::make_unique<train::ClickLearner>(options_, std::move(mechanism),
                                                     noise::MakeNoiseSource(workers_), *backend_,
                                                     store_->working_rows(options_.index), nullptr);
    return {};
  }

  Status Take(std::span<const stream::StepBatch> steps, size_t steps_per_commit) {
    const std::atomic<bool> abandon = false;
    for (const stream::StepBatch& step : steps) {
      train::StepReport report;
      TACIT_RETURN_IF_ERROR(learner_->TakeStep(step, abandon, &report));
      ++position_.step;
      if (position_.step % steps_per_commit == 0) TACIT_RETURN_IF_ERROR(Commit(steps_per_commit));
    }
    return store_->Flush();
  }

  // Totals of all commits so far.
  uint64_t commits() const { return commits_; }
  double commit_ms() const { return commit_ms_; }
  uint64_t commit_bytes() const { return store_->stats().commit_bytes; }

 private:
  Status Commit(size_t steps) {
    TACIT_RETURN_IF_ERROR(learner_->Settle());
    const uint64_t end = position_.step * VocabularySetting::kBatch;
    store::CommitRequest request;
    request.learners.push_back(
        {.learner = options_.index,
         .rows = store_->working_rows(options_.index).TakeDelta(),
         .dense = learner_->CopyDense(),
         .position = train::EncodePosition(position_),
         .charges = {{.learner = options_.id,
                      .charge = charge_,
                      .steps = steps,
                      .topic = "bench",
                      .ranges = {{0, end - steps * VocabularySetting::kBatch, end}}}}});
    learner_->Rekey();
    return store_->Commit(std::move(request), [this](const Status&) {
      ++commits_;
      commit_ms_ = commit_ms_ + store_->stats().last_commit_ms;
    });
  }

  const train::ClickOptions options_;
  const std::filesystem::path folder_;
  WorkerPool workers_{{.workers = 2}};
  const std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<train::ClickLearner> learner_;
  privacy::Charge charge_;
  stream::Position position_;
  std::atomic<uint64_t> commits_ = 0;
  std::atomic<double> commit_ms_ = 0;
};

}  // namespace

Result<BenchRow> BenchVocabularyStore(uint64_t vocabulary, bool quick) {
  const size_t steps = quick ? 200 : 4000, steps_per_commit = quick ? 50 : 500;
  const auto batches = VocabularySteps(vocabulary, kStoreWarmUpSteps + steps, 3);
  StoreRig rig(vocabulary);
  TACIT_RETURN_IF_ERROR(rig.Open());
  TACIT_RETURN_IF_ERROR(rig.Take(std::span(batches).first(kStoreWarmUpSteps), kStoreWarmUpSteps));
  const uint64_t commits = rig.commits(), bytes = rig.commit_bytes();
  const double commit_ms = rig.commit_ms();
  const SystemClock clock;
  const auto start = clock.Now();
  TACIT_RETURN_IF_ERROR(rig.Take(std::span(batches).subspan(kStoreWarmUpSteps), steps_per_commit));
  const double seconds = Seconds(clock.Now() - start);
  const double n = static_cast<double>(rig.commits() - commits);
  const double bytes_per_commit = static_cast<double>(rig.commit_bytes() - bytes) / n;
  const double ms_per_commit = (rig.commit_ms() - commit_ms) / n;
  const double per_step = seconds / static_cast<double>(steps);
  BenchRow row{.name = fmt::format("vocabulary-store-{}", vocabulary),
               .value = per_step * 1e3,
               .unit = "ms/step, AdaFEST"};
  row.more = {{"vocabulary", vocabulary},
              {"rows", "store"},
              {"steps", steps},
              {"dense_s", nullptr},
              {"adafest_s", seconds},
              {"factor", nullptr},
              {"steps_per_second", 1 / per_step},
              {"steps_per_commit", steps_per_commit},
              {"commit_ms", ms_per_commit},
              {"bytes_per_commit", bytes_per_commit}};
  row.note = fmt::format("in a store; a commit each {} steps: {:.1f} ms, {:.0f} bytes",
                         steps_per_commit, ms_per_commit, bytes_per_commit);
  return row;
}

}  // namespace tacit::bench
