// Encodes a ledger's state, kept by the store beside the entries, and restores a ledger from both.
// The notation is base/bytes.h's.
//     state   := letter:u8 format:u8 entries:u64 head:digest total_epsilon:f64 total_delta:f64
//                learners:u32 learner*learners checksum:digest
//     letter  := "S"    format := 1
//     learner := name:string unit:u8 adjacency:u8 participation:u8 budget_epsilon:f64 delta:f64
//                model_fingerprint:digest bounds worst:spending epsilon:f64 steps:u64
//                last_entry:u64 coverage:string
//     bounds  := allowance:u64 per_period:u64 period_steps:u64 dedupe_window:u64
// A total budget of 0 and 0 means none. Learners are in the order of their names. `worst` is the
// spending of the worst unit, `epsilon` is for it; `last_entry` is all ones before the first one.
// The checksum is SHA-256 of "tacit.ledger.state.1" and all bytes before it.
// coverage.cc and spending.cc have the grammars of these two.
#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "privacy/chain.h"
#include "privacy/ledger.h"

namespace tacit::privacy {
namespace {

constexpr char kStateLetter = 'S';

Digest Checksum(std::string_view body) {
  return Sha256().Update("tacit.ledger.state.1").Update(body).Finish();
}

void PutPromise(const Promise& promise, ByteWriter* out) {
  out->PutString(promise.learner)
      .Put(static_cast<uint8_t>(promise.unit))
      .Put(static_cast<uint8_t>(promise.adjacency))
      .Put(static_cast<uint8_t>(promise.participation))
      .Put(promise.epsilon)
      .Put(promise.delta)
      .PutArray(std::span<const uint8_t>(promise.model_fingerprint));
  out->Put(promise.bounds.allowance)
      .Put(promise.bounds.per_period)
      .Put(promise.bounds.period_steps)
      .Put(promise.bounds.dedupe_window);
}

Promise GetPromise(ByteReader* in) {
  Promise promise;
  promise.learner = in->GetString();
  promise.unit = static_cast<Unit>(in->Get<uint8_t>());
  promise.adjacency = static_cast<Adjacency>(in->Get<uint8_t>());
  promise.participation = static_cast<ParticipationMode>(in->Get<uint8_t>());
  promise.epsilon = in->Get<double>();
  promise.delta = in->Get<double>();
  in->GetArray(std::span<uint8_t>(promise.model_fingerprint));
  for (uint64_t* bound : {&promise.bounds.allowance, &promise.bounds.per_period,
                          &promise.bounds.period_steps, &promise.bounds.dedupe_window})
    *bound = in->Get<uint64_t>();
  return promise;
}

auto Broken(std::string_view why) {
  return Fail(ErrorCode::kCorruption, fmt::format("the ledger's state {}", why));
}

}  // namespace

std::string Ledger::EncodeState() const {
  ByteWriter out;
  out.Put(kStateLetter).Put(kLedgerFormat).Put(static_cast<uint64_t>(entries_.size()));
  out.PutArray(std::span<const uint8_t>(head_));
  const TotalBudget total = total_budget_.value_or(TotalBudget{});
  out.Put(total.epsilon).Put(total.delta).Put(static_cast<uint32_t>(accounts_.size()));
  for (const auto& [name, account] : accounts_) {
    PutPromise(account.promise, &out);
    account.worst.EncodeTo(&out);
    out.Put(account.epsilon).Put(account.steps).Put(account.last_entry);
    out.PutString(account.coverage.Encode());
  }
  const Digest checksum = Checksum(out.bytes());
  out.PutArray(std::span<const uint8_t>(checksum));
  return std::move(out).Take();
}

Result<Ledger> Ledger::DecodeState(std::string_view state, uint64_t* entries) {
  Digest checksum;
  if (state.size() <= checksum.size() + 2) return Broken("is cut short");
  TACIT_RETURN_IF_ERROR(CheckFormat("the ledger's state", state, kStateLetter));
  const std::string_view body = state.substr(0, state.size() - checksum.size());
  ByteReader(state.substr(body.size())).GetArray(std::span<uint8_t>(checksum));
  if (Checksum(body) != checksum) return Broken("has a wrong checksum");
  ByteReader in(body.substr(2));
  Ledger ledger;
  *entries = in.Get<uint64_t>();
  in.GetArray(std::span<uint8_t>(ledger.head_));
  const auto budget = in.Get<double>();
  const TotalBudget total{budget, in.Get<double>()};
  if (total != TotalBudget{}) TACIT_RETURN_IF_ERROR(ledger.DeclareTotal(total));
  const auto accounts = in.Get<uint32_t>();
  for (uint32_t i = 0; i < accounts && in.ok(); ++i) {
    Account account;
    account.promise = GetPromise(&in);
    if (!Spending::Decode(&in, &account.worst)) return Broken("is not well-formed");
    account.epsilon = in.Get<double>();
    account.steps = in.Get<uint64_t>();
    account.last_entry = in.Get<uint64_t>();
    TACIT_ASSIGN(account.coverage, Coverage::Decode(in.GetString()));
    std::string name = account.promise.learner;
    ledger.accounts_.emplace(std::move(name), std::move(account));
  }
  if (!in.at_end()) return Broken("is not well-formed");
  return ledger;
}

// Checks the accounts against the sums of the entries.
Status Ledger::CheckState(uint64_t entries_in_state) const {
  const Digest head = entries_.empty() ? Digest{} : entries_.back().head;
  if (entries_in_state != entries_.size() || head_ != head)
    return Broken(
        fmt::format("belongs to a ledger of {} entries with another head, not to these "
                    "{}",
                    entries_in_state, entries_.size()));
  struct Sum {
    uint64_t steps = 0, last_entry = Account::kNoEntry;
  };
  const LearnerNames names(entries_);
  std::map<std::string_view, Sum> sums;
  for (const LedgerEntry& entry : entries_) {
    Sum& sum = sums[names.Now(entry.learner)];
    sum.steps += entry.steps;
    sum.last_entry = entry.index;
  }
  for (const auto& [learner, sum] : sums)
    if (!accounts_.contains(learner))
      return Broken(fmt::format("does not know learner '{}'", learner));
  for (const auto& [learner, account] : accounts_) {
    const Sum sum = sums[learner];
    const bool none = sum.last_entry == Account::kNoEntry;
    const Spending worst = none ? Spending{} : entries_[sum.last_entry].worst;
    const double epsilon = none ? 0 : entries_[sum.last_entry].epsilon;
    if (account.steps != sum.steps || account.last_entry != sum.last_entry ||
        account.worst != worst || account.epsilon != epsilon)
      return Broken(fmt::format("does not add up for learner '{}'", learner));
  }
  return {};
}

Result<Ledger> Ledger::Restore(std::vector<LedgerEntry> entries, std::string_view state) {
  TACIT_RETURN_IF_ERROR(CheckLinks(entries));
  uint64_t entries_in_state = 0;
  TACIT_ASSIGN(Ledger ledger, DecodeState(state, &entries_in_state));
  ledger.entries_ = std::move(entries);
  TACIT_RETURN_IF_ERROR(ledger.CheckState(entries_in_state));
  ledger.Derive();
  return ledger;
}

Result<Ledger::Promises> Ledger::ReadPromises(std::string_view state) {
  uint64_t entries_in_state = 0;
  TACIT_ASSIGN(const Ledger ledger, DecodeState(state, &entries_in_state));
  Promises promises{.learners = {}, .total = ledger.total_budget_};
  for (const auto& [name, account] : ledger.accounts_) promises.learners.push_back(account.promise);
  return promises;
}

}  // namespace tacit::privacy
