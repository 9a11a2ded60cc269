#include "lab/next_item/trained_constants.h"

#include "lab/next_item/named_constants.h"

namespace tacit::lab {
namespace {

// Lists the constants for Set, Names and Text.
constexpr auto kForEach = [](auto& c, const auto& visit) {
  visit("length", c.length);
  visit("width", c.width);
  visit("blocks", c.blocks);
  visit("heads", c.heads);
  visit("pre_norm", c.pre_norm);
  visit("item_bias", c.item_bias);
  visit("popularity_start", c.popularity_start);
  visit("crops", c.crops);
  visit("random_crops", c.random_crops);
  visit("dropout_private", c.dropout_private);
  visit("dropout_plain", c.dropout_plain);
  visit("label_smoothing", c.label_smoothing);
  visit("mask_seen", c.mask_seen);
  visit("bf16", c.bf16);
  visit("epochs_private", c.epochs_private);
  visit("epochs_plain", c.epochs_plain);
  visit("warm_up", c.warm_up);
  visit("batch_private", c.batch_private);
  visit("batch_plain", c.batch_plain);
  visit("learning_rate_private", c.learning_rate_private);
  visit("learning_rate_plain", c.learning_rate_plain);
  visit("average_decay_private", c.average_decay_private);
  visit("beta1", c.beta1);
  visit("beta2", c.beta2);
  visit("subtract_noise", c.subtract_noise);
  visit("variance_floor", c.variance_floor);
  visit("normalised_clip", c.normalised_clip);
  visit("clip_norm", c.clip_norm);
  visit("kappa", c.kappa);
  visit("histogram_share", c.histogram_share);
  visit("counts_share", c.counts_share);
  visit("counts_weight", c.counts_weight);
};

}  // namespace

TrainedConstants TrainedConstants::ForStreams() {
  TrainedConstants constants;
  constants.batch_private = 256;
  constants.batch_plain = 16;
  constants.epochs_plain = 40;
  constants.learning_rate_private = 0.003;
  constants.learning_rate_plain = 0.002;
  constants.dropout_plain = 0.5;
  constants.histogram_share = 0.85;
  return constants;
}

Status TrainedConstants::Set(std::string_view setting) {
  return SetNamed(setting, "trained learners", kForEach, this);
}

std::vector<std::string_view> TrainedConstants::Names() {
  return NamesOf(TrainedConstants(), kForEach);
}

std::string TrainedConstants::Text() const { return TextOf(*this, kForEach); }

}  // namespace tacit::lab
