#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"

namespace tacit {

// Terms tell a store from its copies. Each start of a store that commits draws a random number, its
// term, and all its commits carry it. A copy that is started and commits by itself therefore has
// other terms than the original from there on, even if its chain is the longer one.
using TermId = std::array<uint8_t, 16>;
inline constexpr TermId kNoTerm{};  // the term of commit 0, before the first start that commits

struct Term {
  CommitSeq first;       // the first commit of the term
  TermId id{};           // never kNoTerm
  Digest head_before{};  // ledger head of the commit before it
};

// A commit as remembered outside the store.
struct RememberedCommit {
  CommitSeq seq;
  TermId term = kNoTerm;
  std::optional<Digest> head;  // nothing if not remembered
};

// The terms of a chain of commits, in order. A value; it grows by 56 bytes with each start that
// commits.
class Terms {
 public:
  // REQUIRES that `term` begins after all others.
  void Add(const Term& term);
  const std::vector<Term>& all() const { return terms_; }

  // Returns kNoTerm before the first term.
  TermId At(CommitSeq seq) const;
  // Decides whether a commit at or before the end of this chain is on it, and not on a fork: by its
  // term, and by its head if this chain knows the head before the term that follows.
  bool Has(const RememberedCommit& commit) const;

 private:
  std::vector<Term> terms_;  // ascending
};

// A lineage that a restored store continues: its ledger has the charges of all commits there up to
// `through`, though the store has not those commits themselves.
struct Ancestor {
  std::string lineage;  // 32 hexadecimal digits
  CommitSeq through;
  Digest head{};  // ledger head of that commit
};
// Decides whether a commit of another lineage is one that these ancestors account for. A commit
// before `through` cannot be told from one of a fork: its head is gone with the lost store.
bool AccountsFor(std::span<const Ancestor> ancestors, std::string_view lineage,
                 const RememberedCommit& commit);

}  // namespace tacit
