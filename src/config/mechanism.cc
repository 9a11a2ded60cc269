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
  fields.Enum(
      {"source",
       "`file`: a public list, free of charge.\n`first-period`: the noised histogram of the first "
       "held period, released once.\n`running`: the noised histograms of all held periods, summed "
       "up; it follows the stream, and costs in each period.\nHistograms are paid from epsilon "
       "before the steps, and hold 12 bytes for every row there is."},
      &vocabulary.source, kSources, RequiredIf(used));
  const bool file = vocabulary.source == Vocabulary::Source::kFile;
  fields.Text({"file",
               "A file of lines `feature<TAB>value`, each value as the log writes it; an empty "
               "value is a missing one. A wrong line is named. For source `file`."},
              &vocabulary.file, RequiredIf(used && file));
  fields.Integer({"keep",
                  "Rows of the vocabulary; a larger number than there are means all. With source "
                  "`file` it has a default: 0, all of the file."},
                 &vocabulary.keep, file ? 0 : 1, uint64_t{1} << 36,
                 file ? UsedIf(used) : RequiredIf(used));
  fields.Enum({"query",
               "`gaussian`: noise on each count, one price for all rows.\n`gumbel`: which rows are "
               "on top and nothing else, at a price of its own."},
              &vocabulary.query, kQueries, UsedIf(used && !file));
  fields.Number({"noise_multiplier",
                 "The noise of each histogram. Higher: cheaper, and chance decides among rare "
                 "values. `gumbel` is as dear as a Gaussian of this."},
                &vocabulary.noise_multiplier, kNoise, RequiredIf(used && !file));
  fields.Number({"clip", "The norm that one unit's histogram is clipped to, for query `gaussian`."},
                &vocabulary.clip, kClip,
                UsedIf(used && !file && vocabulary.query == Vocabulary::Query::kGaussian));
}

void DescribeQuantile(Fields& fields, QuantileClip& quantile, bool used) {
  fields.Number({"target", "The share of units that stay unclipped."}, &quantile.target,
                {.min = 0, .max = 1, .above_min = true, .below_max = true}, UsedIf(used));
  fields.Number({"rate", "The step of the clip's logarithm: the speed at which the clip moves."},
                &quantile.rate, {.min = 0, .max = 10, .above_min = true}, UsedIf(used));
  fields.Number({"noise_multiplier",
                 "The noise of the count of unclipped units. Its cost is taken out of the step's "
                 "noise multiplier, so that both together keep epsilon. Lower: the clip wavers "
                 "less, and the gradient has more noise."},
                &quantile.noise_multiplier, kNoise, RequiredIf(used));
}

void DescribeCarriers(Fields& fields, Carriers& carriers, bool used) {
  static constexpr std::array<std::string_view, 3> kFrom = {"none", "history", "random"};
  fields.Enum(
      {"from",
       "`none`: all weights get a sum and noise.\n`history`: the directions in which the weights "
       "have moved since they began. Where the catalogue has grown since then, model `sequence` "
       "follows less of what was learnt.\n`random`: directions that are drawn anew for each step."},
      &carriers.from, kFrom, UsedIf(used));
  const bool history = carriers.from == Carriers::From::kHistory;
  fields.Integer({"rank",
                  "Directions of each layer. Higher: more of the gradient, more noise. Layers for "
                  "which it would not save numbers stay whole."},
                 &carriers.rank, 1, 1024, UsedIf(used && carriers.on()));
  fields.Integer(
      {"power_steps", "Steps of the power method by which `history` finds the main directions."},
      &carriers.power_steps, 1, 100, UsedIf(used && history));
  fields.Integer({"warm_up_steps",
                  "The learner's first steps, in which `history` takes the directions of the "
                  "weights themselves."},
                 &carriers.warm_up_steps, 0, 1'000'000'000, UsedIf(used && history));
}

}  // namespace

