#include "audit/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "audit/engine_setting.h"
#include "base/check.h"
#include "base/threads/worker_pool.h"
#include "noise/stream_noise.h"
#include "support/statistics.h"
#include "train/click/flat_rows.h"
#include "train/optimizer/optimizer.h"

namespace tacit::audit {
namespace {

using testing::NormalCdf;

// Numbers leave with the optimiser's state: at a rate of 0 no weight moves, so that every run is
// the same, and at beta1 = 0 Adam's first moment is the update itself.
train::OptimizerOptions StillOptimizer() {
  train::OptimizerOptions options;
  options.kind = train::OptimizerNamed("adam");
  options.learning_rate = options.row_learning_rate = 0;
  options.beta1 = 0;
  return options;
}

// The rows of an engine: a row's embedding, and behind it m, v and the count of its writes.
class EngineRows {
 public:
  explicit EngineRows(const EngineSetting& setting)
      : space_(setting.model.space), embedding_(setting.embedding) {
    const train::Optimizer optimizer(StillOptimizer());
    for (const RowSpace::Table& table : space_.tables()) {
      layout_.state_floats.push_back(static_cast<uint32_t>(optimizer.RowStateFloats(table.dim)));
      TACIT_CHECK(layout_.state_floats.back() == 2 * table.dim + 1, "another state of Adam");
      layout_.initial_scale.push_back(0);
    }
    layout_.space = space_;
    WorkerPool workers{WorkerPool::Options{}};
    auto rows = train::FlatRows::Make(layout_, 1 << 28, workers);
    TACIT_CHECK(rows.has_value(), "no memory for rows");
    rows_ = std::move(*rows);
    for (uint32_t t = 0; t < space_.tables().size(); ++t)
      for (uint64_t i = 0; i < space_.tables()[t].rows; ++i)
        std::fill_n(At(t, i), space_.tables()[t].dim, embedding_);
    writes_.resize(space_.rows());
  }

  store::WorkingRows& working() { return *rows_; }

  // The rows written since the last call, and their updates.
  void Read(Update* update) {
    update->written.assign(space_.rows(), 0);
    update->values.clear();
    update->row_begin.clear();
    for (uint32_t t = 0; t < space_.tables().size(); ++t) {
      const RowSpace::Table& table = space_.tables()[t];
      for (uint64_t i = 0; i < table.rows; ++i) {
        const float* row = At(t, i);
        const uint64_t id = table.first + i;
        TACIT_CHECK(std::all_of(row, row + table.dim, [&](float x) { return x == embedding_; }),
                    "a row moved at a rate of 0");
        const uint32_t writes = std::bit_cast<uint32_t>(row[3 * table.dim]);
        TACIT_CHECK(writes - writes_[id] <= 1, "a row is written once a step");
        update->written[id] = writes != writes_[id];
        writes_[id] = writes;
        update->row_begin.push_back(update->values.size());
        update->values.insert(update->values.end(), row + table.dim, row + 2 * table.dim);
      }
    }
  }

 private:
  float* At(uint32_t table, uint64_t i) const {
    return rows_->Table(table) + i * layout_.RowFloats(table);
  }

  const RowSpace& space_;
  const float embedding_;
  store::RowLayout layout_;
  std::unique_ptr<train::FlatRows> rows_;
  std::vector<uint32_t> writes_;
};

// Keys as the source has them, or the first one again and again.
class KeptKey final : public noise::NoiseSource {
 public:
  KeptKey(noise::NoiseSource& source, bool keeps) : source_(source), keeps_(keeps) {}
  void FillKey(std::span<uint8_t, 32> key) override {
    if (keeps_ && has_first_) {
      std::ranges::copy(first_, key.begin());
      return;
    }
    source_.FillKey(key);
    std::ranges::copy(key, first_.begin());
    has_first_ = true;
  }
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    source_.AddGridGaussian(stddev, values);
  }
  void FillGridGaussian(double stddev, double factor, std::span<float> out) override {
    source_.FillGridGaussian(stddev, factor, out);
  }
  void AddGaussian(double stddev, std::span<float> values) override {
    source_.AddGaussian(stddev, values);
  }
  void FillGaussian(std::span<double> out) override { source_.FillGaussian(out); }
  double Uniform() override { return source_.Uniform(); }
  bool Bernoulli(double p) override { return source_.Bernoulli(p); }
  uint64_t GeometricSkip(double p) override { return source_.GeometricSkip(p); }
  double GaussianTail(double lower) override { return source_.GaussianTail(lower); }
  void Rekey() override { source_.Rekey(); }

