#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "privacy/charge.h"
#include "privacy/coverage.h"
#include "privacy/spending.h"
#include "privacy/user_costs.h"

namespace tacit::privacy {

// What a learner promises; from the configuration, without defaults.
struct Promise {
  std::string learner;
  Unit unit = Unit::kEvent;
  Adjacency adjacency = Adjacency::kZeroOut;
  ParticipationMode participation = ParticipationMode::kOnce;
  double epsilon = 0;  // the budget; infinite for a non-private learner
  double delta = 0;
  Digest model_fingerprint{};
  Bounds bounds = {};  // may change from one start to the next
};

// What all learners together are to stay within; from the configuration.
struct TotalBudget {
  double epsilon = 0;
  double delta = 0;
  friend bool operator==(const TotalBudget&, const TotalBudget&) = default;
};

// A run of equal steps: everything needed to recompute what it cost, and its link in the chain. The
// byte format is documented in README.md of this room; it is versioned.
struct LedgerEntry {
  static constexpr uint8_t kFormat = 3;

  uint8_t format = kFormat;  // 2: of before there were bounds; such a run is not extended
  uint64_t index = 0;        // place in the chain, from 0
  std::string learner;
  Charge charge;
  Unit unit = Unit::kEvent;
  Adjacency adjacency = Adjacency::kZeroOut;
  ParticipationMode participation = ParticipationMode::kOnce;
  Bounds bounds;
  uint64_t steps = 0;
  uint64_t first_commit = 0, last_commit = 0;
  int64_t first_time_ms = 0, last_time_ms = 0;  // UTC of those commits; never before an earlier one
  double delta = 0;
  Spending worst;      // of the learner's worst unit once this run is charged
  double epsilon = 0;  // at that, upper bound
  Digest model_fingerprint{};
  std::string code_version;
  Digest ranges_digest{};  // running digest of the salted offset ranges of the run
  Digest previous_head{};
  Digest head{};  // SHA-256 over all of the above

  std::string Encode() const;
  // kCorruption for bytes that are no entry, kRefused for one of another format than 2 and 3.
  static Result<LedgerEntry> Decode(std::string_view bytes);
  // The head these fields should have.
  Digest ComputeHead() const;
};

// What the ledger says of one learner, or of all.
struct LedgerTotal {
  std::string learner;  // empty: of all learners together
  Unit unit = Unit::kEvent;
  double epsilon = 0;
  double delta = 0;
  uint64_t steps = 0;
};

// The steps of one learner in one commit, or a release of it. Each offset of the ranges was
// eligible for so many of them; an offset that is in two of the ranges, for twice as many.
struct CommitCharge {
  std::string learner;
  Charge charge;
  uint64_t steps = 0;
  uint64_t steps_per_offset = 1;  // `once`: 1; `poisson`: all of them
  std::string topic;
  std::vector<OffsetRange> ranges;  // every offset the steps covered, in order; may be empty
};

// The account of everything ever released, as a hash chain: it only grows. A run of equal steps is
// one entry whose head moves with every commit; head = snapshot hash. No I/O: the store writes the
// entries that Append returns, in the same atomic batch as the rows. Not thread-safe; copying gives
// a snapshot.
class Ledger {
 public:
  Ledger() = default;
  // Declares a learner before its first charge. A learner already known must promise the same unit
  // and delta and have the same fingerprint: kRefused, naming what changed.
  Status Declare(const Promise& promise);

  // The budget of all learners together. Total is stated at its delta from here on.
  // kInvalidArgument unless it is a promise.
  Status DeclareTotal(const TotalBudget& budget);
  // Nobody holds the learners to a total any more.
  void ClearTotal() { total_budget_.reset(); }
  const std::optional<TotalBudget>& total_budget() const { return total_budget_; }

  // The epsilon a learner would be at after these charges too, which are all its own. REQUIRES at
  // least one, of a declared learner.
  double EpsilonAfter(std::span<const CommitCharge> charges) const;
  // The epsilon of all learners together after these charges too, of any of them; at `delta`, or
  // where there is none at Total's. For every step: O(learners + ranges asked about), as long as
  // the worst unit stays what it was.
  double TotalAfter(std::span<const CommitCharge> charges,
                    std::optional<Delta> delta = std::nullopt) const;

