#include "privacy/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"

namespace tacit::privacy {
namespace {

// SHA256(before | SHA256(salt | ranges)). The ranges are offset counts, which are the operator's:
// without the salt they could be found by trying.
Digest ExtendRangesDigest(const Digest& before, const Digest& salt, const CommitCharge& charge) {
  ByteWriter ranges;
  ranges.PutString(charge.topic).Put(charge.steps_per_offset);
  ranges.Put(static_cast<uint32_t>(charge.ranges.size()));
  for (const OffsetRange& range : charge.ranges)
    ranges.Put(range.partition).Put(range.begin).Put(range.end);
  const Digest salted = Sha256().Update(salt).Update(ranges.bytes()).Finish();
  return Sha256().Update(before).Update(salted).Finish();
}

// Everything that must be equal for two commits to be one run.
auto RunKey(const LedgerEntry& e) {
  return std::tie(e.learner, e.charge, e.unit, e.adjacency, e.participation, e.delta,
                  e.model_fingerprint, e.code_version);
}

// Steps on fresh records cost the worst unit nothing more: they are told apart from those on
// records used before. Sampled steps come back to the records of their period and always cost more.
bool SameRun(const LedgerEntry& a, const LedgerEntry& b) {
  return RunKey(a) == RunKey(b) && (a.worst == b.worst || !b.worst.sampled.empty());
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
  return {};
}

// The first thing in which two promises of one learner differ, or "".
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
  if (was.model_fingerprint != is.model_fingerprint)
    return changed("model fingerprint", Short(was.model_fingerprint), Short(is.model_fingerprint));
  return "";
}

}  // namespace

std::pair<Spending, double> Ledger::Account::WorstAfter(const CommitCharge& charge) const {
  std::vector<Spending> candidates;
  if (promise.unit == Unit::kUser) {
    // Which users were in a step is not in the offsets: each may have been in every one.
    candidates = {worst};
    candidates[0].Add(Spending::Of(charge.charge, charge.steps));
  } else {
    // A step on no records releases noise all the same, and is charged as if there had been one.
    const Spending spent = Spending::Of(charge.charge, charge.steps_per_offset);
    candidates = coverage.WorstAfter(charge.topic, charge.ranges, spent);
    InsertMaximal(worst, &candidates);
    InsertMaximal(spent, &candidates);
  }
  std::pair<Spending, double> after{worst, epsilon};
  double most = -1;
  for (Spending& candidate : candidates) {
    const double of_it =
        candidate == worst ? epsilon : meter.Bounds(candidate, Delta(promise.delta)).upper;
    if (of_it <= most) continue;
    most = of_it;
    after.first = std::move(candidate);
  }
  // Two certified bounds of growing compositions may cross by their slack; what is told never
  // falls.
  after.second = std::max(epsilon, most);
  return after;
}

Ledger::Account& Ledger::Find(std::string_view learner) {
  const auto found = accounts_.find(learner);
  TACIT_CHECK(found != accounts_.end(), "a learner that was not declared");
  return found->second;
}

Status Ledger::Declare(const Promise& promise) {
  TACIT_RETURN_IF_ERROR(CheckPromise(promise));
  const auto [place, is_new] = accounts_.try_emplace(promise.learner);
  Account& account = place->second;
  if (!is_new) {
    const std::string changed = WhatChanged(account.promise, promise);
    if (!changed.empty())
      return Fail(ErrorCode::kRefused,
                  fmt::format("learner '{}': {}; what was trained and charged under one promise "
                              "cannot go on under another",
                              promise.learner, changed));
  }
  account.promise = promise;
  return {};
}

double Ledger::EpsilonAfter(const CommitCharge& charge) const {
  const auto found = accounts_.find(charge.learner);
  TACIT_CHECK(found != accounts_.end(), "a learner that was not declared");
  return found->second.WorstAfter(charge).second;
}

