#include <fmt/format.h>

#include <fstream>
#include <map>

#include "cli/dp_event.h"
#include "cli/ledger.h"
#include "cli/ledger_copy.h"
#include "console/exit_code.h"
#include "console/json_number.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct ExportOptions {
  std::shared_ptr<LedgerOptions> place = std::make_shared<LedgerOptions>();
  std::string learner, output;
};

// One learner: the claim, and the composition it is made about. A learner's last entry holds its
// worst unit.
json::object LearnerJson(const privacy::LedgerTotal& total, const privacy::LedgerEntry* last) {
  json::object learner{{"learner", total.learner},
                       {"unit", privacy::Name(total.unit)},
                       {"epsilon", console::FiniteOrNull(total.epsilon)},
                       {"delta", total.delta},
                       {"steps", total.steps},
                       {"neighboring_relation", "ADD_OR_REMOVE_ONE"}};
  // The adjacency of the promise. The composition is bounded for adding or removing one unit, which
  // bounds the promise.
  if (last != nullptr) learner["adjacency"] = privacy::Name(last->adjacency);
  learner["event"] = DpEventJson(last != nullptr ? last->worst : privacy::Spending{});
  return learner;
}

Result<json::object> ExportJson(const LedgerCopy& ledger, const std::string& wanted) {
  std::map<std::string_view, const privacy::LedgerEntry*> last;
  for (const privacy::LedgerEntry& entry : ledger.entries) last[entry.learner] = &entry;
  json::array learners;
  std::string known;
  for (const privacy::LedgerTotal& total : ledger.Learners()) {
    known += (known.empty() ? "'" : ", '") + total.learner + "'";
    if (wanted.empty() || total.learner == wanted)
      learners.push_back(LearnerJson(total, last[total.learner]));
  }
  if (!wanted.empty() && learners.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the ledger has no learner '{}' (it has {})", wanted,
                            known.empty() ? "none" : known));
  return json::object{{"learners", std::move(learners)}, {"head", ledger.HeadName()}};
}

Result<int> Export(const ExportOptions& options) {
  TACIT_ASSIGN(const LedgerCopy ledger, CopyLedger(*options.place));
  TACIT_ASSIGN(const json::object exported, ExportJson(ledger, options.learner));
  const std::string text = json::serialize(exported) + "\n";
  if (options.output.empty()) {
    fmt::print("{}", text);
    return int{console::kExitDone};
  }
  std::ofstream file(options.output, std::ios::trunc);
  file << text << std::flush;
  if (!file) return Fail(ErrorCode::kIo, fmt::format("{} cannot be written", options.output));
  return int{console::kExitDone};
}

constexpr const char* kFooter =
    R"(Examples:
  tacit ledger export --store demo-data/store --output ledger.json
  tacit ledger export --checkpoint DIR --learner ctr
Each learner has the composition of its worst unit as `event`, and the epsilon and delta claimed of
it. In Python, with dp_accounting 0.6.0 (pip install dp-accounting==0.6.0):
  import collections, json, dp_accounting
  named = lambda fields: collections.namedtuple("Named", fields)(**fields)
  ledger = json.load(open("ledger.json"), object_hook=named)
  learner = ledger.learners[0]
  event = dp_accounting.DpEvent.from_named_tuple(learner.event)
  accountant = dp_accounting.pld.PLDAccountant().compose(event)
  print(learner.epsilon, accountant.get_epsilon(learner.delta))
Where the event holds a ZCDpEvent (a one-shot Gumbel selection) the PLD accountant refuses it; then
dp_accounting.rdp.RdpAccountant() reads it and bounds a little less tightly.)";

}  // namespace

void AddLedgerExport(CLI::App* ledger, Action* chosen) {
  auto* command =
      ledger->add_subcommand("export", "What was charged, as events that dp_accounting reads");
  auto options = std::make_shared<ExportOptions>();
  AddLedgerPlace(command, options->place, kOperatorListener);
  command->add_option("--learner", options->learner, "One learner (default: all)");
  command->add_option("--output", options->output, "File to write (default: standard output)");
  command->footer(kFooter);
  command->callback([options, chosen] { *chosen = [options] { return Export(*options); }; });
}

}  // namespace tacit::cli
