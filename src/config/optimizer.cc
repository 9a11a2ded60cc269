#include <array>
#include <string_view>

#include "config/sections.h"

namespace tacit::config {

void DescribeOptimizer(Fields& fields, Optimizer& optimizer, bool used) {
  static constexpr std::array<std::string_view, 2> kMoments = {"own", "lazy"};
  static constexpr Range kDecay = {.min = 0, .max = 1, .below_max = true};
  // Beyond this rate no model learns: its parameters become NaN or infinite within some steps.
  static constexpr double kRateMost = 1e6;
  fields.Kind({"kind",
               "`adam`: two more floats for each number.\n`sgd`: none.\n`adagrad`: one for each "
               "dense parameter and one for each row.\n`adam-bc`: adam with the noise's known "
               "variance taken out of the dense second moment, so that steps do not shrink with "
               "the noise; not with mechanism `none`."},
              &optimizer.kind, optimizer.kinds, UsedIf(used));
  const Keys& keys = optimizer.traits().keys;
  const auto use = [&](std::string_view key) { return UsedIf(used && keys.has(key)); };
  fields.Number({"learning_rate", "The learning rate; 0 is refused."}, &optimizer.learning_rate,
                {.min = 0, .max = kRateMost, .above_min = true}, UsedIf(used));
  fields.Number(
      {"row_learning_rate", "The learning rate of embedding rows. 0 stands for `learning_rate`."},
      &optimizer.row_learning_rate, {.min = 0, .max = kRateMost}, UsedIf(used));
  fields.Number({"momentum",
                 "The momentum of dense parameters with `sgd`. It takes one more float for each."},
                &optimizer.momentum, kDecay, use("momentum"));
  fields.Number({"beta1", "The decay of the first moment, for `adam` and `adam-bc`."},
                &optimizer.beta1, kDecay, use("beta1"));
  fields.Number({"beta2", "The decay of the second moment, for `adam` and `adam-bc`."},
                &optimizer.beta2, kDecay, use("beta2"));
  fields.Number({"epsilon",
                 "The number that is added to the root of the second moment, for `adam`, `adagrad` "
                 "and the rows of `adam-bc`."},
                &optimizer.epsilon, Range::Positive(), use("epsilon"));
  fields.Enum({"moments",
               "The moments of rows, for `adam` and `adam-bc`.\n`own`: they follow the row's own "
               "writes, so that a rare row takes full steps.\n`lazy`: they decay with every step "
               "of the learner, as if a row that is not written had a zero gradient."},
              &optimizer.moments, kMoments, use("moments"));
  fields.Number(
      {"variance_floor",
       "The least second moment of `adam-bc`. Lower: longer steps where noise is all there is."},
      &optimizer.variance_floor, Range::Positive(), use("variance_floor"));
  fields.Number(
      {"ema",
       "The decay per step of a moving average of the weights, which is served in their place: "
       "less noise in answers, which lag by 1 / (1 - ema) steps. It takes one more float for each "
       "number, and a row is read with all of it. 0: the weights are served."},
      &optimizer.ema, kDecay, UsedIf(used));
}

void DescribeOptimizer(Fields& fields, Optimizer& optimizer) {
  DescribeOptimizer(fields, optimizer, true);
}

}  // namespace tacit::config
