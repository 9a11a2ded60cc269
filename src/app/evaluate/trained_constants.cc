#include "app/evaluate/trained_constants.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <type_traits>

#include "base/text.h"

namespace tacit::app {
namespace {

// visit(name, field) for every constant: what Set, Names and Text go by.
template <class Constants, class Visit>
void ForEach(Constants& c, const Visit& visit) {
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
}

Status Parse(std::string_view text, bool* value) {
  if (text != "true" && text != "false")
    return Fail(ErrorCode::kInvalidArgument, "it is true or false");
  *value = text == "true";
  return {};
}

template <class Number>
Status Parse(std::string_view text, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if constexpr (std::is_floating_point_v<Number>) {
    if (whole && std::isfinite(*value)) return {};
    return Fail(ErrorCode::kInvalidArgument, "it is a number");
  } else {
    if (whole) return {};
    return Fail(ErrorCode::kInvalidArgument, "it is a whole number of 0 or more");
  }
}

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
  const size_t equals = setting.find('=');
  const std::string_view wanted = setting.substr(0, equals);
  const auto refuse = [&](std::string why) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("--set {}: {}", setting, why));
  };
  if (equals == std::string_view::npos) return refuse("it has the form NAME=VALUE");
  bool found = false;
  Status status;
  ForEach(*this, [&](std::string_view name, auto& field) {
    if (name != wanted) return;
    found = true;
    status = Parse(setting.substr(equals + 1), &field);
  });
  if (!found)
    return refuse(fmt::format("no constant of trained learners{}; there are {}",
                              DidYouMean(wanted, Names()), fmt::join(Names(), ", ")));
  return status ? Status() : refuse(status.error().message);
}

std::vector<std::string_view> TrainedConstants::Names() {
  std::vector<std::string_view> names;
  const TrainedConstants constants;
  ForEach(constants, [&](std::string_view name, const auto&) { names.push_back(name); });
  return names;
}

std::string TrainedConstants::Text() const {
  std::string text;
  ForEach(*this, [&](std::string_view name, const auto& field) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", name, field);
  });
  return text;
}

}  // namespace tacit::app
