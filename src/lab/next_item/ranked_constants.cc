#include "lab/next_item/ranked_constants.h"

#include "lab/next_item/named_constants.h"

namespace tacit::lab {
namespace {

// Lists the constants for Set, Names and Text.
constexpr auto kForEachRanked = [](auto& c, const auto& visit) {
  visit("ranker_share", c.share);
  visit("ranker_steps", c.steps);
  visit("ranker_candidates", c.candidates);
  visit("ranker_candidates_asked", c.candidates_asked);
  visit("ranker_last_items", c.last_items);
  visit("ranker_focus", c.focus);
  visit("ranker_learning_rate", c.learning_rate);
};

}  // namespace

Status RankedConstants::Set(std::string_view setting) {
  return SetNamed(setting, "the ranker", kForEachRanked, this);
}

std::vector<std::string_view> RankedConstants::Names() {
  return NamesOf(RankedConstants(), kForEachRanked);
}

std::string RankedConstants::Text() const { return TextOf(*this, kForEachRanked); }

}  // namespace tacit::lab
