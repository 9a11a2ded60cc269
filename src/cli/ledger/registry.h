#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/ledger/statement.h"
#include "config/config.h"

// The statement as a record of the registry of deployments of differential privacy (OpenDP, NIST).
namespace tacit::cli {

struct RegistryRecord {
  std::string yaml;
  // A line for each field that the operator has to write: "about.region: ...".
  std::vector<std::string> unwritten;
};

// One record for all learners. Without a configuration, it has only what the ledger knows.
// kInvalidArgument: nothing has been published yet, or the configuration is of another ledger.
Result<RegistryRecord> MakeRegistryRecord(const Statement& statement, const config::Config* config);

}  // namespace tacit::cli
