#include "audit/float_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/check.h"
#include "base/threads/worker_pool.h"
#include "mechanism/clipper.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"
#include "model/carriers/carriers.h"
#include "stream/steps/sum_blocks.h"
#include "support/silent_noise.h"
#include "train/click/flat_rows.h"
#include "train/click/host_click_engine.h"

namespace tacit::audit {
namespace {

constexpr uint32_t kNumbers = 12;  // and an embedding of one
constexpr float kClip = 0.5;
// The largest number that signed_log1p gives.
const double kMostNumber = std::log1p(std::numeric_limits<float>::max());

struct Record {
  std::vector<float> numbers;
  float label = 0;
};

// The rule of a mechanism, with the sum's grid or, for the planted sum, without.
class Rule final : public model::ScaleRule {
 public:
  Rule(const model::ScaleRule& rule, bool on_grid) : rule_(rule), on_grid_(on_grid) {}
  double grid_step() const override { return on_grid_ ? rule_.grid_step() : 0; }
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const override {
    model::GroupNorms rounded = norms;
    rounded.rounding.resize(norms.units);
    rule_.Scales(rounded, scales);
  }

 private:
  const model::ScaleRule& rule_;
  const bool on_grid_;
};

// A flat clip and a noise of one clip. It keeps the sums that it is shown.
class WatchedStep final : public mechanism::Mechanism {
 public:
  WatchedStep(const RowSpace& space, bool on_grid)
      : inner_(mechanism::MakePrivateStep(space, mechanism::MakeAllRows(),
                                          mechanism::MakeFlatClipper(kClip, 1),
                                          {.sigma_gradient = 1, .expected_batch = 1})),
        rule_(inner_->scale_rule(), on_grid) {}

  void Select(const mechanism::StepRows& rows, noise::NoiseSource& noise,
              model::RowSelection* selection) override {
    inner_->Select(rows, noise, selection);
  }
  const model::ScaleRule& scale_rule() const override { return rule_; }
  void Finalize(noise::NoiseSource&, const model::GroupNorms&, model::StepGradient* sum) override {
    seen.assign(sum->row_values.begin(), sum->row_values.end());
    seen.insert(seen.end(), sum->dense.begin(), sum->dense.end());
    for (size_t i = 0; i < sum->row_sums.size(); ++i)
      seen[i] = static_cast<double>(sum->row_sums[i]) * rule_.grid_step();
    for (size_t i = 0; i < sum->dense_sums.size(); ++i)
      seen[sum->row_sums.size() + i] = static_cast<double>(sum->dense_sums[i]) * rule_.grid_step();
  }
  std::optional<mechanism::Recipe> recipe() const override { return inner_->recipe(); }
  void DrawExtra(noise::NoiseSource& noise, std::vector<uint64_t>* rows) override {
    inner_->DrawExtra(noise, rows);
  }
  const privacy::Charge& charge() const override { return inner_->charge(); }
  double ExpectedExtraRows() const override { return inner_->ExpectedExtraRows(); }

  // The row's sum and then the dense one, on the processor; a device shows its updates alone.
  std::vector<double> seen;

 private:
  const std::unique_ptr<mechanism::Mechanism> inner_;
  const Rule rule_;
};

// A model that stays as it is: at a rate of 0 no weight moves, and at beta1 = 0 Adam's first moment
// is the update itself.
train::ClickEngineOptions StillModel(const FloatSumCase& attacked) {
  train::ClickEngineOptions options;
  options.model.space.AddTable("all", 1, 1);
  options.model.dense_width = kNumbers;
  options.model.hidden = attacked.hidden;
  options.model.precision = attacked.precision;
  options.seed = 7;
  options.optimizer.kind = train::OptimizerNamed("adam");
  options.optimizer.learning_rate = options.optimizer.row_learning_rate = 0;
  options.optimizer.beta1 = 0;
  if (attacked.carrier_rank > 0)
    options.sum_map = model::CarriersOf({.rank = attacked.carrier_rank});
  return options;
}

class Engine {
 public:
  Engine(const FloatSumCase& attacked, const AttackedEngine& make)
      : make_(make),
        options_(StillModel(attacked)),
        step_(options_.model.space, attacked.fault != SumFault::kOneSum) {
    const train::Optimizer optimizer(options_.optimizer);
    const auto backend = ops::MakeReferenceBackend();
    dense_.parameters = model::Pctr(options_.model, *backend).InitialDense(options_.seed);
    dense_.optimizer.assign(optimizer.DenseStateFloats(dense_.parameters.size()), 0.0f);
    store::RowLayout layout;
    layout.space = options_.model.space;
    layout.state_floats = {static_cast<uint32_t>(optimizer.RowStateFloats(1))};
    layout.initial_scale = {0};
    WorkerPool workers{WorkerPool::Options{}};
    auto rows = train::FlatRows::Make(layout, 1 << 20, workers);
    TACIT_CHECK(rows.has_value(), "no memory for a row");
    rows_ = std::move(*rows);
  }

  // The sums that the engine makes of a step, the last layer's bias last.
  std::vector<double> Sum(const stream::StepBatch& batch) {
    const auto must = [](const Status& status) {
      TACIT_CHECK(status.has_value(), status ? "" : status.error().message);
    };
    train::StepReport report;
    step_.seen.clear();
    // Carriers follow from the number of the step, which is always the first here.
    if (engine_ == nullptr || options_.sum_map)
      engine_ = make_({options_, step_, noise_, *rows_, dense_});
    must(engine_->Begin(batch));
    must(engine_->Release(&report));
    must(engine_->Settle());
    if (!step_.seen.empty()) return step_.seen;
    // The noise on these is the same in every step: a device draws it by its key.
    const store::DenseState& state = engine_->dense();
    std::vector<double> update = {rows_->Table(0)[1]};
    update.insert(update.end(), state.optimizer.begin(),
                  state.optimizer.begin() + static_cast<ptrdiff_t>(state.parameters.size()));
    return update;
  }

