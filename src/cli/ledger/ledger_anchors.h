#pragma once

#include <CLI/CLI.hpp>
#include <boost/json/fwd.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/ledger/ledger_copy.h"
#include "privacy/anchor.h"

namespace tacit::cli {

// The place of anchors: a file, or "topic:NAME".
struct AnchorPlace {
  std::string anchors;           // if empty, none is asked
  std::string kafka, bootstrap;  // a topic's brokers
  uint32_t wait_s = 10;
};

struct AnchorOptions {
  AnchorPlace place;
  std::vector<std::string> public_keys;  // files in PEM
};
// Adds --anchors with what belongs to it, and --public-key.
void AddAnchorOptions(CLI::App* command, const std::shared_ptr<AnchorOptions>& options);

// The result of holding anchors against a ledger.
struct AnchorsHeld {
  std::string file;  // or "topic:NAME"
  uint64_t anchors = 0;
  std::optional<privacy::Anchor> newest;
  // The keys that each anchor is signed with one of; if empty, signatures were not looked at.
  std::vector<privacy::AnchorKeyId> keys;
  // A copy that went on by itself would have shown: the ledger came with its store's terms.
  bool terms_known = false;
};

// Holds anchors against the ledger. Nothing where no place is named. kCorruption: the file or topic
// is damaged, a signature is not good, or the ledger is not the one that was anchored.
Result<std::optional<AnchorsHeld>> HoldAnchors(const AnchorOptions& options,
                                               const LedgerCopy& ledger);

// "12 anchors of FILE agree, each with a good signature of ed25519:...; the newest is ...".
std::string InWords(const AnchorsHeld& held);
boost::json::object ToJson(const AnchorsHeld& held);

}  // namespace tacit::cli
