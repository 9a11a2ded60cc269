#include "model/sequence/sequence_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/sequence/unit_pass.h"

namespace tacit::model {

size_t HistoryUnits::Cost(size_t unit) const {
  const size_t items = histories_.Of(chosen_[unit]).size();
  return std::min<size_t>(items, size_t{options_.length} * options_.crops) + 1;
}

void HistoryUnits::Rows(size_t unit, uint64_t coins, UnitRows* rows) const {
  const uint64_t u = chosen_[unit];
  CutCrops(options_, histories_.Of(u), known_.empty() ? 0 : known_[u], coins, rows);
}

struct SequenceModel::Impl {
  Impl(const SequenceOptions& options, ops::Backend& b, const LogitPrior* p)
      : layout(options), backend(b), prior(p), output(layout) {
    TACIT_CHECK(prior == nullptr || (options.negatives == 0 && options.label_smoothing == 0),
                "a prior is of the whole catalogue, its labels not smoothed");
    for (size_t w = 0; w < backend.workers().workers(); ++w)
      workers.push_back(std::make_unique<Worker>(layout, backend, prior));
  }

  // The state that each worker has of its own.
  struct Worker {
    Worker(const SequenceLayout& layout, ops::Backend& backend, const LogitPrior* prior)
        : pass(layout, backend.MakeUnitOps(layout.options().precision), prior),
          scale(layout.groups().size()) {}

    // Returns the pass for scoring: `pass` itself if it is of f32.
    UnitPass& Scoring(const SequenceLayout& layout, ops::Backend& backend,
                      const LogitPrior* prior) {
      if (layout.options().precision == ops::Precision::kF32) return pass;
      if (scoring == nullptr)
        scoring =
            std::make_unique<UnitPass>(layout, backend.MakeUnitOps(ops::Precision::kF32), prior);
      return *scoring;
    }

    UnitPass pass;
    std::unique_ptr<UnitPass> scoring;
    UnitRows rows;
    GroupNorms norms;  // of one unit
    std::vector<float> scale, values;
    std::vector<int64_t> steps;
    Status status;
    std::vector<float> scores;
  };

  const SequenceLayout layout;
  ops::Backend& backend;
  const LogitPrior* const prior;
  OutputStep output;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<size_t> share_end;  // per worker: end of its units

