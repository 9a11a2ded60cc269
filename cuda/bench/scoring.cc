// Requests of the click model, scored on a GPU beside one core of the processor, in rows a second.
// Rows lie in memory here: reading them out of a store is the same for both.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "bench/bench_data.h"
#include "cuda/bench/parts.h"
#include "cuda/bench/steps.h"
#include "cuda/bench/timing.h"
#include "cuda/learn/gpu.h"
#include "serve/scoring/device_scorer.h"
#include "wiring/kinds/click.h"

namespace tacit::cuda {
namespace {

// A commit of initial rows and parameters.
class UnlearntSnapshot final : public store::Snapshot {
 public:
  UnlearntSnapshot(RowSpace space, std::vector<float> dense)
      : space_(std::move(space)), learners_(1) {
    auto state = std::make_shared<store::DenseState>();
    state->parameters = std::move(dense);
    dense_ = std::move(state);
  }
  void NextVersion() { ++version_; }

  CommitSeq version() const override { return CommitSeq(version_); }
  const Digest& head() const override { return head_; }
  std::string lineage() const override { return "bench"; }
  const std::vector<privacy::LedgerTotal>& learners() const override { return learners_; }
  const privacy::LedgerTotal& total() const override { return learners_[0]; }
  uint64_t ledger_entries() const override { return 0; }
  Result<std::vector<std::string>> LedgerEntries(uint64_t, uint64_t) const override {
    return std::vector<std::string>{};
  }
  std::shared_ptr<const store::DenseState> Dense(LearnerIndex) const override { return dense_; }
  std::span<const float> ServedDense(LearnerIndex) const override { return dense_->parameters; }
  Status Rows(LearnerIndex, std::span<const uint64_t> rows, std::span<float> out) const override {
    size_t at = 0;
    for (const uint64_t row : rows) {
      const uint32_t dim = space_.tables()[space_.TableOf(row)].dim;
      InitialRow(1, row, 0.1f, out.subspan(at, dim));
      at += dim;
    }
    return {};
  }

 private:
  const RowSpace space_;
  std::vector<privacy::LedgerTotal> learners_;
  std::shared_ptr<const store::DenseState> dense_;
  Digest head_{};
  uint64_t version_ = 1;
};

Result<double> RowsPerSecond(serve::RowScorer& scorer, UnlearntSnapshot& snapshot,
                             const event::Batch& batch, double seconds, bool each_new = false) {
  std::vector<float> scores(batch.size());
  TACIT_ASSIGN(const double each, MedianOfCalls(seconds, [&]() -> Status {
                 if (each_new) snapshot.NextVersion();
                 return scorer.Score(snapshot, batch, scores);
               }));
  return static_cast<double>(batch.size()) / each;
}

bench::BenchRow RowOf(std::string name, double value, double processor) {
  return {std::move(name), value, "rows/s",
          processor,       {},    fmt::format("{:.2f} times one core", value / processor)};
}

}  // namespace

Result<std::vector<bench::BenchRow>> BenchScoring(const GpuSizes& sizes) {
  bench::BenchModel model = ClickModelOf(sizes, sizes.scored_rows.front());
  model.steps = 1;
  TACIT_ASSIGN(const bench::BenchSetup setup, MakeBenchSetup(model));
  const wiring::LearnerPlan& plan = setup.assembly.learners[0];
  const model::PctrOptions& options = wiring::ClickOptionsOf(plan)->model;
  TACIT_ASSIGN(const auto gpu, OpenGpu({}));
  TACIT_ASSIGN(auto device, gpu->MakePctrDevice({.model = options,
                                                 .cache_bytes = sizes.score_cache_bytes,
                                                 .examples = sizes.scored_rows.front()}));
  metrics::Registry registry;
  const auto shared =
      std::make_shared<serve::ScoringDevice>(std::move(device), 1, plan.id, registry);
  const auto there =
      serve::MakeClickModelOn(shared, plan.index, plan.id, setup.assembly.transform, options)
          ->MakeScorer();
  const auto here = plan.model->Scores()->MakeScorer();
  const auto backend = ops::MakeReferenceBackend();
  UnlearntSnapshot snapshot(options.space, model::Pctr(options, *backend).InitialDense(1));
  std::vector<bench::BenchRow> rows;
  for (const uint32_t size : sizes.scored_rows) {
    event::Batch batch = event::EmptyLike(setup.steps[0].examples);
    batch.AppendRange(setup.steps[0].examples, 0, size);
    TACIT_ASSIGN(const double processor, RowsPerSecond(*here, snapshot, batch, sizes.seconds));
    TACIT_ASSIGN(const double warm, RowsPerSecond(*there, snapshot, batch, sizes.seconds));
    TACIT_ASSIGN(const double fresh, RowsPerSecond(*there, snapshot, batch, sizes.seconds, true));
    rows.push_back(RowOf(fmt::format("gpu-score-{}", size), warm, processor));
    rows.push_back(RowOf(fmt::format("gpu-score-new-version-{}", size), fresh, processor));
  }
  if (!shared->Takes(1)) return Fail(ErrorCode::kInternal, "the GPU failed under the requests");
  return rows;
}

}  // namespace tacit::cuda
