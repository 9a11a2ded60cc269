#include "cli/ledger/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/ledger/ledger_anchors.h"
#include "cli/ledger/ledger_copy.h"
#include "cli/parts/ask_daemon.h"
#include "console/exit_code.h"
#include "console/json_number.h"
#include "privacy/tradeoff.h"
#include "wiring/assembly.h"
#include "wiring/plans/witness_place.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

}  // namespace

Result<std::string> WitnessOf(const LedgerOptions& options) {
  return wiring::WitnessFor(options.store.empty() ? options.checkpoint : options.store,
                            options.witness);
}

std::string PlaceOf(const LedgerOptions& options) {
  if (!options.url.empty()) return "the daemon at " + options.url;
  if (!options.file.empty()) return "the ledger in " + options.file;
  return options.store.empty() ? "checkpoint " + options.checkpoint : "store " + options.store;
}

Result<store::ReadOnlyStore> OpenLedger(const LedgerOptions& options) {
  const std::string& path = options.store.empty() ? options.checkpoint : options.store;
  TACIT_ASSIGN(const std::string witness, WitnessOf(options));
  if (witness.empty() && !store::IsCheckpoint(path)) wiring::TellOfNoWitness(path);
  return store::OpenReadOnly(path, witness, {});
}

Result<json::object> FetchPrivacy(const std::string& url) {
  TACIT_ASSIGN(const http::Response response, AskDaemon(url, "/v1/privacy", "GET", ""));
  json::error_code error;
  json::value value = json::parse(response.body, error);
  if (response.status != 200 || error || !value.is_object())
    return Fail(ErrorCode::kIo, fmt::format("{} answered {}: {}", url, response.status,
                                            response.body.substr(0, 200)));
  return std::move(value.get_object());
}

