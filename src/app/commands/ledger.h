#pragma once

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>
#include <string>

#include "app/commands/command.h"
#include "store/store.h"

// What the commands of `tacit ledger` share.
namespace tacit::app {

struct LedgerOptions {
  std::string store, checkpoint, url, witness;
  bool json = false, full = false;
};

// --store or --checkpoint, and --url where a running daemon can answer.
void AddLedgerPlace(CLI::App* command, const std::shared_ptr<LedgerOptions>& options,
                    bool with_url);
// REQUIRES a store or a checkpoint.
Result<store::ReadOnlyStore> OpenLedger(const LedgerOptions& options);
// What a daemon answers to GET /v1/privacy.
Result<boost::json::object> FetchLedger(const std::string& url);

// JSON knows no infinity: a bound that is not there is null.
boost::json::value EpsilonJson(double epsilon);
// "sha256:..."
std::string HeadName(const store::ReadOnlyStore& store);

void AddLedgerExport(CLI::App* ledger, Action* chosen);
void AddLedgerForecast(CLI::App* ledger, Action* chosen);

}  // namespace tacit::app
