#include "privacy/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"
#include "privacy/gaussian.h"
#include "privacy/infinity.h"
#include "privacy/tradeoff.h"

namespace tacit::privacy {
namespace {

// SHA256(before | SHA256(salt | ranges)), in the notation of base/bytes.h:
//     ranges := topic:string steps_per_offset:u64 count:u32 range*count
//     range  := partition:i32 begin:u64 end:u64
// The ranges are offset counts, known to the operator only; without the salt they could be guessed.
Digest ExtendRangesDigest(const Digest& before, const Digest& salt, const CommitCharge& charge) {
  ByteWriter ranges;
  ranges.PutString(charge.topic).Put(charge.steps_per_offset);
  ranges.Put(static_cast<uint32_t>(charge.ranges.size()));
  for (const OffsetRange& range : charge.ranges)
    ranges.Put(range.partition).Put(range.begin).Put(range.end);
  const Digest salted = Sha256().Update(salt).Update(ranges.bytes()).Finish();
  return Sha256().Update(before).Update(salted).Finish();
}

// The fields that must be equal for two commits to be one run.
auto RunKey(const LedgerEntry& e) {
  return std::tie(e.is_growth, e.learner, e.charge, e.unit, e.adjacency, e.participation, e.bounds,
                  e.delta, e.model_fingerprint, e.code_version);
}

// Steps on fresh records cost the worst unit nothing more, so they form runs apart from steps on
// records used before. Sampled steps reuse their period's records: the first period's steps all
// cost more (`growing`), those of fresh periods nothing, and a later increase means that records
// are used again. Every user may be in every step that the allowance permits.
bool SameRun(const LedgerEntry& a, const LedgerEntry& b, bool growing) {
  return RunKey(a) == RunKey(b) && (a.worst == b.worst || growing || b.unit == Unit::kUser);
}

// An inspection's records may be any of the stream's.
bool IsOfAll(const Charge& charge) { return charge.mechanism == MechanismKind::kInspection; }

Use UseOf(const CommitCharge& charge) {
  return {charge.topic, charge.ranges, Spending::Of(charge.charge, charge.steps_per_offset)};
}

std::string Short(const Digest& digest) { return ToHex(std::span<const uint8_t>(digest).first(8)); }

Status CheckPromise(const Promise& promise) {
  const auto refuse = [&](std::string_view what) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("learner '{}': {}", promise.learner, what));
  };
  if (promise.learner.empty()) return refuse("a learner needs a name");
  if (!(promise.delta > 0 && promise.delta < 1)) return refuse("delta must be in (0, 1)");
  if (!(promise.epsilon > 0)) return refuse("epsilon must be above 0");
  if (promise.unit == Unit::kEvent && promise.bounds.dedupe_window > 0 &&
      !std::isinf(promise.epsilon))
    return refuse(
        "unit event cannot be combined with source.dedupe.window: without a record its copy would "
        "be learnt from, and a step is charged for one of them");
  return {};
}

// The first difference between two promises of one learner, or "".
std::string WhatChanged(const Promise& was, const Promise& is) {
  const auto changed = [](std::string_view what, const auto& before, const auto& after) {
    return fmt::format("{} was {} and is {}", what, before, after);
  };
  if (was.unit != is.unit) return changed("unit", Name(was.unit), Name(is.unit));
  if (was.delta != is.delta) return changed("delta", was.delta, is.delta);
  if (was.adjacency != is.adjacency)
    return changed("adjacency", Name(was.adjacency), Name(is.adjacency));
  if (was.participation != is.participation)
    return changed("participation", Name(was.participation), Name(is.participation));
  return "";
}

Status Changed(const std::string& learner, const std::string& what) {
  return Fail(ErrorCode::kRefused,
              fmt::format("learner '{}': {}; what was trained and charged under one promise cannot "
                          "continue under another",
                          learner, what));
}

}  // namespace

bool Ledger::Account::CountsAgainstAll(std::span<const CommitCharge> charges) const {
  return promise.unit == Unit::kUser || of_all ||
         std::ranges::any_of(charges, [&](const CommitCharge& charge) {
           return charge.learner == promise.learner && IsOfAll(charge.charge);
         });
}