namespace {

// Callers leave this out where there are no bounds.
json::object BoundsJson(const privacy::Bounds& bounds) {
  return {{"allowance", bounds.allowance},
          {"per_period", bounds.per_period},
          {"period_steps", bounds.period_steps},
          {"dedupe_window", bounds.dedupe_window}};
}

// Adds what epsilon does not cover.
void AddReservations(const privacy::LedgerTotal& total, json::object* object) {
  if (!total.not_covered.empty()) (*object)["not_covered"] = total.not_covered;
}

// The share of right answers that nobody exceeds, who knows all the rest.
json::object AtMostJson(const privacy::LedgerTotal& total) {
  const double advantage = total.AdvantageAtMost();
  return {{"accuracy", advantage < 1 ? json::value(privacy::AccuracyAtMost(advantage)) : nullptr},
          {"words", privacy::PlainWords(advantage)}};
}

json::object LearnerJson(const privacy::LedgerTotal& total,
                         const privacy::Ledger::Promises& promises) {
  json::object learner{{"learner", total.learner},
                       {"unit", privacy::Name(total.unit)},
                       {"epsilon", console::FiniteOrNull(total.epsilon)},
                       {"delta", total.delta},
                       {"steps", total.steps}};
  learner["at_most"] = AtMostJson(total);
  AddReservations(total, &learner);
  for (const privacy::Promise& promise : promises.learners) {
    if (promise.learner != total.learner) continue;
    learner["budget"] = json::object{{"epsilon", console::FiniteOrNull(promise.epsilon)}};
    if (promise.bounds != privacy::Bounds{}) learner["bounds"] = BoundsJson(promise.bounds);
  }
  return learner;
}

json::object LedgerJson(const store::ReadOnlyStore& store) {
  json::array learners;
  for (const privacy::LedgerTotal& total : store.snapshot->learners())
    learners.push_back(LearnerJson(total, store.promises));
  json::object total{{"unit", privacy::Name(store.snapshot->total().unit)},
                     {"epsilon", console::FiniteOrNull(store.snapshot->total().epsilon)},
                     {"delta", store.snapshot->total().delta}};
  total["at_most"] = AtMostJson(store.snapshot->total());
  AddReservations(store.snapshot->total(), &total);
  if (const auto& budget = store.promises.total)
    total["budget"] = json::object{{"epsilon", budget->epsilon}, {"delta", budget->delta}};
  return {{"learners", std::move(learners)},
          {"total", std::move(total)},
          {"entries", store.snapshot->ledger_entries()},
          {"head", "sha256:" + ToHex(store.snapshot->head())},
          {"version", store.snapshot->version().value},
          {"lineage", store.snapshot->lineage()}};
}

std::string NumberOr(const json::value& value, const char* otherwise) {
  return value.is_number() ? fmt::format("{:.6g}", value.to_number<double>()) : otherwise;
}

std::string EntriesText(uint64_t entries) {
  return fmt::format("{} {}", entries, entries == 1 ? "entry" : "entries");
}

// "8", or "-" where no budget was promised.
std::string BudgetText(const json::object& row) {
  const json::value* budget = row.if_contains("budget");
  return budget == nullptr ? "-" : NumberOr(budget->at("epsilon"), "-");
}

// The bounds on a unit's part in words; "" if the answer has none.
std::string BoundsText(const json::object& row) {
  const json::value* bounds = row.if_contains("bounds");
  if (bounds == nullptr) return "";
  const auto number = [&](const char* key) { return bounds->at(key).to_number<uint64_t>(); };
  std::string text;
  if (const uint64_t steps = number("allowance"))
    text += fmt::format("; a user is in at most {} steps, ever", steps);
  if (const uint64_t steps = number("per_period")) text += fmt::format(", {} of a period", steps);
  if (const uint64_t steps = number("period_steps"))
    text += text.empty() ? fmt::format("; a period is charged whole, for {} steps", steps)
                         : fmt::format(", {} of which a period counts for", steps);
  if (const uint64_t window = number("dedupe_window"))
    text += fmt::format("; an event id counts once in {} offsets", window);
  return fmt::format("{}: {}\n", std::string_view(row.at("learner").as_string()),
                     text.substr(std::min<size_t>(2, text.size())));
}

std::string NotCoveredText(const json::object& row, std::string_view name) {
  const json::value* part = row.if_contains("not_covered");
  if (part == nullptr || !part->is_string()) return "";
  return fmt::format("{}: {}\n", name, std::string_view(part->as_string()));
}

std::string AtMostText(const json::object& row, std::string_view name) {
  return fmt::format("{}: {}\n", name, std::string_view(row.at("at_most").at("words").as_string()));
}

void PrintTable(const json::object& ledger) {
  constexpr const char* kForm = "{:<20} {:<6} {:>12} {:>10} {:>10} {:>10}\n";
  fmt::print(fmt::runtime(kForm), "learner", "unit", "epsilon", "budget", "delta", "steps");
  const auto print = [](std::string_view name, const json::object& row, const std::string& steps) {
    fmt::print(fmt::runtime(kForm), name, std::string_view(row.at("unit").as_string()),
               NumberOr(row.at("epsilon"), "unbounded"), BudgetText(row),
               NumberOr(row.at("delta"), "-"), steps);
  };
  for (const json::value& learner : ledger.at("learners").as_array()) {
    const json::object& row = learner.as_object();
    print(row.at("learner").as_string(), row, json::serialize(row.at("steps")));
  }
  if (const json::value* retired = ledger.if_contains("retired")) {
    for (const json::value& learner : retired->as_array()) {
      const json::object& row = learner.as_object();
      print(fmt::format("{} (retired)", std::string_view(row.at("learner").as_string())), row,
            json::serialize(row.at("steps")));
    }
  }
  print("all together", ledger.at("total").as_object(), "");
  for (const json::value& learner : ledger.at("learners").as_array()) {
    const json::object& row = learner.as_object();
    const std::string_view name = row.at("learner").as_string();
    fmt::print("{}{}{}", BoundsText(row), NotCoveredText(row, name), AtMostText(row, name));
  }
  fmt::print("{}", AtMostText(ledger.at("total").as_object(), "all together"));
  fmt::print(
      "{} up to commit {}, head {}\n", EntriesText(ledger.at("entries").to_number<uint64_t>()),
      ledger.at("version").to_number<uint64_t>(), std::string_view(ledger.at("head").as_string()));
}

Result<int> Show(const LedgerOptions& options) {
  json::object ledger;
  if (!options.file.empty())
    return Fail(
        ErrorCode::kInvalidArgument,
        "--file: `tacit privacy report --file` and `tacit ledger list --file` show what is in "
        "a file");
  if (!options.url.empty()) {
    TACIT_ASSIGN(ledger, FetchPrivacy(options.url));
  } else {
    TACIT_ASSIGN(const store::ReadOnlyStore store, OpenLedger(options));
    TACIT_ASSIGN(const std::string witness, WitnessOf(options));
    ledger = LedgerJson(store);
    ledger["witness"] = !witness.empty();
  }
  if (options.json) {
    fmt::print("{}\n", json::serialize(ledger));
    return int{console::kExitDone};
  }
  try {
    PrintTable(ledger);
  } catch (const std::exception&) {  // JSON of another shape
    return Fail(ErrorCode::kIo, fmt::format("{} does not answer as tacitd does", options.url));
  }
  return int{console::kExitDone};
}

Result<int> Verify(const LedgerOptions& options, const AnchorOptions& anchors) {
  TACIT_ASSIGN(const LedgerCopy ledger, CopyLedger(options));
  constexpr uint64_t kSampledEpsilons = 1000;
  const uint64_t epsilons = options.full ? ~uint64_t{0} : kSampledEpsilons;
  TACIT_RETURN_IF_ERROR(privacy::VerifyChain(ledger.entries, {.epsilons_max = epsilons}));
  TACIT_ASSIGN(const std::optional<AnchorsHeld> held, HoldAnchors(anchors, ledger));
  const size_t entries = ledger.entries.size();
  const bool of_a_page = !options.url.empty() || !options.file.empty();
  if (options.json) {
    json::object answer{{"valid", true}, {"entries", entries}, {"head", ledger.HeadName()}};
    if (!of_a_page) answer["witness"] = ledger.witnessed;
    if (held) answer["anchors"] = ToJson(*held);
    fmt::print("{}\n", json::serialize(answer));
  } else if (entries == 0) {
    fmt::print("nothing has been charged yet: there is no entry to verify\n");
  } else {
    fmt::print(
        "{}: every link and head recomputed, and {}; all right; head {}\n", EntriesText(entries),
        entries <= epsilons ? "every epsilon"
                            : fmt::format("the epsilon of about {} (--full: of each)", epsilons),
        ledger.HeadName());
  }
  if (of_a_page && !held && !options.json)
    fmt::print(
        "lineage {}, commit {}: as {} says, because no link of the chain holds them; anchors do "
        "(--anchors)\n",
        ledger.lineage, ledger.last->value, PlaceOf(options));
  if (held && !options.json) fmt::print("{}\n", InWords(*held));
  return int{console::kExitDone};
}

}  // namespace

