#include "privacy/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"
#include "privacy/gaussian.h"

namespace tacit::privacy {
namespace {

// SHA256(before | SHA256(salt | ranges)). The ranges are offset counts, which are the operator's:
// without the salt they could be found by trying.
Digest ExtendRangesDigest(const Digest& before, const Digest& salt, const CommitCharge& charge) {
  ByteWriter ranges;
  ranges.PutString(charge.topic).Put(static_cast<uint32_t>(charge.ranges.size()));
  for (const OffsetRange& range : charge.ranges)
    ranges.Put(range.partition).Put(range.begin).Put(range.end);
  const Digest salted = Sha256().Update(salt).Update(ranges.bytes()).Finish();
  return Sha256().Update(before).Update(salted).Finish();
}

// Everything that must be equal for two commits to be one run.
auto RunKey(const LedgerEntry& e) {
  return std::tie(e.learner, e.charge, e.unit, e.adjacency, e.participation, e.sampling_rate,
                  e.delta, e.worst_mu_squared, e.model_fingerprint, e.code_version);
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

double Ledger::Account::WorstAfter(const Charge& charge, std::string_view topic,
                                   std::span<const OffsetRange> ranges, uint64_t more_steps) const {
  const double mu_squared = charge.MuSquared();
  // Which users were in a step is not in the offsets: each may have been in every one.
  if (promise.unit == Unit::kUser)
    return worst_mu_squared + static_cast<double>(more_steps) * mu_squared;
  // A step on no records releases noise all the same, and is charged as if there had been one.
  return std::max({worst_mu_squared, mu_squared, coverage.WorstAfter(topic, ranges, mu_squared)});
}

double Ledger::Account::EpsilonAt(double mu_squared) const {
  return GaussianEpsilon(std::sqrt(mu_squared), Delta(promise.delta)).value;
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

double Ledger::EpsilonAfter(std::string_view learner, const Charge& charge, std::string_view topic,
                            std::span<const OffsetRange> ranges) const {
  const auto found = accounts_.find(learner);
  TACIT_CHECK(found != accounts_.end(), "a learner that was not declared");
  const Account& account = found->second;
  return account.EpsilonAt(account.WorstAfter(charge, topic, ranges, 1));
}

bool Ledger::MayExtend(const Account& account, const LedgerEntry& next) const {
  const uint64_t last = account.last_entry;
  if (last == Account::kNoEntry || RunKey(entries_[last]) != RunKey(next)) return false;
  if (entries_.size() - last > accounts_.size()) return false;
  for (uint64_t i = last + 1; i < entries_.size(); ++i)
    if (accounts_.find(entries_[i].learner)->second.last_entry != i) return false;
  return true;
}

uint64_t Ledger::Book(CommitSeq commit, const CommitCharge& charge, const Digest& salt,
                      std::string_view code_version) {
  Account& account = Find(charge.learner);
  const double worst = account.WorstAfter(charge.charge, charge.topic, charge.ranges, charge.steps);
  LedgerEntry next;
  next.learner = charge.learner;
  next.charge = charge.charge;
  next.unit = account.promise.unit;
  next.adjacency = account.promise.adjacency;
  next.participation = account.promise.participation;
  next.delta = account.promise.delta;
  next.worst_mu_squared = worst;
  next.model_fingerprint = account.promise.model_fingerprint;
  next.code_version = code_version;
  if (!MayExtend(account, next)) {
    next.index = entries_.size();
    next.first_commit = commit.value;
    const bool same_cost = account.steps > 0 && account.worst_mu_squared == worst;
    next.epsilon = same_cost ? entries_[account.last_entry].epsilon : account.EpsilonAt(worst);
    account.last_entry = next.index;
    entries_.push_back(std::move(next));
  }
  LedgerEntry& entry = entries_[account.last_entry];
  entry.steps += charge.steps;
  entry.last_commit = commit.value;
  entry.ranges_digest = ExtendRangesDigest(entry.ranges_digest, salt, charge);
  account.steps += charge.steps;
  account.worst_mu_squared = worst;
  if (account.promise.unit == Unit::kEvent)
    account.coverage.Add(charge.topic, charge.ranges, charge.charge.MuSquared());
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
    totals.push_back({name, account.promise.unit, account.EpsilonAt(account.worst_mu_squared),
                      account.promise.delta, account.steps});
  return totals;
}

LedgerTotal Ledger::Total() const {
  LedgerTotal total;
  if (accounts_.empty()) return total;
  total.unit = Unit::kUser;
  double users = 0, least = 0;
  Coverage events;
  for (const auto& [name, account] : accounts_) {
    total.steps += account.steps;
    total.delta = std::max(total.delta, account.promise.delta);
    if (account.promise.unit == Unit::kUser) {
      users += account.worst_mu_squared;  // a user-level guarantee holds for each event of hers
    } else {
      total.unit = Unit::kEvent;
      least = std::max(least, account.worst_mu_squared);
      if (accounts_.size() > 1) events.AddAll(account.coverage);
    }
  }
  const double worst = users + std::max(least, events.WorstMuSquared());
  total.epsilon = GaussianEpsilon(std::sqrt(worst), Delta(total.delta)).value;
  return total;
}

}  // namespace tacit::privacy