 private:
  const AttackedEngine make_;
  const train::ClickEngineOptions options_;
  WatchedStep step_;
  noise::SilentNoise noise_;
  store::DenseState dense_;
  std::unique_ptr<train::FlatRows> rows_;
  std::unique_ptr<train::ClickEngine> engine_;
};

class Attack {
 public:
  Attack(const FloatSumCase& attacked, const AttackedEngine& make)
      : attacked_(attacked),
        backend_(ops::MakeReferenceBackend()),
        alone_(attacked, HostEngineOn(*backend_)),
        engine_(attacked, make) {}

  // Bends the sum of the whole step, or that of every 256 records.
  double Run() { return std::max(Run(attacked_.offsets), Run(256)); }

 private:
  // All sums of `period` records reach the power of two with their last push. The victim is the
  // first record.
  double Run(size_t period) {
    const Record push{std::vector<float>(kNumbers, 0.0f), 0};
    const double each = BiasOf(push);
    const int power =
        static_cast<int>(std::floor(std::log2(static_cast<double>(period) * each / 2)));
    const Record tail = FindTail(std::ldexp(1, power - 24));
    int64_t reach = 0;  // pushes until a sum of floats is there
    for (float sum = 0; sum < std::ldexp(1.0f, power); ++reach) sum += static_cast<float>(each);
    double most = 0;
    for (int more = -1; more <= 1; ++more) {
      const auto pushes = static_cast<size_t>(reach + more);
      if (pushes + 1 > period) break;
      most = std::max(most, Moved(period, push, pushes, tail));
    }
    return most;
  }

  // A step of these records at these offsets.
  stream::StepBatch StepOf(const std::vector<Record>& records, std::vector<uint64_t> offset) {
    stream::StepBatch step;
    event::Batch& batch = step.examples;
    batch.dense_width = kNumbers;
    batch.slots = 1;
    batch.offset = offset;
    for (const Record& record : records) {
      step.unit_of.push_back(step.units++);
      batch.label.push_back(record.label);
      batch.dense.insert(batch.dense.end(), record.numbers.begin(), record.numbers.end());
      batch.row.push_back(0);
      batch.slot_end.push_back(step.units);
    }
    if (attacked_.fault == SumFault::kOneBlock) return step;
    if (attacked_.fault == SumFault::kByRecords) std::iota(offset.begin(), offset.end(), 0);
    step.sum_block_end = stream::BlocksByOffset(offset, 1);
    return step;
  }
  // A record's part of the last layer's bias, the number that is pushed.
  double BiasOf(const Record& record) { return alone_.Sum(StepOf({record}, {0})).back(); }

  // A record of label 1 that takes just under half a step off the bias, because the clip leaves
  // that much of it beside its large numbers.
  Record FindTail(double half) {
    Record best;
    double best_bias = 0;
    for (uint32_t seed = 1; seed <= 200 && best_bias == 0; ++seed) {
      std::mt19937 random(seed);
      std::vector<float> sign(kNumbers);
      for (float& one : sign) one = random() % 2 ? 1.0f : -1.0f;
      const auto record = [&](double log_size) {
        Record made{sign, 1};
        for (float& number : made.numbers) number *= static_cast<float>(std::exp(log_size));
        return made;
      };
      double low = 0, high = std::log(kMostNumber);
      for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (BiasOf(record(middle)) < -0.97 * half ? low : high) = middle;
      }
      const double bias = BiasOf(record(high));
      if (bias < -0.6 * half && bias > -half) {
        best = record(high);
        best_bias = bias;
      }
    }
    // In a small step half a step is less than a clip leaves of any record. Then this one is as
    // close as he comes.
    if (best_bias == 0) best = {std::vector<float>(kNumbers, static_cast<float>(kMostNumber)), 1};
    return best;
  }

  double Moved(size_t period, const Record& push, size_t pushes, const Record& tail) {
    std::vector<Record> records;
    std::vector<uint64_t> offset;
    for (size_t i = 0; i < attacked_.offsets; ++i) {
      records.push_back(i % period < pushes ? push : tail);
      offset.push_back(i);
    }
    const std::vector<double> with = engine_.Sum(StepOf(records, offset));
    records.erase(records.begin());
    offset.erase(offset.begin());
    const std::vector<double> without = engine_.Sum(StepOf(records, offset));
    double squared = 0;
    for (size_t i = 0; i < with.size(); ++i)
      squared += (with[i] - without[i]) * (with[i] - without[i]);
    return std::sqrt(squared) / kClip;
  }

  const FloatSumCase& attacked_;
  const std::unique_ptr<ops::Backend> backend_;
  Engine alone_;   // the processor's, for one record at a time
  Engine engine_;  // the one under attack
};

}  // namespace

AttackedEngine HostEngineOn(ops::Backend& backend) {
  return [&backend](const EngineParts& parts) {
    return train::MakeHostClickEngine(parts.options, parts.mechanism, parts.noise, backend,
                                      parts.rows, parts.dense);
  };
}

double MostMoved(const FloatSumCase& attacked, const AttackedEngine& make) {
  return Attack(attacked, make).Run();
}

}  // namespace tacit::audit
