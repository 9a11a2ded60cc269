#include "base/terms.h"

#include <algorithm>

#include "base/check.h"

namespace tacit {

void Terms::Add(const Term& term) {
  TACIT_CHECK(terms_.empty() || terms_.back().first < term.first, "terms begin one after another");
  TACIT_CHECK(term.id != kNoTerm, "a term has a number");
  terms_.push_back(term);
}

TermId Terms::At(CommitSeq seq) const {
  const auto next = std::ranges::upper_bound(terms_, seq, {}, &Term::first);
  return next == terms_.begin() ? kNoTerm : std::prev(next)->id;
}

bool Terms::Has(const RememberedCommit& commit) const {
  const auto next = std::ranges::upper_bound(terms_, commit.seq, {}, &Term::first);
  if (commit.head && next != terms_.end() && next->first.value == commit.seq.value + 1)
    return *commit.head == next->head_before;
  return commit.term == At(commit.seq);
}

bool AccountsFor(std::span<const Ancestor> ancestors, std::string_view lineage,
                 const RememberedCommit& commit) {
  for (const Ancestor& ancestor : ancestors)
    if (ancestor.lineage == lineage)
      return commit.seq < ancestor.through ||
             (commit.seq == ancestor.through && (!commit.head || *commit.head == ancestor.head));
  return false;
}

}  // namespace tacit