Spending Ledger::Account::UserAfter(std::span<const CommitCharge> charges) const {
  const auto own = [&](const CommitCharge& charge) {
    return charge.learner == promise.learner && charge.steps > 0;
  };
  if (std::none_of(charges.begin(), charges.end(), own)) return worst;
  if (users.unbounded()) {
    Spending after = worst;
    for (const CommitCharge& charge : charges)
      if (own(charge)) after.Add(Spending::Of(charge.charge, charge.steps));
    return after;
  }
  UserCosts after = users;
  for (const CommitCharge& charge : charges)
    if (own(charge)) after.Add(charge.charge, charge.steps);
  return after.Worst();
}

// The candidates for the worst unit's spending.
std::vector<Spending> Ledger::Account::CandidatesAfter(
    std::span<const CommitCharge> charges) const {
  std::vector<Spending> candidates;
  // Offsets do not show which users were in a step.
  if (CountsAgainstAll(charges)) return {UserAfter(charges)};
  std::vector<Use> uses;
  for (const CommitCharge& charge : charges)
    if (charge.steps > 0) uses.push_back(UseOf(charge));
  candidates = coverage.WorstAfter(uses);
  InsertMaximal(worst, &candidates);
  // A step on no records still releases noise, and is charged as if it had one.
  for (Use& use : uses) InsertMaximal(std::move(use.spending), &candidates);
  return candidates;
}

std::pair<Spending, double> Ledger::Account::WorstAfter(
    std::span<const CommitCharge> charges) const {
  std::pair<Spending, double> after{worst, epsilon};
  double most = -1;
  for (Spending& candidate : CandidatesAfter(charges)) {
    const double of_it = Worse(
        0, candidate == worst ? epsilon : meter.Bounds(candidate, Delta(promise.delta)).upper);
    if (of_it <= most) continue;
    most = of_it;
    after.first = std::move(candidate);
  }
  // Two certified bounds of growing compositions may cross by their slack; the reported epsilon
  // never falls.
  after.second = Worse(epsilon, most);
  return after;
}

const LedgerEntry* Ledger::LastEntryOf(std::string_view learner) const {
  const auto found = accounts_.find(learner);
  if (found == accounts_.end() || found->second.last_entry == Account::kNoEntry) return nullptr;
  return &entries_[found->second.last_entry];
}

const Ledger::Account& Ledger::Find(std::string_view learner) const {
  const auto found = accounts_.find(learner);
  TACIT_CHECK(found != accounts_.end(), "a learner that was not declared");
  return found->second;
}

Status Ledger::Declare(const Promise& promise) {
  TACIT_RETURN_IF_ERROR(CheckPromise(promise));
  if (names_.IsGivenUp(promise.learner))
    return Fail(
        ErrorCode::kRefused,
        fmt::format("learner '{}': it is called '{}' now, and its account goes on under that "
                    "name; a new learner needs another id",
                    promise.learner, names_.Now(promise.learner)));
  const auto [place, is_new] = accounts_.try_emplace(promise.learner);
  Account& account = place->second;
  if (!is_new) {
    std::string changed = WhatChanged(account.promise, promise);
    const Digest &was = account.promise.model_fingerprint, &is = promise.model_fingerprint;
    if (changed.empty() && was != is)
      changed = fmt::format("model fingerprint was {} and is {}", Short(was), Short(is));
    if (!changed.empty()) return Changed(promise.learner, changed);
  }
  account.promise = promise;
  account.users.Bound(promise.bounds);
  return {};
}

Status Ledger::CheckHeir(const Heir& heir) const {
  TACIT_RETURN_IF_ERROR(CheckPromise(heir.promise));
  const std::string& name = heir.promise.learner;
  if (!heir.before.empty() && (accounts_.contains(name) || names_.IsGivenUp(name)))
    return Fail(
        ErrorCode::kRefused,
        fmt::format("learner '{}' cannot be called '{}': a learner has or had that name, and "
                    "what both were charged would be one account",
                    heir.before, name));
  const Promise& was = Find(heir.before.empty() ? name : heir.before).promise;
  const std::string changed = WhatChanged(was, heir.promise);
  return changed.empty() ? Status() : Changed(name, changed);
}

