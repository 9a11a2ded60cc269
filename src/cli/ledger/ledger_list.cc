#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "cli/ledger/ledger.h"
#include "cli/ledger/ledger_copy.h"
#include "cli/ledger/statement.h"
#include "console/exit_code.h"
#include "console/json_number.h"
#include "console/text_table.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct ListOptions {
  std::shared_ptr<LedgerOptions> place = std::make_shared<LedgerOptions>();
  std::string learner;
};

json::object LedgerEntryJson(const privacy::LedgerEntry& entry) {
  return {{"entry", entry.index},
          {"learner", entry.learner},
          {"first_time", MinuteOf(entry.first_time_ms)},
          {"last_time", MinuteOf(entry.last_time_ms)},
          {"first_commit", entry.first_commit},
          {"last_commit", entry.last_commit},
          {"steps", entry.steps},
          {"done", RunInWords(entry)},
          {"epsilon", console::FiniteOrNull(entry.epsilon)},
          {"delta", entry.delta},
          {"unit", privacy::Name(entry.unit)},
          {"code_version", entry.code_version},
          {"head", "sha256:" + ToHex(entry.head)}};
}

// The entries of the learner that has this name now; "": of all.
Result<std::vector<privacy::LedgerEntry>> EntriesWanted(const LedgerCopy& ledger,
                                                        const std::string& learner) {
  if (learner.empty()) return ledger.entries;
  const privacy::LearnerNames names(ledger.entries);
  std::vector<privacy::LedgerEntry> wanted;
  for (const privacy::LedgerEntry& entry : ledger.entries)
    if (names.Now(entry.learner) == learner) wanted.push_back(entry);
  if (wanted.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the ledger has no entry of a learner '{}'", learner));
  return wanted;
}

Result<int> ListLedger(const ListOptions& options) {
  TACIT_ASSIGN(const LedgerCopy ledger, CopyLedger(*options.place));
  TACIT_ASSIGN(const auto entries, EntriesWanted(ledger, options.learner));
  if (options.place->json) {
    for (const privacy::LedgerEntry& entry : entries)
      fmt::print("{}\n", json::serialize(LedgerEntryJson(entry)));
    return int{console::kExitDone};
  }
  if (entries.empty()) {
    fmt::print("nothing has been charged yet\n");
    return int{console::kExitDone};
  }
  console::TextLines lines = {
      {"entry", "learner", "from (UTC)", "to (UTC)", "commits", "epsilon", "done"}};
  for (const privacy::LedgerEntry& entry : entries)
    lines.push_back({std::to_string(entry.index), entry.learner, MinuteOf(entry.first_time_ms),
                     MinuteOf(entry.last_time_ms),
                     fmt::format("{}-{}", entry.first_commit, entry.last_commit),
                     std::isfinite(entry.epsilon) ? fmt::format("{:.4f}", entry.epsilon)
                                                  : std::string("unbounded"),
                     RunInWords(entry)});
  fmt::print("{}", console::LayOut(lines, {1, 2, 3, 6}));
  return int{console::kExitDone};
}

}  // namespace

void AddLedgerList(CLI::App* ledger, Action* chosen) {
  auto* command = ledger->add_subcommand("list", "The entries: what was done, when, at what cost");
  auto options = std::make_shared<ListOptions>();
  AddLedgerPlace(command, options->place, kOperatorListener);
  command->add_option("--learner", options->learner, "One learner (default: all)");
  command->footer(
      "An entry is a run of equal steps. With --json, an entry a line.\nExamples:\n"
      "  tacit ledger list --store demo-data/store\n  tacit ledger list --file ledger.json --json");
  command->callback([options, chosen] { *chosen = [options] { return ListLedger(*options); }; });
}

}  // namespace tacit::cli
