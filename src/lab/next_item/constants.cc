#include "lab/next_item/constants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>
#include <type_traits>

#include "base/text.h"

namespace tacit::lab {
namespace {

constexpr std::string_view kOfRanker = "ranker_";

// Lists the constants for Set, Names and the texts: calls visit(name, field) for each.
template <class Setting, class Visit>
void ForEachConstant(Setting& setting, const Visit& visit) {
  auto& c = setting.trained;
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
  visit("described_share", c.described_share);
  visit("bf16", c.bf16);
  visit("epochs_private", c.epochs_private);
  visit("epochs_plain", c.epochs_plain);
  visit("warm_up", c.warm_up);
  visit("batch_private", c.batch_private);
  visit("batch_plain", c.batch_plain);
  visit("learning_rate_private", c.learning_rate_private);
  visit("learning_rate_plain", c.learning_rate_plain);
  visit("average_decay_private", c.average_decay_private);
  visit("beta1", c.optimizer.beta1);
  visit("beta2", c.optimizer.beta2);
  visit("subtract_noise", c.subtract_noise);
  visit("variance_floor", c.optimizer.variance_floor);
  visit("normalised_clip", c.normalised_clip);
  visit("clip_norm", c.clip_norm);
  visit("carriers", c.mechanism.carriers.from);
  visit("carrier_rank", c.mechanism.carriers.rank);
  visit("carrier_power_steps", c.mechanism.carriers.power_steps);
  visit("carrier_warm_up_steps", c.mechanism.carriers.warm_up_steps);
  visit("kappa", c.kappa);
  visit("histogram_share", c.histogram_share);
  visit("counts_share", c.counts_share);
  visit("counts_weight", c.counts_weight);
  auto& r = setting.ranked;
  visit("ranker_share", r.share);
  visit("ranker_steps", r.steps);
  visit("ranker_candidates", r.candidates);
  visit("ranker_candidates_asked", r.orders);
  visit("ranker_last_items", r.last_items);
  visit("ranker_focus", r.focus);
  visit("ranker_learning_rate", r.learning_rate);
}

tl::unexpected<Error> NoValue(std::string why) {
  return Fail(ErrorCode::kInvalidArgument, std::move(why));
}

Status ParseConstant(std::string_view text, bool* value) {
  if (text != "true" && text != "false") return NoValue("it is true or false");
  *value = text == "true";
  return {};
}

constexpr std::array<std::string_view, 3> kCarriers = {"none", "history", "random"};

Status ParseConstant(std::string_view text, config::Carriers::From* value) {
  const auto named = std::ranges::find(kCarriers, text);
  if (named == kCarriers.end()) return NoValue("it is none, history or random");
  *value = static_cast<config::Carriers::From>(named - kCarriers.begin());
  return {};
}

template <class Number>
Status ParseConstant(std::string_view text, Number* value) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if constexpr (std::is_floating_point_v<Number>) {
    if (!whole || !std::isfinite(number)) return NoValue("it is a number");
  } else {
    if (!whole)
      return NoValue(
          fmt::format("it is a whole number of 0 to {}", std::numeric_limits<Number>::max()));
  }
  *value = number;
  return {};
}

// A number in place of a rule's.
template <class Number>
Status ParseConstant(std::string_view text, std::optional<Number>* value) {
  return ParseConstant(text, &value->emplace());
}

std::string_view ShownAs(config::Carriers::From from) {
  return kCarriers[static_cast<size_t>(from)];
}
template <class Number>
Number ShownAs(Number value) {
  return value;
}

template <class Number>
std::string ShownAs(const std::optional<Number>& value) {
  return value ? fmt::format("{}", *value) : "by rule";
}

std::string TextOf(const SequenceSetting& setting, bool of_ranker) {
  std::string text;
  ForEachConstant(setting, [&](std::string_view name, const auto& field) {
    if (name.starts_with(kOfRanker) == of_ranker)
      text += fmt::format("{}{} {}", text.empty() ? "" : " ", name, ShownAs(field));
  });
  return text;
}

}  // namespace

TrainedConstants TrainedConstants::ForStreams() {
  TrainedConstants constants;
  constants.length = config::Sequence().length;
  constants.blocks = config::Sequence().blocks;
  constants.epochs_private = tuned::kStreamPrivate.epochs;
  constants.batch_private = tuned::kStreamPrivate.batch;
  constants.learning_rate_private = tuned::kStreamPrivate.learning_rate;
  constants.dropout_private = tuned::kStreamPrivate.dropout;
  constants.epochs_plain = tuned::kStreamPlain.epochs;
  constants.batch_plain = tuned::kStreamPlain.batch;
  constants.learning_rate_plain = tuned::kStreamPlain.learning_rate;
  constants.dropout_plain = tuned::kStreamPlain.dropout;
  constants.histogram_share = tuned::kHistogramShareOfStream;
  return constants;
}

Status SequenceSetting::Set(std::string_view constant) {
  const size_t equals = constant.find('=');
  const std::string_view wanted = constant.substr(0, equals);
  const auto refuse = [&](std::string why) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("--set {}: {}", constant, why));
  };
  if (equals == std::string_view::npos) return refuse("it has the form NAME=VALUE");
  bool found = false;
  Status status;
  ForEachConstant(*this, [&](std::string_view name, auto& field) {
    if (name != wanted) return;
    found = true;
    status = ParseConstant(constant.substr(equals + 1), &field);
  });
  if (!found)
    return refuse(fmt::format("no constant of a learner{}; there are {}",
                              DidYouMean(wanted, Names()), fmt::join(Names(), ", ")));
  return status ? Status() : refuse(status.error().message);
}

std::vector<std::string_view> SequenceSetting::Names() {
  std::vector<std::string_view> names;
  const SequenceSetting setting;
  ForEachConstant(setting, [&](std::string_view name, const auto&) { names.push_back(name); });
  return names;
}

std::string SequenceSetting::TrainedText() const { return TextOf(*this, false); }
std::string SequenceSetting::RankedText() const { return TextOf(*this, true); }

}  // namespace tacit::lab
