#include "app/commands/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/assembly.h"
#include "app/commands/ask_daemon.h"
#include "app/exit_code.h"
#include "base/text.h"

namespace tacit::app {
namespace {

namespace json = boost::json;

}  // namespace

json::value EpsilonJson(double epsilon) {
  return std::isfinite(epsilon) ? json::value(epsilon) : json::value(nullptr);
}

Result<store::ReadOnlyStore> OpenLedger(const LedgerOptions& options) {
  const std::string& path = options.store.empty() ? options.checkpoint : options.store;
  return store::OpenReadOnly(path, options.witness.empty() ? WitnessBeside(path) : options.witness,
                             {});
}

std::string HeadName(const store::ReadOnlyStore& store) {
  return "sha256:" + ToHex(store.snapshot->head());
}

Result<json::object> FetchLedger(const std::string& url) {
  TACIT_ASSIGN(const serve::Response response, AskDaemon(url, "/v1/privacy", "GET", ""));
  json::error_code error;
  json::value value = json::parse(response.body, error);
  if (response.status != 200 || error || !value.is_object())
    return Fail(ErrorCode::kIo, fmt::format("{} answered {}: {}", url, response.status,
                                            response.body.substr(0, 200)));
  return std::move(value.get_object());
}

namespace {

json::object LedgerJson(const store::ReadOnlyStore& store) {
  json::array learners;
  for (const privacy::LedgerTotal& l : store.snapshot->learners())
    learners.push_back(json::object{{"learner", l.learner},
                                    {"unit", privacy::Name(l.unit)},
                                    {"epsilon", EpsilonJson(l.epsilon)},
                                    {"delta", l.delta},
                                    {"steps", l.steps}});
  const privacy::LedgerTotal& total = store.snapshot->total();
  return {{"learners", std::move(learners)},
          {"total", json::object{{"unit", privacy::Name(total.unit)},
                                 {"epsilon", EpsilonJson(total.epsilon)},
                                 {"delta", total.delta}}},
          {"entries", store.snapshot->ledger_entries()},
          {"head", HeadName(store)},
          {"version", store.snapshot->version().value},
          {"lineage", store.snapshot->lineage()}};
}

std::string NumberOr(const json::value& value, const char* otherwise) {
  return value.is_number() ? fmt::format("{:.6g}", value.to_number<double>()) : otherwise;
}

std::string EntriesText(uint64_t entries) {
  return fmt::format("{} {}", entries, entries == 1 ? "entry" : "entries");
}

void PrintTable(const json::object& ledger) {
  fmt::print("{:<20} {:<6} {:>12} {:>10} {:>10}\n", "learner", "unit", "epsilon", "delta", "steps");
  const auto print = [](std::string_view name, const json::object& row, const std::string& steps) {
    fmt::print("{:<20} {:<6} {:>12} {:>10} {:>10}\n", name,
               std::string_view(row.at("unit").as_string()),
               NumberOr(row.at("epsilon"), "unbounded"), NumberOr(row.at("delta"), "-"), steps);
  };
  for (const json::value& learner : ledger.at("learners").as_array()) {
    const json::object& row = learner.as_object();
    print(row.at("learner").as_string(), row, json::serialize(row.at("steps")));
  }
  print("all together", ledger.at("total").as_object(), "");
  fmt::print("{}, head {}\n", EntriesText(ledger.at("entries").to_number<uint64_t>()),
             std::string_view(ledger.at("head").as_string()));
}

Result<int> Show(const LedgerOptions& options) {
  json::object ledger;
  if (!options.url.empty()) {
    TACIT_ASSIGN(ledger, FetchLedger(options.url));
  } else {
    TACIT_ASSIGN(const store::ReadOnlyStore store, OpenLedger(options));
    ledger = LedgerJson(store);
  }
  if (options.json) {
    fmt::print("{}\n", json::serialize(ledger));
    return int{kExitDone};
  }
  try {
    PrintTable(ledger);
  } catch (const std::exception&) {  // JSON of another shape
    return Fail(ErrorCode::kIo, fmt::format("{} does not answer as tacitd does", options.url));
  }
  return int{kExitDone};
}

Result<int> Verify(const LedgerOptions& options) {
  TACIT_ASSIGN(const store::ReadOnlyStore store, OpenLedger(options));
  constexpr uint64_t kSampledEpsilons = 1000;
  TACIT_RETURN_IF_ERROR(privacy::VerifyChain(
      store.entries, {.epsilons_max = options.full ? ~uint64_t{0} : kSampledEpsilons}));
  const Digest& head = store.snapshot->head();
  if (!store.entries.empty() && store.entries.back().head != head)
    return Fail(ErrorCode::kCorruption,
                "the chain is whole but does not end at the head the store has committed");
  if (options.json) {
    fmt::print("{}\n", json::serialize(json::object{{"valid", true},
                                                    {"entries", store.entries.size()},
                                                    {"head", "sha256:" + ToHex(head)}}));
  } else {
    const uint64_t epsilons = options.full
                                  ? store.entries.size()
                                  : std::min<uint64_t>(store.entries.size(), kSampledEpsilons);
    fmt::print(
        "{}: every link and head recomputed and right, and so is epsilon in {}; head sha256:{}\n",
        EntriesText(store.entries.size()), epsilons, ToHex(head));
  }
  return int{kExitDone};
}

}  // namespace

void AddLedgerPlace(CLI::App* command, const std::shared_ptr<LedgerOptions>& options,
                    bool with_url) {
  auto* where = command->add_option_group("where");
  where->add_option("--store", options->store, "Store directory");
  where->add_option("--checkpoint", options->checkpoint, "Checkpoint directory");
  if (with_url)
    where->add_option("--url", options->url, "A running daemon: http://HOST:PORT or unix:/PATH");
  where->require_option(1);
  command->add_option("--witness", options->witness,
                      "Witness file (default: the store's name + .witness, where there is one)");
  command->add_flag("--json", options->json, "Print JSON");
}

void AddLedger(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("ledger", "What has been charged, and whether it is whole");
  command->require_subcommand(1);
  auto options = std::make_shared<LedgerOptions>();

  auto* show = command->add_subcommand("show", "Epsilon per learner and in total");
  AddLedgerPlace(show, options, true);
  show->footer(
      "Examples:\n  tacit ledger show --store demo-data/store\n  tacit ledger show --url "
      "http://127.0.0.1:8980 --json");
  show->callback([options, chosen] { *chosen = [options] { return Show(*options); }; });

  auto* verify = command->add_subcommand("verify", "Recompute the chain and its epsilons");
  AddLedgerPlace(verify, options, false);
  verify->add_flag("--full", options->full, "Recompute every epsilon, not 1,000 of them");
  verify->footer("Example:\n  tacit ledger verify --store demo-data/store");
  verify->callback([options, chosen] { *chosen = [options] { return Verify(*options); }; });

  AddLedgerExport(command, chosen);
  AddLedgerForecast(command, chosen);
}

}  // namespace tacit::app
