#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "base/text.h"
#include "cli/command.h"
#include "console/exit_code.h"
#include "privacy/ledger.h"
#include "store/repair.h"
#include "store/verify.h"
#include "wiring/witness_place.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct StoreCommandOptions {
  std::string store, witness;
  bool json = false;
};

store::VerifyOptions OptionsOf(const StoreCommandOptions& options) {
  return {
      .witness = options.witness.empty() ? wiring::WitnessBeside(options.store) : options.witness,
      .check_entries = [](const auto& entries) { return privacy::VerifyChain(entries); }};
}

std::string CheckText(const std::string& store, const store::StoreCheck& check) {
  return fmt::format(
      "{}: commit {}, {} ledger entries, {} counts of users, {} with {:.1f} MiB: every byte read, "
      "all right{}\n",
      store, check.commits, check.ledger_entries, check.users, Counted(check.files, "table"),
      static_cast<double>(check.bytes) / (1 << 20),
      check.witnessed ? "" : "; no witness was found to compare with");
}

json::object CheckJson(const store::StoreCheck& check) {
  json::array damage;
  for (const store::Damage& one : check.damage)
    damage.push_back(json::object{{"file", one.file}, {"what", one.what}});
  return {{"valid", check.damage.empty()},
          {"version", check.commits},
          {"entries", check.ledger_entries},
          {"users", check.users},
          {"files", check.files},
          {"bytes", check.bytes},
          {"witness", check.witnessed},
          {"damage", std::move(damage)}};
}

Result<int> Verify(const StoreCommandOptions& options) {
  TACIT_ASSIGN(const store::StoreCheck check,
               store::VerifyStore(options.store, OptionsOf(options)));
  if (options.json) {
    fmt::print("{}\n", json::serialize(CheckJson(check)));
  } else if (check.damage.empty()) {
    fmt::print("{}", CheckText(options.store, check));
  }
  if (check.damage.empty()) return int{console::kExitDone};
  for (const store::Damage& one : check.damage)
    fmt::print(stderr, "tacit: {}\n",
               one.what.find(one.file) != one.what.npos ? one.what
                                                        : fmt::format("{} {}", one.file, one.what));
  return int{console::kExitStoreRefused};
}

Result<int> Repair(const StoreCommandOptions& options) {
  TACIT_ASSIGN(const store::Repair repair, store::RepairStore(options.store, OptionsOf(options)));
  if (options.json) {
    json::object out = CheckJson(repair.after);
    json::array done;
    for (const std::string& line : repair.done) done.emplace_back(line);
    out["done"] = std::move(done);
    fmt::print("{}\n", json::serialize(out));
    return int{console::kExitDone};
  }
  for (const std::string& line : repair.done) fmt::print("{}\n", line);
  if (repair.done.empty()) fmt::print("nothing had to be repaired\n");
  fmt::print("{}", CheckText(options.store, repair.after));
  return int{console::kExitDone};
}

void AddPlace(CLI::App* command, const std::shared_ptr<StoreCommandOptions>& options) {
  command->add_option("--store", options->store, "Store directory")->required();
  command->add_option("--witness", options->witness,
                      "Witness file (default: the store's name + .witness, where there is one)");
  command->add_flag("--json", options->json, "Print JSON");
}

}  // namespace

void AddStore(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("store", "Whether a store that nobody has open is whole");
  command->require_subcommand(1);
  auto options = std::make_shared<StoreCommandOptions>();

  auto* verify = command->add_subcommand("verify", "Read every byte, and name what is damaged");
  AddPlace(verify, options);
  verify->footer(
      "Logs, tables, values, the ledger's chain, counts of users, the witness. Ends with 3 where "
      "something is damaged.\nExample:\n  tacit store verify --store demo-data/store");
  verify->callback([options, chosen] { *chosen = [options] { return Verify(*options); }; });

  auto* repair = command->add_subcommand("repair", "Make anew what follows from the rest");
  AddPlace(repair, options);
  repair->footer(
      "It never guesses: where rows, the ledger or counts are damaged it refuses, and README, "
      "\"When the\nstore is lost\", is the way on.\nExample:\n  tacit store repair --store "
      "demo-data/store");
  repair->callback([options, chosen] { *chosen = [options] { return Repair(*options); }; });
}

}  // namespace tacit::cli
