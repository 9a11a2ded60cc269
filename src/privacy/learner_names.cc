#include "privacy/learner_names.h"

#include "privacy/ledger.h"

namespace tacit::privacy {

LearnerNames::LearnerNames(std::span<const LedgerEntry> entries) {
  for (const LedgerEntry& entry : entries)
    if (!entry.before.empty()) Rename(entry.before, entry.learner);
}

void LearnerNames::Rename(const std::string& before, const std::string& now) {
  for (auto& [name, last] : now_)
    if (last == before) last = now;
  now_[before] = now;
}

std::string_view LearnerNames::Now(std::string_view name) const {
  const auto found = now_.find(name);
  return found == now_.end() ? name : std::string_view(found->second);
}

}  // namespace tacit::privacy
