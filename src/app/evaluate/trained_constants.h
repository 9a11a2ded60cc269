#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacit::app {

// The constants of trained sequence models. All are set before the data is seen. These were chosen
// on MovieLens-1M at epsilon 10, by what was ranked before the last items, which never were looked
// at, in six runs; tests/bench/RESULTS.md has them. What the paper of the transformer has instead
// (length 200, width 64, one crop, dropout 0.2, 100 epochs, a fifth of them warm-up, no mask, no
// biases) can be set.
struct TrainedConstants {
  // The model.
  uint32_t length = 50, width = 32, blocks = 2, heads = 1;
  bool pre_norm = false;
  bool item_bias = true;
  // Item biases begin as the logarithm of a released histogram of items, so that no gradient is
  // spent on what is popular; asks for item_bias. Not where counts are begun with.
  bool popularity_start = true;
  uint32_t crops = 1;
  bool random_crops = true;
  double dropout_private = 0, dropout_plain = 0.1;
  double label_smoothing = 0;
  bool mask_seen = true;
  bool bf16 = false;  // what factors of products are rounded to; else f32

  // A run.
  double epochs_private = 20, epochs_plain = 20, warm_up = 0.1;
  // Users a step takes on average, or all where there are fewer.
  double batch_private = 2048, batch_plain = 256;
  double learning_rate_private = 0.03, learning_rate_plain = 0.005;
  double average_decay_private = 0.95;
  double beta1 = 0.9, beta2 = 0.999;
  bool subtract_noise = false;  // DP-AdamBC, of private runs
  double variance_floor = 1e-8;
  bool normalised_clip = true;  // else flat
  double clip_norm = 1;

  // Re-Attention: its kappa, and the share of mu that the histogram of items may have by which it,
  // and popularity_start, go.
  double kappa = 1;
  double histogram_share = 0.1;

  // Where counts are begun with: the share of mu^2 that their release may have, and the weight of
  // their logits.
  double counts_share = 0.9;
  double counts_weight = 3;

  // Those of streams, which bring few users at a time. A private step takes all users of a period,
  // so that batch_private is only the public divisor, and epochs_private the steps of a period.
  // What is popular is kept beside the biases as it is released, period by period. Chosen on
  // MovieLens latest small, as tests/bench/RESULTS.md tells.
  static TrainedConstants ForStreams();

  // "width=32". kInvalidArgument, naming --set, for a name that is none or a value that is not of
  // its kind; whether a value makes sense is asked where a model is made of it.
  Status Set(std::string_view setting);
  static std::vector<std::string_view> Names();
  // All of them, in words.
  std::string Text() const;
};

}  // namespace tacit::app
