#pragma once

#include <cstdint>
#include <string>

namespace tacit::app {

// The constants of trained sequence models, set beforehand: paper 000's where it tells them (width
// 64, two blocks, one head, dropout 0.2, 100 epochs, a fifth of them warm-up, gradients normalised
// to 1).
struct TrainedConstants {
  uint32_t length = 200, width = 64, blocks = 2, heads = 1;
  float dropout = 0.2f;
  double epochs = 100, warm_up = 0.2;
  // Users a step takes on average, or all where there are fewer.
  double batch_private = 2048, batch_plain = 256;
  float learning_rate_private = 5e-3f, learning_rate_plain = 1e-3f;
  double average_decay_private = 0.95;
  // Re-Attention: its kappa, and the share of mu that the histogram of items it goes by may have.
  float kappa = 1;
  double histogram_share = 0.1;

  // All of them, in words.
  std::string Text() const;
};

}  // namespace tacit::app