  void ShareOut(const SequenceUnits& units);
  Status Learn(const SequenceUnits& units, const Step& step, const ScaleRule& rule, size_t unit,
               Worker* worker, std::span<float> values, std::span<int64_t> steps, SequenceSum* sum);
  template <class T>
  void AddUp(std::vector<T> Worker::*part, std::span<T> sum);
  Status FirstFailure();
};

SequenceModel::SequenceModel(const SequenceOptions& options, ops::Backend& backend,
                             const LogitPrior* prior)
    : impl_(std::make_unique<Impl>(options, backend, prior)) {}
SequenceModel::~SequenceModel() = default;

const SequenceLayout& SequenceModel::layout() const { return impl_->layout; }

// Cuts contiguous shares of about equal cost: the same units give the same shares.
void SequenceModel::Impl::ShareOut(const SequenceUnits& units) {
  double total = 0, done = 0;
  for (size_t u = 0; u < units.units(); ++u) total += static_cast<double>(units.Cost(u));
  share_end.assign(workers.size(), units.units());
  size_t worker = 0;
  for (size_t u = 0; u < units.units() && worker + 1 < workers.size(); ++u) {
    done += static_cast<double>(units.Cost(u));
    while (worker + 1 < workers.size() &&
           done * static_cast<double>(workers.size()) >= total * static_cast<double>(worker + 1))
      share_end[worker++] = u + 1;
  }
}

Status SequenceModel::Impl::FirstFailure() {
  for (const auto& worker : workers) TACIT_RETURN_IF_ERROR(std::move(worker->status));
  return {};
}

// Adds the other workers' parts to the first worker's, which is the sum itself.
template <class T>
void SequenceModel::Impl::AddUp(std::vector<T> Worker::*part, std::span<T> sum) {
  backend.workers().Run(
      sum.size(),
      [&](size_t begin, size_t end, size_t) {
        for (size_t w = 1; w < workers.size(); ++w) {
          const T* from = ((*workers[w]).*part).data();
          for (size_t i = begin; i < end; ++i) sum[i] += from[i];
        }
      },
      1024);
}

Status SequenceModel::ClippedSum(std::span<const float> parameters, const SequenceUnits& units,
                                 const Step& step, const ScaleRule& rule, SequenceSum* sum) {
  Impl& impl = *impl_;
  const bool private_step = rule.needs_norms(), on_grid = rule.grid_step() > 0;
  TACIT_CHECK(private_step || !on_grid, "a grid is for what is bounded");
  const size_t size = step.map->PlaceOf(impl.layout.size());
  const size_t count = units.units();
  sum->values.assign(on_grid ? 0 : size, 0.0f);
  sum->steps.assign(on_grid ? size : 0, 0);
  sum->norms = {.groups = impl.layout.groups().size(), .units = count, .squared = {}};
  if (private_step) sum->norms.squared.assign(sum->norms.groups * count, 0.0f);
  if (on_grid) sum->norms.rounding.assign(count, 0.0f);
  sum->loss.assign(count, 0.0f);
  if (count == 0) return {};
  impl.output.Begin(parameters, StepCoins{step.seed}.negatives(), impl.workers[0]->pass.ops());
  impl.ShareOut(units);
  impl.backend.workers().Run(impl.workers.size(), [&](size_t begin, size_t end, size_t) {
    for (size_t w = begin; w < end; ++w) {
      Impl::Worker& worker = *impl.workers[w];
      if (w > 0) {
        worker.values.assign(sum->values.size(), 0.0f);
        worker.steps.assign(sum->steps.size(), 0);
      }
      const std::span<float> values = w == 0 ? sum->values : worker.values;
      const std::span<int64_t> steps = w == 0 ? sum->steps : worker.steps;
      worker.pass.gradient().SumBy(*step.map);
      if (private_step) {
        worker.pass.gradient().FormEach();
      } else {
        worker.pass.gradient().AddStraightTo(values);
      }
      worker.status = worker.pass.BeginStep(parameters, step.noise);
      for (size_t u = w == 0 ? 0 : impl.share_end[w - 1]; worker.status && u < impl.share_end[w];
           ++u)
        worker.status = impl.Learn(units, step, rule, u, &worker, values, steps, sum);
    }
  });
  TACIT_RETURN_IF_ERROR(impl.FirstFailure());
  impl.AddUp(&Impl::Worker::values, std::span(sum->values));
  impl.AddUp(&Impl::Worker::steps, std::span(sum->steps));
  return {};
}

Status SequenceModel::Impl::Learn(const SequenceUnits& units, const Step& step,
                                  const ScaleRule& rule, size_t unit, Worker* worker,
                                  std::span<float> values, std::span<int64_t> steps,
                                  SequenceSum* sum) {
  const uint64_t id = units.Id(unit);
  const StepCoins step_coins{step.seed};
  units.Rows(unit, step_coins.crops(id), &worker->rows);
  const DropoutCoins coins{step_coins.dropout(), id, layout.options().dropout};
  double loss = 0;
  const Result<bool> done = worker->pass.Learn(output, worker->rows, coins, &loss);
  UnitGradient& gradient = worker->pass.gradient();
  const bool learnt = done && *done;
  if (learnt && rule.needs_norms()) {
    GroupNorms& norms = worker->norms;
    norms.groups = layout.groups().size();
    norms.units = 1;
    norms.squared.resize(norms.groups);
    gradient.SquaredNorms(norms.squared);
    const bool bounded =
        std::ranges::all_of(norms.squared, [](float x) { return std::isfinite(x); });
    if (bounded) {
      if (rule.grid_step() > 0)
        norms.rounding.assign(1, RoundingOf(rule.grid_step(), gradient.Coordinates()));
      rule.Scales(norms, worker->scale);
      if (rule.grid_step() > 0) {
        gradient.AddTo(worker->scale, rule.grid_step(), steps);
        sum->norms.rounding[unit] = norms.rounding[0];
      } else {
        gradient.AddTo(worker->scale, values);
      }
      for (size_t g = 0; g < norms.groups; ++g)
        sum->norms.squared[g * units.units() + unit] = norms.squared[g];
      sum->loss[unit] = static_cast<float>(loss);
    }
  } else if (learnt) {
    sum->loss[unit] = static_cast<float>(loss);
  }
  gradient.EndUnit();
  if (!done) return Fail(done.error());
  return {};
}

Status SequenceModel::Score(std::span<const float> parameters, const ParameterNoise& noise,
                            std::span<const std::span<const uint32_t>> histories,
                            const Take& take) {
  Impl& impl = *impl_;
  // A worker without a history does not run: its status must not be an earlier call's.
  for (const auto& worker : impl.workers) worker->status = {};
  impl.backend.workers().Run(histories.size(), [&](size_t begin, size_t end, size_t w) {
    Impl::Worker& worker = *impl.workers[w];
    UnitPass& pass = worker.Scoring(impl.layout, impl.backend, impl.prior);
    worker.status = pass.BeginStep(parameters, noise);
    worker.scores.resize(impl.layout.output().rows);
    for (size_t i = begin; worker.status && i < end; ++i) {
      worker.status = pass.Score(histories[i], worker.scores);
      if (worker.status) take(i, worker.scores, w);
    }
  });
  return impl.FirstFailure();
}

}  // namespace tacit::model