 private:
  noise::NoiseSource& source_;
  const bool keeps_;
  bool has_first_ = false;
  std::array<uint8_t, 32> first_{};
};

noise::Keystream::Key KeyOf(uint64_t seed, const std::string& name) {
  noise::Keystream::Key key{};
  const uint64_t words[] = {seed, std::hash<std::string>{}(name)};
  for (size_t i = 0; i < 16; ++i) key[i] = static_cast<uint8_t>(words[i / 8] >> (i % 8 * 8));
  return key;
}

// The numbers of a step's sum that are not known before, or their difference from another's.
struct Residual {
  std::vector<double> dense, values;
};

class EngineSteps {
 public:
  EngineSteps(const EngineCase& audited, const EngineAuditOptions& options, const EngineMaker& make)
      : audited_(audited),
        setting_(audited, options),
        sums_(setting_),
        rows_(setting_),
        source_(std::make_unique<noise::Keystream>(KeyOf(options.seed, audited.name),
                                                   noise::Keystream::CounterBlock{})),
        noise_(source_, audited.fault == EngineFault::kSameKey),
        coins_(options.seed),
        options_{.model = setting_.model, .optimizer = StillOptimizer()} {
    dense_.parameters = setting_.dense;
    const train::Optimizer optimizer(options_.optimizer);
    dense_.optimizer.assign(optimizer.DenseStateFloats(setting_.dense.size()), 0.0f);
    DrawNext();
    engine_ = make({.options = options_,
                    .mechanism = *setting_.given,
                    .noise = noise_,
                    .rows = rows_.working(),
                    .dense = dense_},
                   audited);
    Step([](bool, const Statistics&) {});  // the one before the first
  }

  double charged_mu() const { return ChargedMu(*setting_.honest); }

  // Takes a step; see(is there, statistics) is told of each canary.
  template <class See>
  void Step(const See& see) {
    const Drawn step = std::exchange(next_, Drawn());
    DrawNext();
    Release(step.batch);
    Residual before = std::exchange(noise_seen_, Residual());
    const std::vector<uint8_t> written_before = std::exchange(written_, update_.written);
    FindNoise(step.units);
    for (size_t i = 0; i < step.there.size(); ++i) {
      const bool there = step.there[i] != 0;
      see(there, Look(setting_.canaries[i], there, before, written_before));
    }
  }

 private:
  // A step, and the canaries that are in it.
  struct Drawn {
    std::vector<uint8_t> there;
    std::vector<const EngineUnit*> units;
    stream::StepBatch batch;
  };

  static size_t Absent(const std::vector<uint8_t>& there) {
    return static_cast<size_t>(std::ranges::count(there, 0));
  }
  // An engine is told of a step while it takes the one before.
  void DrawNext() {
    for (const EngineUnit& unit : setting_.others) next_.units.push_back(&unit);
    for (const EngineUnit& canary : setting_.canaries) {
      next_.there.push_back(coins_() >> 63);
      if (next_.there.back()) next_.units.insert(next_.units.begin() + 1, &canary);
    }
    std::vector<const EngineUnit*> all = next_.units;
    if (audited_.null_unit) all.insert(all.begin() + 1, Absent(next_.there), &setting_.nothing);
    next_.batch = setting_.StepOf(all, audited_.fault);
    next_.batch.number = ++steps_drawn_;
  }

  void Release(const stream::StepBatch& step) {
    train::StepReport report;
    const auto must = [](const Status& status) {
      TACIT_CHECK(status.has_value(), status ? "" : status.error().message);
    };
    engine_->Announce(next_.batch);
    must(engine_->Begin(step));
    must(engine_->Release(&report));
    must(engine_->Settle());
    const store::DenseState& state = engine_->dense();
    TACIT_CHECK(state.parameters == setting_.dense, "a weight moved at a rate of 0");
    const auto n = static_cast<ptrdiff_t>(setting_.dense.size());
    update_.dense.assign(state.optimizer.begin(), state.optimizer.begin() + n);
    rows_.Read(&update_);
  }

  // Takes all units that are there out of the sum, as the honest mechanism has them.
  void FindNoise(const std::vector<const EngineUnit*>& units) {
    const double batch = setting_.expected_batch;
    for (const float x : update_.dense) noise_seen_.dense.push_back(x * batch);
    for (const float x : update_.values) noise_seen_.values.push_back(x * batch);
    for (const EngineUnit* unit : units) {
      const UnitSum& sum = sums_.Of(*unit, update_.written);
      for (size_t i = 0; i < sum.dense.size(); ++i) noise_seen_.dense[i] -= sum.dense[i];
      for (const auto& [row, values] : sum.rows)
        for (size_t i = 0; i < values.size(); ++i)
          noise_seen_.values[update_.row_begin[row] + i] -= values[i];
    }
  }

