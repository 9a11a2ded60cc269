#pragma once

#include <gtest/gtest.h>

#include "model/sequence/coins.h"
#include "model/sequence/output_layer.h"
#include "model/sequence/sequence_model.h"
#include "scale_rules.h"
#include "sequence_oracle.h"

// A sequence model, its parameters and some units, and what the oracle says of each.
namespace tacit::model::testing {

inline constexpr uint64_t kTransformers = 40, kKinds = 56;
inline constexpr double kKnownDecay = 0.625;  // a float

// Every kind of model there is, by number: recurrent ones after the transformers.
inline SequenceOptions Kind(uint64_t kind) {
  SequenceOptions o;
  o.catalogue = 9;
  o.length = 1 + kind % 6;
  o.width = 8;
  o.heads = kind % 2 + 1;
  o.blocks = 1 + kind / 2 % 2;
  o.norm = kind / 3 % 2 ? SequenceOptions::Norm::kPre : SequenceOptions::Norm::kPost;
  o.feed_forward = kind % 4 == 0 ? 7 : 0;
  o.tied = kind % 3 != 1;
  o.crops = 1 + kind % 3;
  o.mean_loss = kind % 5 != 0;
  o.last_position_only = kind % 7 == 3;
  o.dropout = kind % 4 == 2 ? 0.3f : 0;
  if (kind % 5 == 4) {
    o.negatives = 5;
  } else {
    o.item_bias = kind % 2 == 0;
    o.label_smoothing = kind % 3 == 2 ? 0.2f : 0;
    o.mask_seen = kind % 3 == 1;
  }
  if (kind % 4 == 1) o.re_attention.kappa = 1.5f;
  if (kind % 8 == 5) o.re_attention.most = 0.02f;
  if (kind >= kTransformers) {
    o.encoder = kind % 2 ? SequenceOptions::Encoder::kGru : SequenceOptions::Encoder::kLstm;
    o.re_attention = {};
  }
  return o;
}

struct Trial {
  Trial(const SequenceOptions& given, uint64_t seed)
      : options(given),
        layout(options),
        parameters(RandomParameters(layout, seed)),
        units(RandomUnits(options, 7, seed)) {
    step.seed = seed;
    if (options.re_attention.kappa > 0) {
      for (uint32_t i = 0; i < options.catalogue; ++i)
        item_variance.push_back(0.01f * static_cast<float>(1 + i));
      step.noise = {0.02f, item_variance};
    }
  }

  SequenceOracle::Context ContextOf(const PaddedUnit& unit) const {
    SequenceOracle::Context context;
    if (options.negatives > 0) {
      OutputStep output(layout);
      const auto ops = ops::MakeReferenceUnitOps(ops::Precision::kF32);
      output.Begin(parameters, StepCoins{step.seed}.negatives(), *ops);
      context.negatives.assign(output.negatives().begin(), output.negatives().end());
    }
    if (options.dropout > 0) {
      const DropoutCoins coins{StepCoins{step.seed}.dropout(), unit.id, options.dropout};
      context.dropped = [coins, this](uint32_t site, size_t row, size_t column) {
        ops::MatrixBuffer<float> factors;
        factors.Reset(options.length * options.crops, options.width);
        coins.Draw(site, factors.view());
        return double{factors.view().Row(row)[column]};
      };
    }
    context.known = known;
    context.known_decay = kKnownDecay;
    context.weight_variance = step.noise.weight_variance;
    context.carrier_rank = step.noise.factor_rank;
    context.item_variance.assign(item_variance.begin(), item_variance.end());
    return context;
  }
  OracleUnit Oracle(size_t unit) const {
    return SequenceOracle(layout, parameters, ContextOf(units[unit])).Run(units[unit]);
  }
  SequenceSum Sum(const ScaleRule& rule, ops::Backend& backend,
                  const SumMap& map = kWholeGradient) const {
    SequenceModel model(options, backend, prior);
    SequenceSum sum;
    SequenceModel::Step mapped = step;
    mapped.map = &map;
    const Status status =
        model.ClippedSum(parameters, PaddedUnits(options, units), mapped, rule, &sum);
    EXPECT_TRUE(status) << status.error().message;
    return sum;
  }

  SequenceOptions options;
  SequenceLayout layout;
  std::vector<float> parameters, item_variance;
  std::vector<PaddedUnit> units;
  SequenceModel::Step step;
  std::vector<std::vector<double>> known;
  const LogitPrior* prior = nullptr;
};

inline double SquaredLength(std::span<const double> x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return sum;
}

// The norm that is stated for a unit, and by which it is clipped, against its own gradient.
inline void CheckNormIsOfWhatIsAdded(const Trial& trial, ops::Backend& backend,
                                     const SumMap& map = kWholeGradient) {
  const SequenceSum sum = trial.Sum(FlatClip(1e30), backend, map);
  const std::vector<double> added(sum.values.begin(), sum.values.end());
  const double length = std::sqrt(SquaredLength(added));
  double joint = 0;
  for (const float squared : sum.norms.squared) joint += double{squared};
  ASSERT_NEAR(std::sqrt(joint), length, 1e-6 * length);
  const SequenceSum clipped = trial.Sum(FlatClip(0.05), backend, map);
  ASSERT_LE(
      std::sqrt(SquaredLength(std::vector<double>(clipped.values.begin(), clipped.values.end()))),
      0.05 * (1 + 1e-6));
}

}  // namespace tacit::model::testing
