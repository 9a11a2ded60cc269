#include <fmt/format.h>

#include <string_view>

#include "config/sections.h"

namespace tacit::config {
namespace {

// Beyond these values sums and noise do not fit their integer grids, and no use needs them.
constexpr Range kClip = {.min = 1e-6, .max = 1e6};
constexpr Range kNoise = {.min = 1e-3, .max = 1e6};

void DescribeVocabulary(Fields& fields, Vocabulary& vocabulary, bool used) {
  static constexpr std::array<std::string_view, 3> kSources = {"file", "first-period", "running"};
  static constexpr std::array<std::string_view, 2> kQueries = {"gaussian", "gumbel"};
  fields.Enum("source", &vocabulary.source, kSources, RequiredIf(used));
  const bool file = vocabulary.source == Vocabulary::Source::kFile;
  fields.Text("file", &vocabulary.file, RequiredIf(used && file));
  fields.Integer("keep", &vocabulary.keep, file ? 0 : 1, uint64_t{1} << 36,
                 file ? UsedIf(used) : RequiredIf(used));
  fields.Enum("query", &vocabulary.query, kQueries, UsedIf(used && !file));
  fields.Number("noise_multiplier", &vocabulary.noise_multiplier, kNoise,
                RequiredIf(used && !file));
  fields.Number("clip", &vocabulary.clip, kClip,
                UsedIf(used && !file && vocabulary.query == Vocabulary::Query::kGaussian));
}

void DescribeQuantile(Fields& fields, QuantileClip& quantile, bool used) {
  fields.Number("target", &quantile.target,
                {.min = 0, .max = 1, .above_min = true, .below_max = true}, UsedIf(used));
  fields.Number("rate", &quantile.rate, {.min = 0, .max = 10, .above_min = true}, UsedIf(used));
  fields.Number("noise_multiplier", &quantile.noise_multiplier, kNoise, RequiredIf(used));
}

void DescribeCarriers(Fields& fields, Carriers& carriers, bool used) {
  static constexpr std::array<std::string_view, 3> kFrom = {"none", "history", "random"};
  fields.Enum("from", &carriers.from, kFrom, UsedIf(used));
  const bool history = carriers.from == Carriers::From::kHistory;
  fields.Integer("rank", &carriers.rank, 1, 1024, UsedIf(used && carriers.on()));
  fields.Integer("power_steps", &carriers.power_steps, 1, 100, UsedIf(used && history));
  fields.Integer("warm_up_steps", &carriers.warm_up_steps, 0, 1'000'000'000,
                 UsedIf(used && history));
}

}  // namespace

void DescribeMechanism(Fields& fields, Mechanism& mechanism) {
  static constexpr std::array<std::string_view, 4> kClippings = {"flat", "automatic", "per-layer",
                                                                 "quantile"};
  fields.Kind("kind", &mechanism.kind, mechanism.kinds, Use::kRequired);
  const MechanismTraits& kind = mechanism.traits();
  const auto has = [&kind](std::string_view key) { return kind.keys.has(key); };
  fields.Number("threshold", &mechanism.threshold, {.min = 0, .infinite = true},
                RequiredIf(has("threshold")));
  fields.Number("sigma_ratio", &mechanism.sigma_ratio, {.min = 1e-3, .max = 1e3},
                UsedIf(has("sigma_ratio")));
  fields.Number("selection_clip", &mechanism.selection_clip, kClip, UsedIf(has("selection_clip")));
  fields.Section("vocabulary", [&](Fields& below) {
    DescribeVocabulary(below, mechanism.vocabulary, has("vocabulary"));
  });
  fields.Integer("rows", &mechanism.rows, 1, uint64_t{1} << 36, RequiredIf(has("rows")));
  fields.Number("row_epsilon", &mechanism.row_epsilon, {.min = 1e-6, .max = 1e6},
                RequiredIf(has("row_epsilon")));
  fields.Number("row_clip", &mechanism.row_clip, kClip, UsedIf(has("row_clip")));
  fields.Number("deviations", &mechanism.deviations, {.min = 2, .max = 100},
                UsedIf(has("deviations")));
  fields.Integer("whole_columns", &mechanism.whole_columns, 1, uint64_t{1} << 28,
                 UsedIf(has("whole_columns")));
  fields.Number("representation_clip", &mechanism.representation_clip, kClip,
                UsedIf(has("representation_clip")));
  const bool gradient = kind.clips_gradients;
  fields.Number("gradient_clip", &mechanism.gradient_clip, kClip, UsedIf(gradient));
  fields.Enum("clipping", &mechanism.clipping, kClippings, UsedIf(gradient));
  const bool quantile = gradient && mechanism.clipping == Mechanism::Clipping::kQuantile;
  fields.Section("quantile",
                 [&](Fields& below) { DescribeQuantile(below, mechanism.quantile, quantile); });
  fields.Section("carriers", [&](Fields& below) {
    DescribeCarriers(below, mechanism.carriers, kind.sums_gradients());
  });
  fields.Number("noise_multiplier", &mechanism.noise_multiplier, {.min = 0, .max = kNoise.max},
                UsedIf(kind.adds_noise));
}

Status CheckMechanism(const Place& place, const Mechanism& mechanism,
                      const Participation& participation) {
  if (mechanism.traits().adds_noise && mechanism.noise_multiplier == 0.0) {
    return place.Key("noise_multiplier")
        .Fail(
            "0 adds no noise, so no finite epsilon holds; leave it out to have it follow from "
            "epsilon and delta");
  }
  if (mechanism.kind == MechanismKind::kExponential &&
      participation.mode == Participation::Mode::kAllocate) {
    return place.Key("kind").Fail(
        "exponential cannot be combined with participation.mode allocate: nothing bounds what a "
        "choice of rows costs in a block of steps; use mode poisson or once");
  }
  if (mechanism.observes_periods() && !participation.holds_periods()) {
    return place.Key("vocabulary")
        .Key("source")
        .Fail(
            "a histogram needs a period that is held, and participation.mode once holds none; use "
            "mode allocate or poisson, or source file");
  }
  return {};
}

}  // namespace tacit::config
