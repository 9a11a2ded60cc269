#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/ledger/ledger.h"
#include "cli/ledger/ledger_copy.h"
#include "cli/parts/dp_event.h"
#include "console/exit_code.h"
#include "console/json_number.h"
#include "console/output_file.h"
#include "privacy/pld.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct ExportOptions {
  std::shared_ptr<LedgerOptions> place = std::make_shared<LedgerOptions>();
  std::string learner, output;
  bool raw = false;
};

std::vector<privacy::CountedEvent> EventsOf(const privacy::Spending& spending) {
  std::vector<privacy::CountedEvent> events;
  if (spending.mu_squared > 0)
    events.push_back({privacy::Event::Gaussian(1 / std::sqrt(spending.mu_squared)), 1});
  if (spending.rho > 0) events.push_back({privacy::Event::Zcdp(spending.rho), 1});
  for (const privacy::Spending::Sampled& setting : spending.sampled)
    events.push_back({setting.event(), setting.count});
  return events;
}

// True where some events are none that dp_accounting has.
bool HasUnsupported(const privacy::Spending& spending) {
  return spending.has_blocks() ||
         std::ranges::any_of(spending.sampled, &privacy::Spending::Sampled::coins_known);
}

// Adds what dp_accounting has no event for: blocks and known coins as they are, and the delta of
// the whole composition at epsilons around the claim, certified upper bounds.
Status AddUnsupported(const privacy::Spending& spending, json::object* learner) {
  json::array blocks, coins;
  for (const privacy::Spending::Sampled& setting : spending.sampled) {
    if (setting.coins_known)
      coins.push_back(json::object{{"noise_multiplier", setting.noise_multiplier},
                                   {"sampling_rate", setting.sampling_rate},
                                   {"count", setting.count}});
    if (setting.block_steps == 0) continue;
    blocks.push_back(json::object{{"noise_multiplier", setting.noise_multiplier},
                                  {"steps", setting.block_steps},
                                  {"count", setting.count}});
  }
  privacy::PldAccountant accountant(privacy::Adjacency::kAddRemove);
  for (const auto& [event, count] : EventsOf(spending))
    TACIT_RETURN_IF_ERROR(accountant.Add(event, count));
  json::array curve;
  const double epsilon =
      learner->at("epsilon").is_number() ? learner->at("epsilon").to_number<double>() : 1;
  for (const double share : {0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0}) {
    TACIT_ASSIGN(const privacy::CertifiedInterval delta, accountant.DeltaAt(share * epsilon));
    curve.push_back(json::object{{"epsilon", share * epsilon}, {"delta", delta.upper}});
  }
  if (spending.has_blocks()) (*learner)["allocations"] = std::move(blocks);
  if (!coins.empty()) (*learner)["known_coins"] = std::move(coins);
  (*learner)["delta_curve"] = std::move(curve);
  (*learner)["note"] =
      "dp_accounting has no event for steps of which a unit is in exactly one, and none for coins "
      "that are known (UnsupportedDpEvent): allocations and known_coins say what they are, "
      "delta_curve the delta of the whole composition";
  return {};
}

// One learner: the claim, and the composition it is made about. A learner's last entry holds its
// worst unit.
Result<json::object> LearnerJson(const privacy::LedgerTotal& total,
                                 const privacy::LedgerEntry* last) {
  json::object learner{{"learner", total.learner},
                       {"unit", privacy::Name(total.unit)},
                       {"epsilon", console::FiniteOrNull(total.epsilon)},
                       {"delta", total.delta},
                       {"steps", total.steps},
                       {"neighboring_relation", "ADD_OR_REMOVE_ONE"}};
  // The adjacency of the promise. The composition is bounded for adding or removing one unit, which
  // bounds the promise.
  if (last != nullptr) {
    learner["adjacency"] = privacy::Name(last->adjacency);
    learner["neighbours"] = privacy::InWords(last->adjacency, last->unit);
  }
  learner["event"] = DpEventJson(last != nullptr ? last->worst : privacy::Spending{});
  if (last != nullptr && HasUnsupported(last->worst)) {
    TACIT_RETURN_IF_ERROR(AddUnsupported(last->worst, &learner));
  }
  return learner;
}

Result<json::object> ExportJson(const LedgerCopy& ledger, const std::string& wanted) {
  std::map<std::string_view, const privacy::LedgerEntry*> last;
  const privacy::LearnerNames names(ledger.entries);
  for (const privacy::LedgerEntry& entry : ledger.entries) last[names.Now(entry.learner)] = &entry;
  json::array learners;
  std::string known;
  for (const privacy::LedgerTotal& total : ledger.Learners()) {
    known += (known.empty() ? "'" : ", '") + total.learner + "'";
    if (!wanted.empty() && total.learner != wanted) continue;
    TACIT_ASSIGN(json::object learner, LearnerJson(total, last[total.learner]));
    learners.push_back(std::move(learner));
  }
  if (!wanted.empty() && learners.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the ledger has no learner '{}' (it has {})", wanted,
                            known.empty() ? "none" : known));
  return json::object{{"learners", std::move(learners)}, {"head", ledger.HeadName()}};
}

Result<int> Export(const ExportOptions& options) {
  TACIT_ASSIGN(const LedgerCopy ledger, CopyLedger(*options.place));
  std::string text;
  if (options.raw) {
    text = ToPage(ledger);
  } else {
    TACIT_ASSIGN(const json::object exported, ExportJson(ledger, options.learner));
    text = json::serialize(exported) + "\n";
  }
  if (options.output.empty()) {
    fmt::print("{}", text);
    return int{console::kExitDone};
  }
  TACIT_RETURN_IF_ERROR(console::WriteFile(options.output, text));
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
dp_accounting.rdp.RdpAccountant() reads it and bounds a little less tightly. Where it holds an
UnsupportedDpEvent (participation allocate) none reads it: `allocations` and `delta_curve` say what
was charged instead.)";

}  // namespace

void AddLedgerExport(CLI::App* ledger, Action* chosen) {
  auto* command =
      ledger->add_subcommand("export", "What was charged, as events that dp_accounting reads");
  auto options = std::make_shared<ExportOptions>();
  AddLedgerPlace(command, options->place, kOperatorListener);
  auto* learner = command->add_option("--learner", options->learner, "One learner (default: all)");
  command
      ->add_flag("--raw", options->raw,
                 "The entries themselves, which `tacit ledger verify --file` needs no daemon for")
      ->excludes(learner);
  command->add_option("--output", options->output, "File to write (default: standard output)");
  command->footer(kFooter);
  command->callback([options, chosen] { *chosen = [options] { return Export(*options); }; });
}

}  // namespace tacit::cli
