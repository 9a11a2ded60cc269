#include "audit/float_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/check.h"
#include "mechanism/clipper.h"
#include "model/carriers/carriers.h"
#include "model/pctr.h"

namespace tacit::audit {
namespace {

constexpr uint32_t kNumbers = 13;
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

class Attack {
 public:
  Attack(const FloatSumCase& attacked, ops::Backend& backend)
      : attacked_(attacked),
        model_({.space = {},
                .dense_width = kNumbers,
                .hidden = attacked.hidden,
                .precision = attacked.precision},
               backend),
        parameters_(model_.InitialDense(7)),
        clipper_(mechanism::MakeFlatClipper(kClip, 1)) {
    if (attacked.carrier_rank == 0) return;
    map_ = model::CarriersOf({.rank = attacked.carrier_rank})
               .make(model_.Matrices(), parameters_, 7, backend);
    TACIT_CHECK(map_->Choose(0, parameters_).has_value());
  }

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
    double most = 0;
    for (int more = -2; more <= 2; ++more) {
      const auto pushes = static_cast<size_t>(std::ceil(std::ldexp(1, power) / each) + more);
      if (pushes + 1 > period) break;
      most = std::max(most, Moved(period, push, pushes, tail));
    }
    return most;
  }

  // The dense sum of these records at these offsets.
  std::vector<double> Sum(const std::vector<Record>& records, const std::vector<size_t>& offset) {
    std::vector<uint32_t> unit_of(records.size());
    std::vector<float> label, dense, logits(records.size()), loss(records.size());
    std::vector<uint32_t> block_end;
    for (size_t i = 0; i < records.size(); ++i) {
      unit_of[i] = static_cast<uint32_t>(i);
      label.push_back(records[i].label);
      dense.insert(dense.end(), records[i].numbers.begin(), records[i].numbers.end());
      const auto place = [&](size_t at) {
        return attacked_.fault == SumFault::kByRecords ? at : offset[at];
      };
      if (i > 0 && place(i) / 256 != place(i - 1) / 256)
        block_end.push_back(static_cast<uint32_t>(i));
    }
    block_end.push_back(static_cast<uint32_t>(records.size()));
    const model::Examples examples{.size = records.size(),
                                   .units = records.size(),
                                   .unit_of = unit_of,
                                   .label = label,
                                   .dense = dense,
                                   .slot_end = {},
                                   .slot_row = {},
                                   .block_end = block_end,
                                   .apart = true};
    model::Activations activations;
    activations.unit_end.assign(records.size(), 0);
    const auto must = [](const Status& status) { TACIT_CHECK(status.has_value()); };
    must(model_.Forward(examples, parameters_, {}, logits));
    must(model_.Backward(examples, parameters_, loss));
    const Rule rule(clipper_->rule(), attacked_.fault != SumFault::kOneSum);
    model::StepGradient sum;
    model::GroupNorms norms;
    must(model_.ClippedSum(examples, activations, {}, rule, &sum, &norms, *map_));
    if (attacked_.fault == SumFault::kOneSum) return {sum.dense.begin(), sum.dense.end()};
    std::vector<double> values;
    for (const int64_t steps : sum.dense_sums)
      values.push_back(static_cast<double>(steps) * rule.grid_step());
    return values;
  }
  // A record's part of the last layer's bias, the number that is pushed.
  double BiasOf(const Record& record) { return Sum({record}, {0}).back(); }

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
    std::vector<size_t> offset;
    for (size_t i = 0; i < attacked_.offsets; ++i) {
      records.push_back(i % period < pushes ? push : tail);
      offset.push_back(i);
    }
    const std::vector<double> with = Sum(records, offset);
    records.erase(records.begin());
    offset.erase(offset.begin());
    const std::vector<double> without = Sum(records, offset);
    double squared = 0;
    for (size_t i = 0; i < with.size(); ++i)
      squared += (with[i] - without[i]) * (with[i] - without[i]);
    return std::sqrt(squared) / kClip;
  }

  const FloatSumCase& attacked_;
  model::Pctr model_;
  const std::vector<float> parameters_;
  const std::unique_ptr<mechanism::Clipper> clipper_;
  std::unique_ptr<model::SumMap> map_ = std::make_unique<model::SumMap>();
};

}  // namespace

double MostMoved(const FloatSumCase& attacked, ops::Backend& backend) {
  return Attack(attacked, backend).Run();
}

}  // namespace tacit::audit
