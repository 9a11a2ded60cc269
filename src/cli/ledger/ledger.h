#pragma once

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>
#include <string>

#include "cli/parts/command.h"
#include "store/store.h"

// Options and helpers shared by the commands of `tacit ledger`.
namespace tacit::cli {

struct LedgerOptions {
  std::string store, checkpoint, url, file, witness;
  bool json = false, full = false;
};

// Adds --store, --checkpoint, --url and --file. `listener` names the daemon's listener that --url
// needs.
void AddLedgerPlace(CLI::App* command, const std::shared_ptr<LedgerOptions>& options,
                    const std::string& listener);
inline constexpr const char* kOperatorListener = "its serve.operator_listen";
// The witness for reading the store or checkpoint; "" if there is none.
Result<std::string> WitnessOf(const LedgerOptions& options);
// The place for people: "store /var/lib/tacit/store".
std::string PlaceOf(const LedgerOptions& options);
// REQUIRES a store or a checkpoint. Warns on stderr when there is no witness.
Result<store::ReadOnlyStore> OpenLedger(const LedgerOptions& options);

// A daemon's answer to GET /v1/privacy.
Result<boost::json::object> FetchPrivacy(const std::string& url);

void AddLedgerExport(CLI::App* ledger, Action* chosen);
void AddLedgerForecast(CLI::App* ledger, Action* chosen);
void AddLedgerList(CLI::App* ledger, Action* chosen);
void AddLedgerSign(CLI::App* ledger, Action* chosen);
void AddLedgerRecover(CLI::App* ledger, Action* chosen);

}  // namespace tacit::cli
