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

// --store, --checkpoint or --url. `listener` says which of the daemon's it has to be.
void AddLedgerPlace(CLI::App* command, const std::shared_ptr<LedgerOptions>& options,
                    const std::string& listener);
inline constexpr const char* kOperatorListener = "its serve.operator_listen";
// The witness that a store or checkpoint is read by; empty: there is none.
std::string WitnessOf(const LedgerOptions& options);
// REQUIRES a store or a checkpoint. Says on stderr when there is no witness.
Result<store::ReadOnlyStore> OpenLedger(const LedgerOptions& options);

void AddLedgerExport(CLI::App* ledger, Action* chosen);
void AddLedgerForecast(CLI::App* ledger, Action* chosen);

}  // namespace tacit::app
