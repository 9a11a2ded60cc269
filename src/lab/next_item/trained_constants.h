#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacit::lab {

// The constants of trained sequence models, all set before the data is seen. They were chosen on
// MovieLens-1M at epsilon 10, in six runs, by ranking items before the last; the last items were
// never looked at. tests/bench/RESULTS.md has the runs. The transformer paper's values (length 200,
// width 64, one crop, dropout 0.2, 100 epochs, a fifth of them warm-up, no mask, no biases) can be
// set.
struct TrainedConstants {
  // The model.
  uint32_t length = 50, width = 32, blocks = 2, heads = 1;
  bool pre_norm = false;
  bool item_bias = true;
  // Logits begin as the logarithm of a released histogram of items, so that gradients need not
  // learn popularity. Not used by a model that begins with counts.
  bool popularity_start = true;
  uint32_t crops = 1;
  bool random_crops = true;
  double dropout_private = 0, dropout_plain = 0.1;
  double label_smoothing = 0;
  bool mask_seen = true;
  bool bf16 = false;  // rounds the factors of products to bf16; else f32

  // A run.
  double epochs_private = 20, epochs_plain = 20, warm_up = 0.1;
  // The average number of users per step; all users if there are fewer.
  double batch_private = 2048, batch_plain = 256;
  double learning_rate_private = 0.03, learning_rate_plain = 0.005;
  double average_decay_private = 0.95;
  double beta1 = 0.9, beta2 = 0.999;
  bool subtract_noise = false;  // DP-AdamBC, of private runs
  double variance_floor = 1e-8;
  bool normalised_clip = true;  // else flat
  double clip_norm = 1;

  // Re-Attention: its kappa, and the share of mu for the histogram of items, which Re-Attention and
  // popularity_start use.
  double kappa = 1;
  double histogram_share = 0.1;

  // For a model that begins with counts: the share of mu^2 for their release, and the weight of
  // their logits.
  double counts_share = 0.9;
  double counts_weight = 3;

  // Constants for streams, which bring few users at a time. A private step takes all users of a
  // period, so batch_private is only the public divisor, and epochs_private is the number of steps
  // of a period. Chosen on MovieLens latest small; see tests/bench/RESULTS.md.
  static TrainedConstants ForStreams();

  // Reads "width=32". kInvalidArgument, naming --set, for an unknown name or a value of the wrong
  // kind. Whether the value makes sense is checked when a model is made.
  Status Set(std::string_view setting);
  static std::vector<std::string_view> Names();
  // All constants as text.
  std::string Text() const;
};

}  // namespace tacit::lab
