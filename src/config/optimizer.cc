#include <array>
#include <string_view>

#include "config/sections.h"

namespace tacit::config {

void DescribeOptimizer(Fields& fields, Optimizer& optimizer, bool used) {
  static constexpr std::array<std::string_view, 2> kMoments = {"own", "lazy"};
  static constexpr Range kDecay = {.min = 0, .max = 1, .below_max = true};
  // Beyond this rate no model learns: its parameters become NaN or infinite within some steps.
  static constexpr double kRateMost = 1e6;
  fields.Kind("kind", &optimizer.kind, optimizer.kinds, UsedIf(used));
  const Keys& keys = optimizer.traits().keys;
  const auto use = [&](std::string_view key) { return UsedIf(used && keys.has(key)); };
  fields.Number("learning_rate", &optimizer.learning_rate,
                {.min = 0, .max = kRateMost, .above_min = true}, UsedIf(used));
  fields.Number("row_learning_rate", &optimizer.row_learning_rate, {.min = 0, .max = kRateMost},
                UsedIf(used));
  fields.Number("momentum", &optimizer.momentum, kDecay, use("momentum"));
  fields.Number("beta1", &optimizer.beta1, kDecay, use("beta1"));
  fields.Number("beta2", &optimizer.beta2, kDecay, use("beta2"));
  fields.Number("epsilon", &optimizer.epsilon, Range::Positive(), use("epsilon"));
  fields.Enum("moments", &optimizer.moments, kMoments, use("moments"));
  fields.Number("variance_floor", &optimizer.variance_floor, Range::Positive(),
                use("variance_floor"));
  fields.Number("ema", &optimizer.ema, kDecay, UsedIf(used));
}

void DescribeOptimizer(Fields& fields, Optimizer& optimizer) {
  DescribeOptimizer(fields, optimizer, true);
}

}  // namespace tacit::config
