#include "app/evaluate/ranked_constants.h"

#include "app/evaluate/named_constants.h"

namespace tacit::app {
namespace {

// What Set, Names and Text go by.
constexpr auto kForEach = [](auto& c, const auto& visit) {
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
  return SetNamed(setting, "the ranker", kForEach, this);
}

std::vector<std::string_view> RankedConstants::Names() {
  return NamesOf(RankedConstants(), kForEach);
}

std::string RankedConstants::Text() const { return TextOf(*this, kForEach); }

}  // namespace tacit::app
