#include "store/witness/price_tally.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace tacit::store {
namespace {

using Priced = WitnessedLearner::Priced;

// Finds a price among the newest first, where it mostly is.
auto Find(auto& prices, const WitnessedLearner::Charged& charged) {
  return std::ranges::find(prices | std::views::reverse, charged, &Priced::charged);
}

}  // namespace

void PriceTally::Count(std::span<const privacy::LedgerEntry> entries, size_t first) {
  counted_.resize(entries.size());
  for (size_t i = first; i < entries.size(); ++i) {
    const privacy::LedgerEntry& entry = entries[i];
    if (!entry.before.empty()) {
      auto renamed = learners_.extract(entry.before);
      if (renamed) {
        renamed.key() = entry.learner;
        learners_.insert(std::move(renamed));
      }
    }
    const uint64_t more = entry.steps - std::exchange(counted_[i], entry.steps);
    if (more == 0) continue;
    std::vector<Priced>& prices = learners_[entry.learner];
    const WitnessedLearner::Charged charged = ChargedIn(entry);
    const auto found = Find(prices, charged);
    if (found == prices.rend()) {
      prices.push_back({charged, more});
    } else {
      found->steps += more;
      std::rotate(prices.rbegin(), found, found + 1);  // to the end
    }
  }
}

std::span<const Priced> PriceTally::Of(std::string_view learner) const {
  const auto found = learners_.find(learner);
  return found == learners_.end() ? std::span<const Priced>() : found->second;
}

uint64_t PriceTally::StepsAt(std::string_view learner,
                             const WitnessedLearner::Charged& charged) const {
  const std::span<const Priced> prices = Of(learner);
  const auto found = Find(prices, charged);
  return found == prices.rend() ? 0 : found->steps;
}

}  // namespace tacit::store
