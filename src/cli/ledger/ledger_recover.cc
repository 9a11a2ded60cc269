#include <fmt/format.h>

#include <boost/json.hpp>
#include <filesystem>
#include <map>
#include <memory>

#include "base/files/is_there.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/ledger/ledger.h"
#include "console/exit_code.h"
#include "privacy/ledger.h"
#include "store/care/recover.h"
#include "store/witness/witness.h"
#include "wiring/plans/witness_place.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct RecoverOptions {
  store::RecoverRequest request;
  std::string witness;
  bool json = false;
};

struct Account {
  uint64_t steps = 0;
  double epsilon = 0, delta = 0;
};

// The last entry of a learner has its epsilon.
std::map<std::string, Account> AccountsOf(const std::vector<privacy::LedgerEntry>& entries) {
  const privacy::LearnerNames names(entries);
  std::map<std::string, Account> accounts;
  for (const privacy::LedgerEntry& entry : entries) {
    Account& account = accounts[std::string(names.Now(entry.learner))];
    account.steps += entry.steps;
    account.epsilon = entry.epsilon;
    account.delta = entry.delta;
  }
  return accounts;
}

uint64_t LastCommit(const std::vector<privacy::LedgerEntry>& entries) {
  uint64_t last = 0;
  for (const privacy::LedgerEntry& entry : entries) last = std::max(last, entry.last_commit);
  return last;
}

void PrintJson(const store::RecoveredLedger& recovered) {
  json::array learners, chain;
  for (const auto& [learner, account] : AccountsOf(recovered.entries))
    learners.push_back(json::object{{"learner", learner},
                                    {"steps", account.steps},
                                    {"epsilon", account.epsilon},
                                    {"delta", account.delta}});
  for (const privacy::LedgerEntry& entry : recovered.entries) {
    const std::string bytes = entry.Encode();
    chain.emplace_back(ToHex({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  }
  fmt::print("{}\n", json::serialize(
                         json::object{{"complete", recovered.complete},
                                      {"entries", recovered.entries.size()},
                                      {"through", LastCommit(recovered.entries)},
                                      {"head", "sha256:" + ToHex(recovered.entries.back().head)},
                                      {"learners", std::move(learners)},
                                      {"chain", std::move(chain)}}));
}

void PrintText(const store::RecoveredLedger& recovered, const std::string& end) {
  for (const std::string& line : recovered.found) fmt::print("{}\n", line);
  for (const std::string& line : recovered.unreadable) fmt::print("unreadable: {}\n", line);
  fmt::print("a chain of {} ledger entries without a gap, up to commit {}{}\n",
             recovered.entries.size(), LastCommit(recovered.entries), end);
  for (const auto& [learner, account] : AccountsOf(recovered.entries))
    fmt::print("  {}: {}, epsilon {:.4f} at delta {:g}\n", learner, Counted(account.steps, "step"),
               account.epsilon, account.delta);
}

Result<int> Recover(RecoverOptions options) {
  TACIT_ASSIGN(const bool there, IsThere(options.request.store));
  std::error_code error;
  if (!there || !std::filesystem::is_directory(options.request.store, error) ||
      std::filesystem::is_empty(options.request.store, error))
    return BadUsage(fmt::format("there is no store at {}", options.request.store));
  TACIT_ASSIGN(const std::string witness,
               wiring::WitnessFor(options.request.store, options.witness));
  std::string end = "; there is no witness to tell whether that is all";
  if (!witness.empty()) {
    TACIT_ASSIGN(const auto sight, store::WitnessFile::Read(witness));
    if (!sight) return BadUsage(fmt::format("there is no witness {}", witness));
    options.request.end = sight->record.head;
    end = fmt::format(", of {} that the witness has seen", sight->record.seq.value);
  }
  TACIT_ASSIGN(const store::RecoveredLedger recovered, store::RecoverLedger(options.request));
  TACIT_RETURN_IF_ERROR(privacy::VerifyChain(recovered.entries));
  if (options.json) {
    PrintJson(recovered);
  } else {
    PrintText(recovered, end);
  }
  return int{recovered.complete || witness.empty() ? console::kExitDone : console::kExitFailed};
}

}  // namespace

void AddLedgerRecover(CLI::App* ledger, Action* chosen) {
  auto options = std::make_shared<RecoverOptions>();
  auto* recover = ledger->add_subcommand("recover", "Put it together from a damaged store");
  recover->add_option("--store", options->request.store, "The damaged store")->required();
  recover->add_option("--checkpoint", options->request.checkpoints,
                      "Checkpoints of it that may have what is missing (repeatable)");
  recover->add_option("--witness", options->witness,
                      "Witness file (default: the store's name + .witness, where there is one)");
  recover->add_flag("--json", options->json, "Print JSON, with the entries in hexadecimal");
  recover->footer(
      "Ends with 1 where the chain ends before the witness does. tacit checkpoint restore "
      "--remains takes\nthe same into account.\nExample:\n  tacit ledger recover --store "
      "store.lost --checkpoint backup/full-000000000120-1f6e0c2b");
  recover->callback([options, chosen] { *chosen = [options] { return Recover(*options); }; });
}

}  // namespace tacit::cli
