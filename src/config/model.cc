#include <array>
#include <string_view>

#include "base/tuned.h"
#include "config/sections.h"

namespace tacit::config {
namespace {

// Both of two parts of mu^2 need enough for noise that has a grid.
constexpr Range kShareOfMu = {.min = 1e-6, .max = 1 - 1e-6};

// A histogram's share of mu was tuned, so that it is squared here.
double DefaultStartShare(Sequence::Start start) {
  return start == Sequence::Start::kPopularity
             ? tuned::kHistogramShareOfStream * tuned::kHistogramShareOfStream
             : tuned::kCountsShare;
}

void DescribeSequence(Fields& fields, Sequence& sequence, bool used) {
  static constexpr std::array<std::string_view, 3> kEncoders = {"transformer", "gru", "lstm"};
  static constexpr Range kShare = {.min = 0, .max = 1, .below_max = true};
  const Use use = UsedIf(used);
  fields.Enum({"encoder", "The encoder of model `sequence`."}, &sequence.encoder, kEncoders, use);
  const Use attention = UsedIf(used && sequence.encoder == Sequence::Encoder::kTransformer);
  fields.Integer({"length",
                  "Items that `sequence` looks back over. Time and memory of a user grow with it, "
                  "attention with its square."},
                 &sequence.length, 1, 4096, use);
  fields.Integer({"width",
                  "The width of the embeddings and the encoder of `sequence`. Fewer numbers, less "
                  "noise in all."},
                 &sequence.width, 1, 4096, use);
  fields.Integer({"blocks", "Blocks of the transformer of `sequence`, or recurrent layers."},
                 &sequence.blocks, 1, 64, use);
  fields.Integer({"heads", "Heads of the transformer's attention."}, &sequence.heads, 1, 64,
                 attention);
  fields.Integer(
      {"feed_forward", "The width of the transformer's inner layer. 0 stands for `width`."},
      &sequence.feed_forward, 0, 65536, attention);
  fields.Flag({"tied",
               "true: the output layer of `sequence` is the embeddings. false: it has as many "
               "parameters and as much noise again."},
              &sequence.tied, use);
  fields.Flag({"item_bias", "true: `sequence` has a learnt bias for each item."},
              &sequence.item_bias, use);
  fields.Integer(
      {"negatives",
       "Public items that each step of `sequence` draws for its softmax. 0: the whole catalogue."},
      &sequence.negatives, 0, 1 << 24, use);
  fields.Number({"re_attention",
                 "The share of the correction of the transformer's attention for the parameters' "
                 "noise; 1 is that of paper 000."},
                &sequence.re_attention, {.min = 0, .max = 1}, attention);
  fields.Number({"dropout", "The share of numbers that `sequence` leaves out while training."},
                &sequence.dropout, kShare, use);
  fields.Number(
      {"label_smoothing", "The share of the target that `sequence` spreads over all items."},
      &sequence.label_smoothing, kShare, use);
  // A softmax over part of the catalogue, or smoothed labels, cannot rule items out.
  if (sequence.negatives > 0 || sequence.label_smoothing > 0) sequence.mask_seen = false;
  fields.Flag({"mask_seen",
               "true: `sequence` rules out the items before a position there, as `exclude_seen` "
               "does in answers. With `negatives` or `label_smoothing` the default is false; with "
               "start `counts` it is always true."},
              &sequence.mask_seen, use);
  fields.Integer(
      {"crops",
       "Windows that `sequence` learns from at most, of a history that is longer than `length`."},
      &sequence.crops, 1, 1024, use);
  fields.Flag(
      {"random_crops", "true: the windows lie where public coins say. false: they are the latest."},
      &sequence.random_crops, use);
  fields.Integer(
      {"warm_up_steps",
       "Steps over which the learning rate of `sequence` rises, once in the learner's life."},
      &sequence.warm_up_steps, 0, 1'000'000'000, use);
  fields.Number({"described_share",
                 "The share of an item's initial embedding (of its square) that follows from the "
                 "catalogue's description of it, so that items described alike begin near each "
                 "other. It costs no privacy. 0: all of it is drawn."},
                &sequence.described_share, {.min = 0, .max = 1}, use);
  static constexpr std::array<std::string_view, 3> kStarts = {"none", "popularity", "counts"};
  fields.Enum({"start",
               "The release that opens each held period of `sequence`, before its "
               "steps.\n`popularity`: a histogram of items.\n`counts`: the release of model "
               "`transitions`.\nIts logits are added to the model's, in training and in answers, "
               "so that gradients need not learn what it says."},
              &sequence.start, kStarts, use);
  const bool starts = used && sequence.start != Sequence::Start::kNone;
  if (sequence.start_share == 0) sequence.start_share = DefaultStartShare(sequence.start);
  fields.Number(
      {"start_share",
       "The start's share of the promise's mu^2, over all periods that `max_participations` lets a "
       "user be in; the steps get the rest. For `popularity` the default is 0.7225."},
      &sequence.start_share, kShareOfMu, UsedIf(starts));
  const bool counts = starts && sequence.start == Sequence::Start::kCounts;
  fields.Number({"start_weight", "The weight of the logits of start `counts`."},
                &sequence.start_weight, {.min = 0, .max = 1e6}, UsedIf(counts));
}

// `counts`, `forget`: the keys of the shaped count model, and of what is left of earlier periods,
// are used. `ranked`: the model can have a ranker, and it is known whether it has.
void DescribeTransitions(Fields& fields, Transitions& transitions, bool counts, bool forget,
                         bool ranked) {
  fields.Flag({"described",
               "true: `transitions` and start `counts` use the catalogue's descriptions of items. "
               "false: they use ids alone."},
              &transitions.described, UsedIf(counts));
  fields.Integer({"cells",
                  "Pairs of items that `transitions` and start `counts` measure and keep at most; "
                  "about 80 bytes each."},
                 &transitions.cells, 1, uint64_t{1} << 27, UsedIf(counts));
  fields.Number(
      {"forget",
       "The share of older periods' counts that is left at each new period, for `transitions` and "
       "starts. Below 1: they follow a drift, and noise is averaged over fewer periods."},
      &transitions.forget, {.min = 0, .max = 1, .above_min = true}, UsedIf(forget));
  const Use use = UsedIf(ranked && transitions.ranker);
  fields.Number(
      {"ranker_share", "The ranker's share of the promise's mu^2; the counts get the rest."},
      &transitions.ranker_share, kShareOfMu, use);
  fields.Integer({"ranker_steps",
                  "The ranker's steps on a period, each with every user of it. They are charged as "
                  "one release with the counts."},
                 &transitions.ranker_steps, 1, 1'000'000, use);
  fields.Integer({"ranker_users",
                  "Users of a period, about. The number is public, and the divisor of each step: "
                  "far too small a number learns too fast, too large a one too slowly."},
                 &transitions.ranker_users, 1, uint64_t{1} << 32,
                 RequiredIf(ranked && transitions.ranker));
}

}  // namespace

void DescribeModel(Fields& fields, Model& model) {
  static constexpr std::array<std::string_view, 2> kPrecisions = {"f32", "bf16"};
  fields.Kind({"kind",
               "`pctr`: the probability of a click, by a network over embeddings.\n`linear`: the "
               "probability of a click, by one weight a value, out of a period's noised sums "
               "(mechanism `sums`).\n`sequence`: a user's next item, by a transformer or a "
               "recurrent net on the user's recent items (mechanism `dp-sgd`).\n`transitions`: a "
               "user's next item, by noised counts of what follows what (mechanism `counts`).\nThe "
               "last two take items from `catalogue.file` and need unit `user`. A record is an "
               "item of its user where it names one of the catalogue and its label is above 0."},
              &model.kind, model.kinds, Use::kRequired);
  const Keys& keys = model.traits().keys;
  const auto use = [&keys](std::string_view key) { return UsedIf(keys.has(key)); };
  fields.Flag({"ranker",
               "true: a small private model puts the 200 likeliest items of `transitions` in "
               "order, by their other features, in a catalogue of any size. It is learnt anew from "
               "each period's users, after their counts. Where the catalogue does not describe its "
               "items it orders the 20 likeliest and brings nothing; a warning says so."},
              &model.transitions.ranker, use("ranker"));
  fields.Integers({"hidden",
                   "Widths of the ReLU layers of `pctr`. The time of a step goes with the products "
                   "of neighbours."},
                  &model.hidden, 1, 65536, use("hidden"));
  fields.OneOf({"compute",
                "`bf16`: `pctr` and `sequence` round the factors of products to bfloat16. It "
                "halves the time of products where the processor has AVX512_BF16, and is slower "
                "where it has not; `pctr` clips slightly harder for it."},
               &model.compute, kPrecisions, use("compute"));
  fields.OneOf({"row_precision",
                "`bf16`: embeddings of `pctr` are rounded to bfloat16 with each commit, after the "
                "noise, up or down by public coins so that they stay as they are in the mean. Half "
                "the disk, and twice the rows that caches hold. The optimiser's numbers stay f32. "
                "May be changed at a restart. Not on a GPU."},
               &model.row_precision, kPrecisions, use("row_precision"));
  const bool counted_alone = keys.has("ranker") && !model.transitions.ranker;
  fields.Integer(
      {"seed", "The seed of the initial parameters, which is public. Noise is never seeded."},
      &model.seed, 0, UINT64_MAX, UsedIf(keys.has("seed") && !counted_alone));
  fields.Flag({"categorical",
               "false: `pctr` learns from the numbers alone, without embeddings. A fast baseline, "
               "whose noise is in few parameters."},
              &model.categorical, use("categorical"));
  fields.Texts({"crosses",
                "Pairs of features, such as `[A*B, C*D]`, whose values together have weights of "
                "their own in `linear`. A pair that is known to act together is worth much; each "
                "is one more column, and adds to the noise of all. Its features have one value for "
                "each event, and at most 2^32 pairs of values."},
               &model.crosses, use("crosses"));
  DescribeSequence(fields, model.sequence, keys.has("encoder"));
  const bool starts = keys.has("start") && model.sequence.start != Sequence::Start::kNone;
  const bool counts = starts && model.sequence.start == Sequence::Start::kCounts;
  DescribeTransitions(fields, model.transitions, keys.has("ranker") || counts,
                      keys.has("ranker") || starts, keys.has("ranker"));
}

}  // namespace tacit::config