bool Ledger::MayExtend(const Account& account, const LedgerEntry& next) const {
  const uint64_t last = account.last_entry;
  if (last == Account::kNoEntry || !SameRun(entries_[last], next)) return false;
  if (entries_.size() - last > accounts_.size()) return false;
  for (uint64_t i = last + 1; i < entries_.size(); ++i)
    if (accounts_.find(entries_[i].learner)->second.last_entry != i) return false;
  return true;
}

uint64_t Ledger::Book(CommitSeq commit, const CommitCharge& charge, const Digest& salt,
                      std::string_view code_version) {
  Account& account = Find(charge.learner);
  auto [worst, epsilon] = account.WorstAfter(charge);
  LedgerEntry next;
  next.learner = charge.learner;
  next.charge = charge.charge;
  next.unit = account.promise.unit;
  next.adjacency = account.promise.adjacency;
  next.participation = account.promise.participation;
  next.delta = account.promise.delta;
  next.worst = worst;
  next.model_fingerprint = account.promise.model_fingerprint;
  next.code_version = code_version;
  if (!MayExtend(account, next)) {
    next.index = entries_.size();
    next.first_commit = commit.value;
    account.last_entry = next.index;
    entries_.push_back(std::move(next));
  }
  LedgerEntry& entry = entries_[account.last_entry];
  entry.steps += charge.steps;
  entry.last_commit = commit.value;
  entry.worst = worst;
  entry.epsilon = epsilon;
  entry.ranges_digest = ExtendRangesDigest(entry.ranges_digest, salt, charge);
  account.steps += charge.steps;
  account.worst = std::move(worst);
  account.epsilon = epsilon;
  if (account.promise.unit == Unit::kEvent)
    account.coverage.Add(charge.topic, charge.ranges,
                         Spending::Of(charge.charge, charge.steps_per_offset));
  return entry.index;
}

void Ledger::LinkFrom(uint64_t first) {
  for (uint64_t i = first; i < entries_.size(); ++i) {
    entries_[i].previous_head = i == 0 ? Digest{} : entries_[i - 1].head;
    entries_[i].head = entries_[i].ComputeHead();
  }
  if (!entries_.empty()) head_ = entries_.back().head;
}

std::vector<uint64_t> Ledger::Append(CommitSeq commit, std::span<const CommitCharge> charges,
                                     const Digest& salt, std::string_view code_version) {
  uint64_t first = entries_.size();
  for (const CommitCharge& charge : charges)
    if (charge.steps > 0) first = std::min(first, Book(commit, charge, salt, code_version));
  LinkFrom(first);
  std::vector<uint64_t> changed;
  for (uint64_t i = first; i < entries_.size(); ++i) changed.push_back(i);
  return changed;
}

std::vector<LedgerTotal> Ledger::Learners() const {
  std::vector<LedgerTotal> totals;
  for (const auto& [name, account] : accounts_)
    totals.push_back(
        {name, account.promise.unit, account.epsilon, account.promise.delta, account.steps});
  return totals;
}

LedgerTotal Ledger::Total() const {
  LedgerTotal total;
  if (accounts_.empty()) return total;
  if (accounts_.size() == 1) {
    total = Learners()[0];
    total.learner.clear();
    return total;
  }
  total.unit = Unit::kUser;
  Spending users;
  std::vector<Spending> least;  // of steps without records
  Coverage events;
  for (const auto& [name, account] : accounts_) {
    total.steps += account.steps;
    total.delta = std::max(total.delta, account.promise.delta);
    if (account.promise.unit == Unit::kUser) {
      users.Add(account.worst);  // a user-level guarantee holds for each event of hers
    } else {
      total.unit = Unit::kEvent;
      InsertMaximal(account.worst, &least);
      events.AddAll(account.coverage);
    }
  }
  std::vector<Spending> worst = events.Worst();
  for (Spending& spending : least) InsertMaximal(std::move(spending), &worst);
  if (worst.empty()) worst.push_back({});
  for (Spending& spending : worst) spending.Add(users);
  for (const Spending& spending : worst)
    total.epsilon =
        std::max(total.epsilon, total_meter_.Bounds(spending, Delta(total.delta)).upper);
  return total;
}

}  // namespace tacit::privacy