  // Charges one commit and returns the indices of the entries that changed or are new, ascending. A
  // learner may be charged for several things, in order. `time_ms` is now (UTC); a clock that went
  // back is held at the last time there was. `salt` makes the digest of the ranges unguessable.
  // REQUIRES declared learners. O(learners), not O(entries). A charge of no steps leaves no trace.
  std::vector<uint64_t> Append(CommitSeq commit, int64_t time_ms,
                               std::span<const CommitCharge> charges, const Digest& salt,
                               std::string_view code_version);

  const Digest& head() const { return head_; }
  const std::vector<LedgerEntry>& entries() const { return entries_; }
  std::vector<LedgerTotal> Learners() const;
  // Over all learners, composed at the total budget's delta, or without one at the largest of
  // theirs: spendings add up offset by offset, since one record may be in every learner's steps.
  // The unit is user when every learner's is, else event.
  LedgerTotal Total() const;

  // Everything but the entries (coverage, promises, running state) for the store to keep beside
  // them; operator-only, it tells offset counts. Restore refuses, as kCorruption, a chain with a
  // broken link or head and a state that does not belong to these entries.
  std::string EncodeState() const;
  static Result<Ledger> Restore(std::vector<LedgerEntry> entries, std::string_view state);
  // What was promised, by name, and the total budget: the part of a state that is nobody's secret.
  struct Promises {
    std::vector<Promise> learners;
    std::optional<TotalBudget> total;
  };
  static Result<Promises> ReadPromises(std::string_view state);

 private:
  struct Account {
    static constexpr uint64_t kNoEntry = ~uint64_t{0};

    Promise promise;
    Coverage coverage;   // of an event-level learner
    UserCosts users;     // of a user-level learner
    Spending worst;      // of the worst unit; at least that of one step once there was one
    double epsilon = 0;  // at that
    uint64_t steps = 0;
    uint64_t last_entry = kNoEntry;
    bool growing = false;  // whether each sampled step of the last entry cost the worst unit more
    mutable EpsilonMeter meter;

    // What the worst unit would have spent, and the epsilon of it.
    std::pair<Spending, double> WorstAfter(std::span<const CommitCharge> charges) const;
    std::vector<Spending> CandidatesAfter(std::span<const CommitCharge> charges) const;
    // The worst user's, after those of these charges that are this learner's.
    Spending UserAfter(std::span<const CommitCharge> charges) const;
  };

  const Account& Find(std::string_view learner) const;
  Delta TotalDelta() const;
  // Charges one learner; returns the index of the entry it went into.
  uint64_t Book(CommitSeq commit, const CommitCharge& charge, const Digest& salt,
                std::string_view code_version);
  LedgerEntry EntryOf(const Account& account, const CommitCharge& charge) const;
  // Whether the account's last entry may take another commit: it is the same run, and nothing lies
  // behind it but the last entries of other learners, whose heads are cheap to do again.
  bool MayExtend(const Account& account, const LedgerEntry& next) const;
  void LinkFrom(uint64_t first);
  static Result<Ledger> DecodeState(std::string_view state, uint64_t* entries);
  Status CheckState(uint64_t entries_in_state) const;
  // What follows from accounts and entries.
  void Derive();

  std::map<std::string, Account, std::less<>> accounts_;
  std::vector<LedgerEntry> entries_;
  Digest head_{};
  std::optional<TotalBudget> total_budget_;
  Coverage events_;           // of all event-level learners together
  int64_t last_time_ms_ = 0;  // of all entries
  mutable EpsilonMeter total_meter_;
};

struct VerifyOptions {
  // Epsilons recomputed, spread evenly over the entries; of each learner the last one always.
  uint64_t epsilons_max = ~uint64_t{0};
};
// What is wrong with a chain of entries, or nothing: links, heads, epsilons recomputed from the
// entries alone, costs that go down.
Status VerifyChain(std::span<const LedgerEntry> entries, const VerifyOptions& options = {});

}  // namespace tacit::privacy
