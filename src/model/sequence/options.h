#pragma once

#include <cstdint>

#include "base/result.h"
#include "ops/backend.h"

namespace tacit::model {

// No item: padding in a sequence, or a position without a target.
inline constexpr uint32_t kNoItem = 0xffffffff;

// Paper 000's correction of attention (its section 5, as corrected by this project): the noise in
// the parameters makes uncertain keys draw more attention than they deserve, so each logit is
// lowered by half its variance.
struct ReAttentionOptions {
  float kappa = 0;  // share of the correction; 1: the paper's, 0: none
  float most = 8;   // the most that is taken off a logit
};

struct SequenceOptions {
  enum class Encoder : uint8_t { kTransformer = 0, kGru = 1, kLstm = 2 };
  // The place of normalisation: after each residual sum (Vaswani et al. 2017, as in the paper) or
  // before each branch and once at the end.
  enum class Norm : uint8_t { kPost = 0, kPre = 1 };

  uint32_t catalogue = 0;  // number of items
  uint32_t length = 200;   // positions a crop has at most
  uint32_t width = 64;
  Encoder encoder = Encoder::kTransformer;
  uint32_t blocks = 2;        // or recurrent layers
  uint32_t heads = 1;         // transformer
  uint32_t feed_forward = 0;  // transformer: width of the inner layer; 0: that of the model
  Norm norm = Norm::kPost;    // transformer
  bool tied = true;           // the output layer's rows are the input embeddings
  bool item_bias = false;     // a learnt bias per item in the output
  float embedding_scale = 0;  // what embeddings are multiplied by at the input; 0: sqrt(width)

  // Options of training; no part of what is stored.
  float dropout = 0;                // of embeddings and of each branch's output
  float label_smoothing = 0;        // share of the target that is spread evenly over the catalogue
  bool mean_loss = true;            // over the positions of a unit; else their sum
  bool last_position_only = false;  // of each crop
  // Rules out the items before the position in its crop, except the target: nothing is learnt from
  // how likely they were.
  bool mask_seen = false;
  uint32_t crops = 1;         // windows of a history that is longer than one, at most
  bool random_crops = false;  // wherever public coins say; else the latest, side by side
  uint32_t negatives = 0;     // public ones in each step's softmax; 0: the whole catalogue
  // The precision that factors of products are rounded to; products, sums and all else are f32, and
  // scoring is f32 altogether.
  ops::Precision precision = ops::Precision::kF32;
  ReAttentionOptions re_attention = {};
};

// Fails with kInvalidArgument and names the option that is out of its domain, or the options that
// do not go together.
Status CheckOptions(const SequenceOptions& options);

}  // namespace tacit::model