  Statistics Look(const EngineUnit& canary, bool there, const Residual& before,
                  const std::vector<uint8_t>& written_before) {
    const UnitSum& sum = sums_.Of(canary, update_.written);
    Statistics statistics{};
    // Along the canary: the sum without all others, and what has changed since the step before.
    double along = 0, change = 0, common = 0;
    for (size_t i = 0; i < sum.dense.size(); ++i) {
      const double m = sum.dense[i];
      along += noise_seen_.dense[i] * m;
      common += m * m;
      if (!before.dense.empty()) change += (noise_seen_.dense[i] - before.dense[i]) * m;
    }
    for (const auto& [row, values] : sum.rows) {
      const size_t begin = update_.row_begin[row];
      bool silent = true;
      for (size_t i = 0; i < values.size(); ++i) {
        along += noise_seen_.values[begin + i] * values[i];
        silent = silent && update_.values[begin + i] == 0;
        if (before.dense.empty() || !written_before[row]) continue;
        change += (noise_seen_.values[begin + i] - before.values[begin + i]) * values[i];
        common += values[i] * values[i];
      }
      statistics[kSilence] += silent;
    }
    const double own = there ? 1 : 0, variance = std::pow(setting_.stddev_gradient, 2);
    statistics[kLikelihood] = (along + (own - 0.5) * sum.squared) / variance + OfSelection(canary);
    statistics[kDifference] = change + own * common;
    statistics[kContrast] = Contrast(sum, own);
    return statistics;
  }

  // ln of the likelihood ratio of which of its rows were written.
  double OfSelection(const EngineUnit& canary) {
    if (setting_.stddev_selection == 0) return 0;
    const auto pass = [&](double count) {
      return NormalCdf((count - setting_.threshold) / setting_.stddev_selection);
    };
    const double p0 = pass(0), p1 = pass(setting_.contribution);
    double sum = 0;
    for (const uint64_t row : sums_.RowsOf(canary)) {
      if (audited_.has_vocabulary && !std::ranges::binary_search(setting_.vocabulary, row))
        continue;
      sum += std::log(update_.written[row] ? p1 / p0 : (1 - p1) / (1 - p0));
    }
    return sum;
  }

  // Numbers of the canary's first two rows, in which it pulls in opposite directions.
  double Contrast(const UnitSum& sum, double own) const {
    if (sum.rows.size() < 2) return 0;
    double contrast = 0, sign = 1;
    for (const auto& [row, values] : {sum.rows[0], sum.rows[1]}) {
      contrast += sign * (noise_seen_.values[update_.row_begin[row]] + own * values[0]);
      sign = -sign;
    }
    return contrast;
  }

  const EngineCase& audited_;
  const EngineSetting setting_;
  UnitSums sums_;
  EngineRows rows_;
  noise::StreamNoise source_;
  KeptKey noise_;
  std::mt19937_64 coins_;
  const train::ClickEngineOptions options_;
  store::DenseState dense_;
  Drawn next_;
  uint64_t steps_drawn_ = 0;
  std::unique_ptr<train::ClickEngine> engine_;
  Update update_;
  Residual noise_seen_;
  std::vector<uint8_t> written_;
};

}  // namespace

Finding AuditEngine(const EngineCase& audited, const EngineAuditOptions& options,
                    const EngineMaker& make) {
  EngineSteps steps(audited, options, make);
  const auto take = [&](uint64_t runs, const auto& see) {
    for (uint64_t taken = 0; taken < 2 * runs; taken += options.canaries) steps.Step(see);
  };
  std::array<std::array<std::vector<double>, 2>, kStatistics> sample;
  take(options.runs_of_choice, [&](bool there, const Statistics& seen) {
    for (size_t s = 0; s < kStatistics; ++s) sample[s][there].push_back(seen[s]);
  });
  std::array<Threshold, kStatistics> thresholds;
  for (size_t s = 0; s < kStatistics; ++s)
    thresholds[s] = ChooseThreshold(std::move(sample[s][0]), std::move(sample[s][1]));
  std::array<std::array<Tally, 2>, kStatistics> tallies;
  take(options.runs, [&](bool there, const Statistics& seen) {
    for (size_t s = 0; s < kStatistics; ++s) tallies[s][there].Add(seen[s], thresholds[s]);
  });
  Finding finding{.charged_mu = steps.charged_mu(), .mu = {}};
  for (size_t s = 0; s < kStatistics; ++s)
    finding.mu[s] = BoundMu(tallies[s][0], tallies[s][1], options.alpha);
  return finding;
}

std::string Describe(const EngineCase& audited, const Finding& finding) {
  return Describe(Case{.name = audited.name}, finding);
}

}  // namespace tacit::audit