void DescribeMechanism(Fields& fields, Mechanism& mechanism) {
  static constexpr std::array<std::string_view, 4> kClippings = {"flat", "automatic", "per-layer",
                                                                 "quantile"};
  fields.Kind(
      {"kind",
       "`adafest`: rows whose noisy count in the batch reaches a threshold. The cost goes with the "
       "batch, not with the tables. For streams whose frequent values change.\n`fest`: the rows of "
       "a vocabulary, all of them in every step. For values that stay.\n`adafest+`: adafest inside "
       "fest's vocabulary, with no false positives outside of it. For very large "
       "tables.\n`dp-sgd`: every row of every table gets noise in every step. The dense baseline, "
       "slow; the mechanism of model `sequence`.\n`exponential`: a fixed number of rows by noisy "
       "gradient norm. A baseline; its price is high.\n`counts`: the release of model "
       "`transitions`, once a period.\n`sums`: the release of model `linear`, once a period: the "
       "noised sum of residuals and the noised count of each value.\n`forward`: noise (DP-FP, "
       "paper 001) on what the network is shown of a record, its numbers and its embeddings, which "
       "are frozen; unit `event`. **Labels are not covered by epsilon**, nor is the choice of "
       "records in a step.\n`none`: not private; goes with epsilon `.inf` only."},
      &mechanism.kind, mechanism.kinds, Use::kRequired);
  const MechanismTraits& kind = mechanism.traits();
  const auto has = [&kind](std::string_view key) { return kind.keys.has(key); };
  fields.Number({"threshold",
                 "The noisy count from which a row is updated, for `adafest` and `adafest+`. "
                 "Higher: fewer rows, faster steps, rare values learnt later. `.inf`: no row ever, "
                 "and the model learns above random embeddings."},
                &mechanism.threshold, {.min = 0, .infinite = true}, RequiredIf(has("threshold")));
  fields.Number(
      {"sigma_ratio",
       "Noise of the counts over noise of the gradient, for `adafest` and `adafest+`. Higher: less "
       "noise in the gradient for the same epsilon, and a coarser selection of rows."},
      &mechanism.sigma_ratio, {.min = 1e-3, .max = 1e3}, UsedIf(has("sigma_ratio")));
  fields.Number({"selection_clip",
                 "The norm that one unit's counts are clipped to, for `adafest` and `adafest+`."},
                &mechanism.selection_clip, kClip, UsedIf(has("selection_clip")));
  fields.Section({"vocabulary", "The vocabulary of `fest` and `adafest+`."}, [&](Fields& below) {
    DescribeVocabulary(below, mechanism.vocabulary, has("vocabulary"));
  });
  fields.Integer({"rows", "Rows that a step of `exponential` writes."}, &mechanism.rows, 1,
                 uint64_t{1} << 36, RequiredIf(has("rows")));
  fields.Number({"row_epsilon",
                 "The epsilon of each of these rows. Their price, `rows * row_epsilon^2 / 8` of "
                 "zCDP a step, is not lessened by sampling, and is paid from epsilon before the "
                 "gradient. Higher: dearer, better chosen."},
                &mechanism.row_epsilon, {.min = 1e-6, .max = 1e6}, RequiredIf(has("row_epsilon")));
  fields.Number({"row_clip",
                 "The norm that one unit's gradient of one row is clipped to, for `exponential`."},
                &mechanism.row_clip, kClip, UsedIf(has("row_clip")));
  fields.Number({"deviations",
                 "`sums` releases a value of a column that is not released whole where its noised "
                 "count is this many times the deviation of its noise."},
                &mechanism.deviations, {.min = 2, .max = 100}, UsedIf(has("deviations")));
  fields.Integer({"whole_columns", "The most values of a column that `sums` releases whole."},
                 &mechanism.whole_columns, 1, uint64_t{1} << 28, UsedIf(has("whole_columns")));
  fields.Number({"representation_clip",
                 "The length that a record's embeddings and numbers together are scaled down to by "
                 "`forward`, in learning and in scoring."},
                &mechanism.representation_clip, kClip, UsedIf(has("representation_clip")));
  const bool gradient = kind.clips_gradients;
  fields.Number(
      {"gradient_clip",
       "The norm that one unit's gradient is clipped to; for clipping `quantile`, at first."},
      &mechanism.gradient_clip, kClip, UsedIf(gradient));
  fields.Enum({"clipping",
               "`flat`: shorter gradients stay as they are.\n`automatic`: all are brought to "
               "`gradient_clip`, so that every unit pulls alike, and the clip need not be "
               "tuned.\n`per-layer`: each layer by itself.\n`quantile`: the clip follows the "
               "gradients' norms."},
              &mechanism.clipping, kClippings, UsedIf(gradient));
  const bool quantile = gradient && mechanism.clipping == Mechanism::Clipping::kQuantile;
  fields.Section({"quantile", "The moving clip of clipping `quantile`."},
                 [&](Fields& below) { DescribeQuantile(below, mechanism.quantile, quantile); });
  fields.Section(
      {"carriers",
       "Low-rank gradients of hidden layers (`pctr`) or of the encoder's matrices (`sequence`): "
       "two thin matrices of each are summed and noised in place of its weights (paper 004, RGP). "
       "Less noise in all and cheaper steps; nothing is learnt in other directions. May be changed "
       "at a restart. Not on a GPU, not with `adam-bc`."},
      [&](Fields& below) { DescribeCarriers(below, mechanism.carriers, kind.sums_gradients()); });
  fields.Number({"noise_multiplier",
                 "Raises the noise multiplier that follows from epsilon and delta. A value that is "
                 "too small is refused at the start, and 0 in any case."},
                &mechanism.noise_multiplier, {.min = 0, .max = kNoise.max},
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