Result<std::vector<uint64_t>> Ledger::TakeOver(CommitSeq commit, int64_t time_ms,
                                               std::span<const Heir> heirs,
                                               std::string_view code_version) {
  for (const Heir& heir : heirs) TACIT_RETURN_IF_ERROR(CheckHeir(heir));
  last_time_ms_ = std::max(last_time_ms_, time_ms);
  std::vector<uint64_t> added;
  for (const Heir& heir : heirs) {
    const Promise& promise = heir.promise;
    if (!heir.before.empty()) {
      auto node = accounts_.extract(heir.before);
      node.key() = promise.learner;
      accounts_.insert(std::move(node));
    }
    Account& account = accounts_.find(promise.learner)->second;
    account.promise = promise;
    account.users.Bound(promise.bounds);
    if (account.last_entry == Account::kNoEntry) continue;
    const LedgerEntry& last = entries_[account.last_entry];
    CommitCharge nothing;
    nothing.learner = promise.learner;
    nothing.charge = last.charge;
    LedgerEntry growth = EntryOf(account, nothing);
    growth.is_growth = true;
    growth.before = heir.before;
    growth.index = entries_.size();
    growth.first_commit = growth.last_commit = commit.value;
    growth.first_time_ms = growth.last_time_ms = last_time_ms_;
    growth.worst = account.worst;
    growth.epsilon = account.epsilon;
    growth.code_version = code_version;
    account.last_entry = growth.index;
    account.growing = false;
    added.push_back(growth.index);
    entries_.push_back(std::move(growth));
    if (!heir.before.empty()) names_.Rename(heir.before, promise.learner);
  }
  if (!added.empty()) LinkFrom(added.front());
  return added;
}

Status Ledger::DeclareTotal(const TotalBudget& budget) {
  if (!(budget.epsilon > 0) || !(budget.delta > 0 && budget.delta < 1))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the total budget needs an epsilon above 0 and a delta in (0, 1) (got "
                            "{} and {})",
                            budget.epsilon, budget.delta));
  total_budget_ = budget;
  return {};
}

double Ledger::EpsilonAfter(std::span<const CommitCharge> charges) const {
  TACIT_CHECK(!charges.empty());
  for (const CommitCharge& charge : charges)
    TACIT_CHECK(charge.learner == charges[0].learner, "the charges of one learner at a time");
  return Find(charges[0].learner).WorstAfter(charges).second;
}

bool Ledger::MayExtend(const Account& account, const LedgerEntry& next) const {
  const uint64_t last = account.last_entry;
  if (last == Account::kNoEntry || !SameRun(entries_[last], next, account.growing)) return false;
  if (entries_.size() - last > accounts_.size()) return false;
  for (uint64_t i = last + 1; i < entries_.size(); ++i)
    if (Find(names_.Now(entries_[i].learner)).last_entry != i) return false;
  return true;
}

LedgerEntry Ledger::EntryOf(const Account& account, const CommitCharge& charge) const {
  LedgerEntry entry;
  entry.learner = charge.learner;
  entry.charge = charge.charge;
  entry.unit = account.promise.unit;
  entry.adjacency = account.promise.adjacency;
  entry.participation = account.promise.participation;
  entry.bounds = account.promise.bounds;
  entry.delta = account.promise.delta;
  entry.model_fingerprint = account.promise.model_fingerprint;
  return entry;
}

uint64_t Ledger::Book(CommitSeq commit, const CommitCharge& charge, const Digest& salt,
                      std::string_view code_version) {
  Account& account = accounts_.find(charge.learner)->second;
  auto [worst, epsilon] = account.WorstAfter({&charge, 1});
  const uint64_t gained = worst.SampledSteps() - account.worst.SampledSteps();
  const LedgerEntry* last = LastEntryOf(charge.learner);
  TACIT_CHECK(charge.steps > 0 || (last != nullptr && last->charge == charge.charge),
              "steps that nothing paid for");
  LedgerEntry next = EntryOf(account, charge);
  next.worst = worst;
  next.code_version = code_version;
  if (!MayExtend(account, next)) {
    next.index = entries_.size();
    next.first_commit = commit.value;
    next.first_time_ms = last_time_ms_;
    account.last_entry = next.index;
    entries_.push_back(std::move(next));
  }
  LedgerEntry& entry = entries_[account.last_entry];
  if (charge.steps > 0)
    account.growing = (entry.steps == 0 || account.growing) && gained == charge.steps;
  entry.steps += charge.steps;
  entry.last_commit = commit.value;
  entry.last_time_ms = last_time_ms_;
  entry.worst = worst;
  entry.epsilon = epsilon;
  entry.ranges_digest = ExtendRangesDigest(entry.ranges_digest, salt, charge);
  account.Uncover(charge.charge);
  account.of_all |= IsOfAll(charge.charge);
  account.steps += charge.steps;
  account.worst = std::move(worst);
  account.epsilon = epsilon;
  if (account.CountsAgainstAll({})) {
    account.users.Add(charge.charge, charge.steps);
  } else {
    account.coverage.Add(UseOf(charge));
    events_.Add(UseOf(charge));
  }
  return entry.index;
}

