#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/files/is_there.h"
#include "base/text.h"
#include "cli/parts/command.h"
#include "config/config.h"
#include "console/exit_code.h"
#include "privacy/ledger.h"
#include "store/care/repair.h"
#include "store/care/reshard.h"
#include "store/care/verify.h"
#include "store/disk/folder.h"
#include "store/model_growth.h"
#include "wiring/assembly.h"
#include "wiring/plans/witness_place.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct StoreCommandOptions {
  std::string store, witness;
  std::string config;
  std::vector<std::string> overrides, renames;
  bool dry_run = false, accept_losses = false;
  bool json = false;
};

Result<store::VerifyOptions> OptionsOf(const StoreCommandOptions& options) {
  TACIT_ASSIGN(std::string witness, wiring::WitnessFor(options.store, options.witness));
  return store::VerifyOptions{
      .witness = std::move(witness),
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
  TACIT_ASSIGN(const store::VerifyOptions checks, OptionsOf(options));
  TACIT_ASSIGN(const store::StoreCheck check, store::VerifyStore(options.store, checks));
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
  TACIT_ASSIGN(const store::VerifyOptions checks, OptionsOf(options));
  TACIT_ASSIGN(const store::Repair repair, store::RepairStore(options.store, checks));
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

json::object GrowthJson(const store::Growth& growth) {
  json::array gained, lost;
  for (const std::string& gain : growth.gained) gained.emplace_back(gain);
  for (const std::string& loss : growth.lost) lost.emplace_back(loss);
  return {{"learner", growth.learner}, {"gained", std::move(gained)}, {"lost", std::move(lost)}};
}

void TellGrowths(const std::vector<store::Growth>& growths) {
  for (const store::Growth& growth : growths) {
    fmt::print("learner '{}' goes on as the configured model, for no epsilon\n", growth.learner);
    for (const std::string& gain : growth.gained) fmt::print("  {}\n", gain);
    for (const std::string& loss : growth.lost) fmt::print("  lost: {}\n", loss);
  }
  if (growths.empty()) fmt::print("every model is the configured one: nothing is taken over\n");
}

// Old names by new ones.
using Renames = std::map<std::string, std::string>;

Result<Renames> ReadRenames(const std::vector<std::string>& words) {
  Renames renames;
  std::set<std::string> before;
  for (const std::string& word : words) {
    const size_t sign = word.find('=');
    if (sign == 0 || sign == word.npos || sign + 1 == word.size())
      return Fail(ErrorCode::kInvalidArgument, fmt::format("--rename {}: it is OLD=NEW", word));
    const std::string old = word.substr(0, sign);
    if (!before.insert(old).second || !renames.emplace(word.substr(sign + 1), old).second)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("--rename {}: one of the names is there twice", word));
  }
  return renames;
}

// Returns the store's last commit, which took the models over where there are any.
Result<uint64_t> TakeModelsOver(const wiring::Assembly& assembly, Renames renames) {
  store::StoreOptions options = wiring::MakeStoreOptions(assembly);
  options.may_lose = true;
  options.renames = std::move(renames);
  TACIT_ASSIGN(const auto opened, store::Store::Open(std::move(options)));
  TACIT_RETURN_IF_ERROR(opened->Settle());
  return opened->Latest()->version().value;
}

Result<int> Migrate(const StoreCommandOptions& options) {
  TACIT_ASSIGN(auto config, config::Load(options.config, options.overrides));
  TACIT_ASSIGN(const wiring::Assembly assembly, wiring::Assemble(std::move(config)));
  const std::string& path = assembly.config.store.path;
  TACIT_ASSIGN(Renames renames, ReadRenames(options.renames));
  TACIT_ASSIGN(const auto growths, store::PlanGrowth(path, wiring::MakeLayouts(assembly), renames));
  const bool loses = std::ranges::any_of(
      growths, [](const store::Growth& growth) { return !growth.lost.empty(); });
  const bool refused = loses && !options.accept_losses && !options.dry_run;
  std::optional<uint64_t> commit;
  if (!options.dry_run && !refused) {
    TACIT_ASSIGN(const bool held, store::IsHeldByAnother(path));
    if (!growths.empty()) {
      TACIT_ASSIGN(commit, TakeModelsOver(assembly, std::move(renames)));
    } else if (!held) {
      // A migration that failed may be in the store, and not in its witness: opening writes that.
      TACIT_ASSIGN([[maybe_unused]] const uint64_t last, TakeModelsOver(assembly, {}));
    }
  }
  if (options.json) {
    json::array learners;
    for (const store::Growth& growth : growths) learners.push_back(GrowthJson(growth));
    json::object out{{"store", path}, {"learners", std::move(learners)}};
    out["commit"] = commit ? json::value(*commit) : json::value();
    fmt::print("{}\n", json::serialize(out));
  } else {
    TellGrowths(growths);
    if (commit) fmt::print("done, in commit {} of store {}\n", *commit, path);
  }
  if (refused)
    return Fail(
        ErrorCode::kRefused,
        "nothing was changed: what is lost cannot be had back. Add --accept-losses to go on "
        "without it");
  return int{console::kExitDone};
}

// Opens the store as tacitd does, although its witness is missing, and learns nothing.
Result<int> AcceptWitness(const StoreCommandOptions& options) {
  TACIT_ASSIGN(auto config,
               config::Load(options.config, options.overrides, config::LogFiles::kUnread));
  TACIT_ASSIGN(const wiring::Assembly assembly, wiring::Assemble(std::move(config)));
  store::StoreOptions store = wiring::MakeStoreOptions(assembly);
  if (store.witness.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: store.witness is none: no witness was lost", options.config));
  TACIT_ASSIGN(const bool is_store, IsThere(store.path + "/CURRENT"));
  if (!is_store) return Fail(ErrorCode::kNotFound, fmt::format("there is no store {}", store.path));
  TACIT_RETURN_IF_ERROR(store::CheckClosed(store.path));
  TACIT_ASSIGN(const bool there, IsThere(store.witness));
  store.accept_missing_witness = true;
  const std::string witness = store.witness;
  TACIT_ASSIGN(const auto opened, store::Store::Open(std::move(store)));
  TACIT_RETURN_IF_ERROR(opened->Settle());
  const uint64_t commit = opened->Latest()->version().value;
  if (options.json)
    fmt::print("{}\n", json::serialize(json::object{
                           {"witness", witness}, {"written", !there}, {"version", commit}}));
  else if (there)
    fmt::print("{} is there and agrees with the store: nothing was done\n", witness);
  else
    fmt::print("{} was written: the store's last commit is {}\n", witness, commit);
  return int{console::kExitDone};
}

// Shows on a terminal how many rows are written.
class RowsWritten {
 public:
  explicit RowsWritten(bool quiet) : shows_(!quiet && isatty(STDERR_FILENO) == 1) {}
  ~RowsWritten() {
    if (shows_ && said_) fmt::print(stderr, "\n");
  }
  void operator()(uint64_t rows) {
    if (!shows_ || rows % (1 << 16) != 0) return;
    said_ = true;
    fmt::print(stderr, "\r{} rows", rows);
  }

 private:
  const bool shows_;
  bool said_ = false;
};

Result<int> Reshard(const StoreCommandOptions& options) {
  TACIT_ASSIGN(const config::Config config, config::Load(options.config, options.overrides));
  const config::Store& store = config.store;
  RowsWritten told(options.json);
  TACIT_ASSIGN(const store::Resharded done, store::Reshard({.path = store.path,
                                                            .shards = store.shards,
                                                            .paths = store.paths,
                                                            .keep = [&](uint64_t rows) {
                                                              told(rows);
                                                              return true;
                                                            }}));
  if (options.json) {
    fmt::print("{}\n", json::serialize(json::object{{"store", store.path},
                                                    {"before", done.before},
                                                    {"after", done.after},
                                                    {"done", done.done},
                                                    {"rows", done.rows}}));
  } else if (done.done) {
    fmt::print("store {}: {} shards became {}, with {} rows\n", store.path, done.before, done.after,
               done.rows);
  } else {
    fmt::print("store {} is as configured already: nothing was done\n", store.path);
  }
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
  auto* command =
      cli.add_subcommand("store", "Check, repair, migrate or reshard a store that nobody has open");
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
      "It never guesses: where rows, the ledger or counts are damaged it refuses, and "
      "docs/operating/restore.md,\n\"When the store is lost\", is the way on.\nExample:\n  tacit "
      "store repair --store "
      "demo-data/store");
  repair->callback([options, chosen] { *chosen = [options] { return Repair(*options); }; });

  auto* migrate =
      command->add_subcommand("migrate", "Take models over that the configuration has changed");
  migrate->add_option("--config", options->config, "The new configuration")->required();
  migrate->add_option("--set", options->overrides, "KEY=VALUE over the configuration");
  migrate
      ->add_option("--rename", options->renames,
                   "OLD=NEW: a learner's id in the store, and in the configuration")
      ->allow_extra_args(false);
  migrate->add_flag("--dry-run", options->dry_run, "Only tell what would become of the models");
  migrate->add_flag("--accept-losses", options->accept_losses,
                    "Go on where a feature is gone or has to begin anew");
  migrate->add_flag("--json", options->json, "Print JSON");
  migrate->footer(
      "tacitd does this by itself at its start where nothing is lost and no learner has another "
      "name: new\nfeatures, larger tables, longer rows, new items, another order. It costs no "
      "epsilon, "
      "because no record is\nlooked at; the ledger gets an entry. It cannot be undone: make a "
      "checkpoint before.\nExample:\n  tacit store migrate "
      "--config config/demo.yaml --dry-run");
  migrate->callback([options, chosen] { *chosen = [options] { return Migrate(*options); }; });

  auto* accept = command->add_subcommand("accept-witness", "Write a lost witness anew");
  accept->add_option("--config", options->config, "The store's configuration")->required();
  accept->add_option("--set", options->overrides, "KEY=VALUE over the configuration");
  accept->add_flag("--json", options->json, "Print JSON");
  accept->footer(
      "Only if no newer copy of the store exists: what such a copy has charged would be forgotten. "
      "Nothing is\nlearnt. Where an older copy was put in the store's place, tacitd "
      "--accept-older-copy is the way on.\nExample:\n  tacit store accept-witness --config "
      "config/demo.yaml");
  accept->callback([options, chosen] { *chosen = [options] { return AcceptWitness(*options); }; });

  auto* reshard = command->add_subcommand(
      "reshard", "Cut the rows into as many shards, and put them where the configuration says");
  reshard->add_option("--config", options->config, "Has store.path, store.shards and store.paths")
      ->required();
  reshard->add_option("--set", options->overrides, "KEY=VALUE over the configuration");
  reshard->add_flag("--json", options->json, "Print JSON");
  reshard->footer(
      "All rows are written anew beside the old ones, which takes as much room; killed at any "
      "moment, the store\nhas the old shards or the new ones. Models, ledger and epsilon stay as "
      "they are.\nExample:\n  tacit store reshard --config config/demo.yaml --set store.shards=8");
  reshard->callback([options, chosen] { *chosen = [options] { return Reshard(*options); }; });
}

}  // namespace tacit::cli
