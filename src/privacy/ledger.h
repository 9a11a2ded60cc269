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
#include "privacy/learner_names.h"
#include "privacy/spending.h"
#include "privacy/user_costs.h"

namespace tacit::privacy {

// A learner's promise; from the configuration, without defaults.
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

// The budget of all learners together; from the configuration.
struct TotalBudget {
  double epsilon = 0;
  double delta = 0;
  friend bool operator==(const TotalBudget&, const TotalBudget&) = default;
};

// A run of equal steps: all data needed to recompute its cost, and its link in the chain. The byte
// format is versioned; ledger_entry.cc has its grammar.
struct LedgerEntry {
  // No run: from here on the learner's model is another, which took over what the one before had
  // released.
  bool is_growth = false;
  uint64_t index = 0;   // place in the chain, from 0
  std::string learner;  // the name of its time (learner_names.h)
  std::string before;   // a growth with another name: the name until then; else empty
  Charge charge;
  Unit unit = Unit::kEvent;
  Adjacency adjacency = Adjacency::kZeroOut;
  ParticipationMode participation = ParticipationMode::kOnce;
  Bounds bounds;
  // 0: steps in blocks that the entries before have paid for, or a growth.
  uint64_t steps = 0;
  uint64_t first_commit = 0, last_commit = 0;
  int64_t first_time_ms = 0, last_time_ms = 0;  // UTC of those commits; never before an earlier one
  double delta = 0;
  Spending worst;      // the learner's worst unit once this run is charged
  double epsilon = 0;  // upper bound for `worst`
  Digest model_fingerprint{};
  std::string code_version;
  Digest ranges_digest{};  // running digest of the salted offset ranges of the run
  Digest previous_head{};
  Digest head{};  // SHA-256 over all of the above

  std::string Encode() const;
  // Returns kCorruption for bytes that are no entry, kRefused for another format.
  static Result<LedgerEntry> Decode(std::string_view bytes);
  // Computes the head that these fields should have.
  Digest ComputeHead() const;
};

// The ledger's total for one learner, or for all.
struct LedgerTotal {
  std::string learner;  // if empty, all learners together
  Unit unit = Unit::kEvent;
  double epsilon = 0;
  double delta = 0;
  uint64_t steps = 0;
  // The part of a record that some charge did not cover (NotCovered); if empty, all is covered.
  std::string_view not_covered = {};
  // The greatest advantage of anybody who wants to tell whether a unit was in it (tradeoff.h).
  // Stored tips lack it: AddAdvantages finds it again.
  std::optional<double> advantage = {};

  // The advantage, or without one the room that epsilon and delta alone leave.
  double AdvantageAtMost() const;
};

// One learner's steps in one commit, or a release of the learner. Each offset of the ranges was
// eligible for steps_per_offset of them; an offset in two of the ranges, for twice as many.
struct CommitCharge {
  std::string learner;
  Charge charge;
  uint64_t steps = 0;
  uint64_t steps_per_offset = 1;  // `once`: 1; held periods: all the steps
  std::string topic;
  std::vector<OffsetRange> ranges;  // every offset the steps covered; may be empty
  // Steps that the first charge of their period has paid for. They cost nothing more, and move the
  // head like any others.
  uint64_t paid_steps = 0;

  bool has_steps() const { return steps > 0 || paid_steps > 0; }
};

// The account of everything ever released, as a hash chain that only grows. A run of equal steps is
// one entry whose head moves with every commit; head = snapshot hash. No I/O: the store writes the
// entries that Append returns, in the same atomic batch as the rows. Not thread-safe; copying gives
// a snapshot.
class Ledger {
 public:
  Ledger() = default;
  // Declares a learner before its first charge. A known learner must promise the same unit and
  // delta and have the same fingerprint, else kRefused names the change. Returns kInvalidArgument
  // for an invalid promise, including unit event with a window that drops copies.
  Status Declare(const Promise& promise);

  // A promise of a declared learner that goes on with another model, or under another name.
  struct Heir {
    Promise promise;
    std::string before = {};  // the learner's name so far; if empty, that of the promise
  };
  // Lets declared learners go on with other models or names, from this commit on, and adds an entry
  // for each that has been charged; nothing is charged for it, because no record is looked at.
  // Returns the indices of these entries, ascending. kRefused: more than the fingerprint and the
  // name of a promise differs, or a learner has or had the new name.
  Result<std::vector<uint64_t>> TakeOver(CommitSeq commit, int64_t time_ms,
                                         std::span<const Heir> heirs,
                                         std::string_view code_version);

  // Sets the budget of all learners together; Total() uses its delta from here on. Returns
  // kInvalidArgument for an invalid budget.
  Status DeclareTotal(const TotalBudget& budget);
  // Removes the total budget.
  void ClearTotal() { total_budget_.reset(); }
  const std::optional<TotalBudget>& total_budget() const { return total_budget_; }

  // The learner's epsilon once these charges, all its own, are added. REQUIRES at least one, of a
  // declared learner.
  double EpsilonAfter(std::span<const CommitCharge> charges) const;
  // The epsilon of all learners together once these charges, of any of them, are added; at `delta`,
  // or without one at Total's. Fast enough for every step: O(learners + ranges asked about) while
  // the worst unit stays the same.
  double TotalAfter(std::span<const CommitCharge> charges,
                    std::optional<Delta> delta = std::nullopt) const;