void Ledger::LinkFrom(uint64_t first) {
  for (uint64_t i = first; i < entries_.size(); ++i) {
    entries_[i].previous_head = i == 0 ? Digest{} : entries_[i - 1].head;
    entries_[i].head = entries_[i].ComputeHead();
  }
  if (!entries_.empty()) head_ = entries_.back().head;
}

std::vector<uint64_t> Ledger::Append(CommitSeq commit, int64_t time_ms,
                                     std::span<const CommitCharge> charges, const Digest& salt,
                                     std::string_view code_version) {
  for (const CommitCharge& charge : charges) Find(charge.learner);
  last_time_ms_ = std::max(last_time_ms_, time_ms);
  uint64_t first = entries_.size();
  for (const CommitCharge& charge : charges)
    if (charge.has_steps()) first = std::min(first, Book(commit, charge, salt, code_version));
  LinkFrom(first);
  std::vector<uint64_t> changed;
  for (uint64_t i = first; i < entries_.size(); ++i) changed.push_back(i);
  return changed;
}

std::vector<LedgerTotal> Ledger::Learners() const {
  std::vector<LedgerTotal> totals;
  for (const auto& [name, account] : accounts_) {
    const double delta = account.promise.delta;
    totals.push_back({name, account.promise.unit, account.epsilon, delta, account.steps});
    totals.back().not_covered = account.not_covered;
    double advantage = 0;
    for (const Spending& candidate : account.CandidatesAfter({}))
      advantage = std::min(1.0, Worse(advantage, account.meter.Advantage(candidate, Delta(delta))));
    totals.back().advantage = advantage;
  }
  return totals;
}

Delta Ledger::TotalDelta() const {
  if (total_budget_) return Delta(total_budget_->delta);
  double largest = 0;
  for (const auto& [name, account] : accounts_) largest = std::max(largest, account.promise.delta);
  return Delta(largest);
}

LedgerTotal Ledger::Total() const {
  LedgerTotal total;
  if (accounts_.empty()) return total;
  total.unit = Unit::kUser;
  for (const auto& [name, account] : accounts_) {
    total.steps += account.steps;
    if (!account.not_covered.empty()) total.not_covered = account.not_covered;
    if (account.promise.unit != Unit::kUser) total.unit = Unit::kEvent;
  }
  total.delta = TotalDelta().value;
  total.epsilon = TotalAfter({});
  double advantage = 0;
  const bool alone = accounts_.size() == 1;
  EpsilonMeter& meter = alone ? accounts_.begin()->second.meter : total_meter_;
  for (const Spending& candidate : AllCandidatesAfter({}))
    advantage = std::min(1.0, Worse(advantage, meter.Advantage(candidate, Delta(total.delta))));
  total.advantage = advantage;
  return total;
}

double Ledger::TotalAfter(std::span<const CommitCharge> charges, std::optional<Delta> delta) const {
  if (accounts_.empty()) return 0;
  const Delta at = delta.value_or(TotalDelta());
  const bool alone = accounts_.size() == 1 && accounts_.begin()->second.promise.delta == at.value;
  if (alone) return charges.empty() ? accounts_.begin()->second.epsilon : EpsilonAfter(charges);
  double epsilon = 0;
  for (const Spending& candidate : AllCandidatesAfter(charges))
    epsilon = Worse(epsilon, total_meter_.Bounds(candidate, at).upper);
  return epsilon;
}

