#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/tuned.h"
#include "config/config.h"
#include "model/transitions/options.h"
#include "model/transitions/public_items.h"
#include "train/ranking/ranked_learner.h"

namespace tacit::lab {

// The constants of trained sequence models, all set before the data is seen: the configuration's
// keys of a sequence model, and those that an experiment has in place of others. The transformer
// paper's values (length 200, width 64, two blocks, one crop, dropout 0.2, 100 epochs, a fifth of
// them warm-up, no mask, no biases) can be set.
struct TrainedConstants : config::Sequence {
  TrainedConstants() {
    length = tuned::kAtOnceLength;
    blocks = tuned::kAtOnceBlocks;
  }
  bool pre_norm = false;
  // Logits begin as the logarithm of a released histogram of items, so that gradients need not
  // learn popularity. Not used by a model that begins with counts.
  bool popularity_start = true;
  double dropout_private = tuned::kAtOncePrivate.dropout,
         dropout_plain = tuned::kAtOncePlain.dropout;
  bool bf16 = false;  // rounds the factors of products to bf16; else f32

  // A run. The batch is the average number of users per step; all users if there are fewer.
  double epochs_private = tuned::kAtOncePrivate.epochs, epochs_plain = tuned::kAtOncePlain.epochs;
  double batch_private = tuned::kAtOncePrivate.batch, batch_plain = tuned::kAtOncePlain.batch;
  double learning_rate_private = tuned::kAtOncePrivate.learning_rate,
         learning_rate_plain = tuned::kAtOncePlain.learning_rate;
  double warm_up = tuned::kWarmUp;  // share of the steps
  double average_decay_private = tuned::kAverageDecay;
  config::Optimizer optimizer;  // without its kind, rates and average
  bool subtract_noise = false;  // DP-AdamBC, of private runs
  bool normalised_clip = true;  // else flat
  double clip_norm = 1;
  config::Mechanism mechanism;  // without its kind and clip

  // Re-Attention: its kappa, and the share of mu for the histogram of items, which Re-Attention and
  // popularity_start use.
  double kappa = 1;
  double histogram_share = tuned::kHistogramShareAtOnce;
  // For a model that begins with counts: the share of mu^2 for their release, and the weight of
  // their logits.
  double counts_share = tuned::kCountsShare, counts_weight = tuned::kCountsWeight;

  // Constants for streams, which bring few users at a time. A private step takes all users of a
  // period, so batch_private is only the public divisor, and epochs_private is the number of steps
  // of a period.
  static TrainedConstants ForStreams();
};

// All that is public and decides what a learner is. The catalogue must outlive every method made
// with it.
struct SequenceSetting {
  const model::transitions::PublicItems* catalogue = nullptr;  // with or without item descriptions
  model::transitions::Options transitions;
  TrainedConstants trained;
  train::RankerOptions ranked;

  // Reads "width=32", a constant of trained learners, or "ranker_steps=200". kInvalidArgument,
  // naming --set, for an unknown name or a value of the wrong kind. Whether the value makes sense
  // is checked when a model is made.
  Status Set(std::string_view constant);
  static std::vector<std::string_view> Names();
  // All constants of trained learners, or of the ranker, as text.
  std::string TrainedText() const;
  std::string RankedText() const;
};

}  // namespace tacit::lab