  // Charges one commit and returns the indices of the entries that changed or are new, ascending. A
  // learner may have several charges, in order. `time_ms` is now (UTC); a clock that went back is
  // held at the last time. `salt` makes the digest of the ranges unguessable. REQUIRES declared
  // learners. O(learners), not O(entries). A charge of no steps leaves no trace.
  std::vector<uint64_t> Append(CommitSeq commit, int64_t time_ms,
                               std::span<const CommitCharge> charges, const Digest& salt,
                               std::string_view code_version);

  const Digest& head() const { return head_; }
  const std::vector<LedgerEntry>& entries() const { return entries_; }
  std::vector<LedgerTotal> Learners() const;
  // The run that the learner's next steps may extend; null before its first charge, and for an
  // unknown learner. Valid until the next Append.
  const LedgerEntry* LastEntryOf(std::string_view learner) const;
  // The total over all learners, composed at the total budget's delta, or without one at their
  // largest. Spendings add up offset by offset, since one record may be in every learner's steps.
  // The unit is user if every learner's is, else event.
  LedgerTotal Total() const;

  // Encodes everything but the entries (coverage, promises, running state) for the store to keep
  // beside them. The state is operator-only because it reveals offset counts. Restore returns
  // kCorruption for a chain with a broken link or head, and for a state that does not belong to
  // these entries.
  std::string EncodeState() const;
  static Result<Ledger> Restore(std::vector<LedgerEntry> entries, std::string_view state);
  // The learners' promises, by name, and the total budget: the public part of a state.
  struct Promises {
    std::vector<Promise> learners;
    std::optional<TotalBudget> total;
  };
  static Result<Promises> ReadPromises(std::string_view state);

 private:
  struct Account {
    static constexpr uint64_t kNoEntry = ~uint64_t{0};

    Promise promise;
    Coverage coverage;   // event-level learners only
    UserCosts users;     // user-level learners only
    Spending worst;      // the worst unit's; at least one step's, once there was a step
    double epsilon = 0;  // at `worst`
    uint64_t steps = 0;
    uint64_t last_entry = kNoEntry;
    std::string_view not_covered = {};  // as in LedgerTotal
    bool growing = false;  // each sampled step of the last entry cost the worst unit more
    bool of_all = false;   // its charges count against every unit, at any offsets
    mutable EpsilonMeter meter;

    void Uncover(const Charge& charge) {
      if (const std::string_view part = NotCovered(charge.mechanism); !part.empty())
        not_covered = part;
    }
    // True where no offset tells which units were in a step, so that all count as in it.
    bool CountsAgainstAll(std::span<const CommitCharge> charges) const;
    // The worst unit's spending after these charges, and its epsilon.
    std::pair<Spending, double> WorstAfter(std::span<const CommitCharge> charges) const;
    std::vector<Spending> CandidatesAfter(std::span<const CommitCharge> charges) const;
    // The worst user's spending after those of these charges that are this learner's; the worst
    // unit's, where all count as in each step.
    Spending UserAfter(std::span<const CommitCharge> charges) const;
  };

  Status CheckHeir(const Heir& heir) const;
  const Account& Find(std::string_view learner) const;
  Delta TotalDelta() const;
  // The candidates for the worst unit's spending over all learners.
  std::vector<Spending> AllCandidatesAfter(std::span<const CommitCharge> charges) const;
  // Charges one learner; returns the index of the entry it changed or added.
  uint64_t Book(CommitSeq commit, const CommitCharge& charge, const Digest& salt,
                std::string_view code_version);
  LedgerEntry EntryOf(const Account& account, const CommitCharge& charge) const;
  // Checks that the account's last entry may take another commit: it is the same run, and only last
  // entries of other learners follow it, whose heads are cheap to recompute.
  bool MayExtend(const Account& account, const LedgerEntry& next) const;
  void LinkFrom(uint64_t first);
  static Result<Ledger> DecodeState(std::string_view state, uint64_t* entries);
  Status CheckState(uint64_t entries_in_state) const;
  // Recomputes the members that follow from accounts and entries.
  void Derive();

  std::map<std::string, Account, std::less<>> accounts_;  // by the names of now
  LearnerNames names_;
  std::vector<LedgerEntry> entries_;
  Digest head_{};
  std::optional<TotalBudget> total_budget_;
  Coverage events_;           // all event-level learners together
  int64_t last_time_ms_ = 0;  // latest time of all entries
  mutable EpsilonMeter total_meter_;
};

// Finds the totals' advantages from the entries alone, for readers without the ledger's state.
// The bound may be well above what the ledger itself says, if a learner's price has changed or
// several learners took part, and is never below it.
void AddAdvantages(std::span<const LedgerEntry> entries, std::vector<LedgerTotal>* learners,
                   LedgerTotal* total);

struct VerifyOptions {
  // Epsilons to recompute, spread evenly over the entries; each learner's last one always is.
  uint64_t epsilons_max = ~uint64_t{0};
};
// Verifies a chain of entries: links, heads, epsilons recomputed from the entries alone, and costs
// that never fall.
Status VerifyChain(std::span<const LedgerEntry> entries, const VerifyOptions& options = {});

}  // namespace tacit::privacy