std::vector<Spending> Ledger::AllCandidatesAfter(std::span<const CommitCharge> charges) const {
  Spending users;               // a user's guarantee also holds for each of the user's events
  std::vector<Spending> least;  // lower limits: steps without records cost too
  for (const auto& [name, account] : accounts_)
    if (account.CountsAgainstAll(charges))
      users.Add(account.UserAfter(charges));
    else
      InsertMaximal(account.worst, &least);
  std::vector<Use> uses;
  for (const CommitCharge& charge : charges) {
    if (charge.steps == 0 || Find(charge.learner).CountsAgainstAll(charges)) continue;
    uses.push_back(UseOf(charge));
    InsertMaximal(uses.back().spending, &least);
  }
  std::vector<Spending> worst = events_.WorstAfter(uses);
  for (Spending& spending : least) InsertMaximal(std::move(spending), &worst);
  if (worst.empty()) worst.push_back({});
  for (Spending& spending : worst) spending.Add(users);
  return worst;
}

void Ledger::Derive() {
  events_ = {};
  names_ = LearnerNames(entries_);
  for (const auto& [name, account] : accounts_) events_.AddAll(account.coverage);
  std::map<std::string_view, uint64_t> sampled_steps;  // by learner, of the worst unit
  for (const LedgerEntry& entry : entries_) {
    last_time_ms_ = std::max(last_time_ms_, entry.last_time_ms);
    const std::string_view name = names_.Now(entry.learner);
    uint64_t& before = sampled_steps[name];
    const uint64_t after = entry.worst.SampledSteps();
    Account& account = accounts_.find(name)->second;
    if (entry.steps > 0) account.growing = after - before == entry.steps;
    account.Uncover(entry.charge);
    account.of_all |= IsOfAll(entry.charge);
    account.users.Bound(entry.bounds);
    if (account.CountsAgainstAll({})) account.users.Add(entry.charge, entry.steps);
    before = after;
  }
}

double LedgerTotal::AdvantageAtMost() const {
  if (std::isinf(epsilon)) return 1;
  return advantage.value_or(steps > 0 || epsilon > 0 ? AdvantageAt(epsilon, delta) : 0);
}

void AddAdvantages(std::span<const LedgerEntry> entries, std::vector<LedgerTotal>* learners,
                   LedgerTotal* total) {
  const LearnerNames names(entries);
  bool all_gaussian = true, all_known = true;
  Spending together;
  double hidden = 1;  // by all learners: no advantage of the whole is above 1 less their product
  for (LedgerTotal& learner : *learners) {
    const LedgerEntry* last = nullptr;
    bool gaussian = true, one_price = true, of_all = true;
    for (const LedgerEntry& entry : entries) {
      if (names.Now(entry.learner) != learner.learner) continue;
      if (last != nullptr && !entry.is_growth) one_price &= entry.charge == last->charge;
      gaussian &= entry.worst.gaussian();
      of_all &= entry.unit == Unit::kUser || IsOfAll(entry.charge);
      last = &entry;
    }
    // Units' spendings are all on one line then, and the worst is so at every delta. What counts
    // against all units has one spending.
    const bool known = gaussian || one_price || of_all;
    if (last == nullptr)
      learner.advantage = 0;
    else if (known)
      learner.advantage = EpsilonMeter().Advantage(last->worst, Delta(learner.delta));
    all_gaussian &= gaussian;
    all_known &= known;
    if (last != nullptr) together.Add(last->worst);
    hidden *= 1 - learner.AdvantageAtMost();
  }
  double most = std::min(AdvantageAt(total->epsilon, total->delta), 1 - hidden);
  if (all_gaussian && std::isfinite(total->epsilon) && total->epsilon > 0 && total->delta > 0) {
    const double mu = GaussianMu(Epsilon(total->epsilon), Delta(total->delta)) * (1 + 1e-9);
    most = std::min(most, GaussianDelta(mu, Epsilon(0)).value);
  } else if (all_known && !together.empty()) {
    most = std::min(most, EpsilonMeter().Advantage(together, Delta(total->delta)));
  }
  total->advantage = std::isfinite(total->epsilon) ? most : 1;
}

}  // namespace tacit::privacy