void AddLedgerPlace(CLI::App* command, const std::shared_ptr<LedgerOptions>& options,
                    const std::string& listener) {
  auto* where = command->add_option_group("where");
  where->add_option("--store", options->store, "Store directory");
  where->add_option("--checkpoint", options->checkpoint, "Checkpoint directory");
  auto* file = where->add_option("--file", options->file,
                                 "File that `tacit ledger export --raw` has written");
  auto* url = where->add_option(
      "--url", options->url,
      fmt::format("A running daemon, {}: http://HOST:PORT or unix:/PATH", listener));
  where->require_option(1);
  command
      ->add_option("--witness", options->witness,
                   "Witness file (default: the store's name + .witness, where there is one)")
      ->excludes(url)
      ->excludes(file);
  command->add_flag("--json", options->json, "Print JSON");
}

void AddLedger(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("ledger", "What has been charged, and whether it is whole");
  command->require_subcommand(1);
  auto options = std::make_shared<LedgerOptions>();

  auto* show = command->add_subcommand("show", "Epsilon per learner and in total");
  AddLedgerPlace(show, options, "any of its listeners");
  show->footer(
      "Examples:\n  tacit ledger show --store demo-data/store\n  tacit ledger show --url "
      "http://127.0.0.1:8980 --json");
  show->callback([options, chosen] { *chosen = [options] { return Show(*options); }; });

  auto* verify = command->add_subcommand("verify", "Recompute the chain and its epsilons");
  AddLedgerPlace(verify, options, kOperatorListener);
  verify->add_flag("--full", options->full, "Recompute every epsilon, not 1,000 of them");
  verify->footer(
      "From the entries alone: nothing else that a daemon at --url says is believed.\n"
      "Examples:\n  tacit ledger verify --store demo-data/store\n  tacit ledger verify --url "
      "unix:/run/tacit/operator --full");
  auto anchors = std::make_shared<AnchorOptions>();
  AddAnchorOptions(verify, anchors);
  verify->callback([options, anchors, chosen] {
    *chosen = [options, anchors] { return Verify(*options, *anchors); };
  });

  AddLedgerExport(command, chosen);
  AddLedgerForecast(command, chosen);
  AddLedgerList(command, chosen);
  AddLedgerSign(command, chosen);
  AddLedgerRecover(command, chosen);
}

}  // namespace tacit::cli
