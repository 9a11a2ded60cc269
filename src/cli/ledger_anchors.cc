#include "cli/ledger_anchors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "cli/ledger.h"
#include "cli/report/statement.h"
#include "console/exit_code.h"
#include "wiring/anchor_file.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

std::vector<std::string> NamesOfKeys(const AnchorsHeld& held) {
  std::vector<std::string> names;
  for (const privacy::AnchorKeyId& key : held.keys) names.push_back(privacy::NameOf(key));
  return names;
}

struct SignOptions {
  std::shared_ptr<LedgerOptions> place = std::make_shared<LedgerOptions>();
  std::string anchors, key;
};

Result<int> SignLedger(const SignOptions& options) {
  TACIT_ASSIGN(const privacy::AnchorSigner signer, wiring::ReadAnchorSigner("--key", options.key));
  TACIT_ASSIGN(const LedgerCopy ledger, CopyLedger(*options.place));
  TACIT_RETURN_IF_ERROR(privacy::VerifyChain(ledger.entries, {.epsilons_max = 1000}));
  const auto before = wiring::ReadWholeAnchorFile(options.anchors);
  if (!before && before.error().code != ErrorCode::kNotFound) return Fail(before.error());
  if (before) TACIT_RETURN_IF_ERROR(privacy::CheckAnchors(*before, ledger.ForAnchors()));
  privacy::Anchor anchor = privacy::AnchorOf(ledger.ForAnchors(), ledger.term);
  anchor.time_ms = SystemClock().UnixMillis();
  TACIT_ASSIGN(anchor, wiring::AppendAnchor(options.anchors, std::move(anchor), &signer,
                                            before ? before->size() : 0));
  if (options.place->json)
    fmt::print("{}\n", anchor.Line());
  else
    fmt::print("{}: anchor {}, commit {}, head {}, signed with {}\n", options.anchors,
               anchor.number, anchor.commit, ledger.HeadName(), privacy::NameOf(signer.id()));
  return int{console::kExitDone};
}

}  // namespace

void AddAnchorOptions(CLI::App* command, const std::shared_ptr<AnchorOptions>& options) {
  auto* anchors = command->add_option(
      "--anchors", options->anchors,
      "File of anchors (store.anchors, or `tacit ledger sign`) that the ledger must agree with");
  command
      ->add_option("--public-key", options->public_keys,
                   "Public key of Ed25519 in PEM (repeatable): each anchor must be signed with one")
      ->needs(anchors)
      ->allow_extra_args(false);
}

Result<std::optional<AnchorsHeld>> HoldAnchors(const AnchorOptions& options,
                                               const LedgerCopy& ledger) {
  if (options.anchors.empty()) return std::optional<AnchorsHeld>();
  AnchorsHeld held;
  held.file = options.anchors;
  held.terms_known = ledger.terms.has_value();
  for (const std::string& path : options.public_keys) {
    TACIT_ASSIGN(const privacy::AnchorKeyId key, wiring::ReadAnchorKeyFile("--public-key", path));
    held.keys.push_back(key);
  }
  TACIT_ASSIGN(const auto anchors, wiring::ReadWholeAnchorFile(options.anchors));
  const auto check = [&]() -> Status {
    if (!held.keys.empty()) TACIT_RETURN_IF_ERROR(privacy::CheckSignatures(anchors, held.keys));
    return privacy::CheckAnchors(anchors, ledger.ForAnchors());
  };
  if (Status good = check(); !good)
    return Fail(std::move(good.error()).Context("anchors " + options.anchors));
  held.anchors = anchors.size();
  if (!anchors.empty()) held.newest = anchors.back();
  return std::optional(std::move(held));
}

std::string InWords(const AnchorsHeld& held) {
  if (!held.newest) return fmt::format("{} has no anchor", held.file);
  std::string words =
      fmt::format("the ledger agrees with {} of {}, the newest of {} UTC at commit {}",
                  Counted(held.anchors, "anchor"), held.file, MinuteOf(held.newest->time_ms),
                  held.newest->commit);
  words += held.keys.empty() ? "; signatures were not looked at (--public-key)"
                             : fmt::format("; each has a good signature of {}",
                                           fmt::join(NamesOfKeys(held), " or "));
  if (!held.terms_known)
    words +=
        "; within a run of equal steps a fork would not show, for only a store or checkpoint "
        "has its terms";
  return words;
}

json::object ToJson(const AnchorsHeld& held) {
  json::array keys;
  for (const std::string& name : NamesOfKeys(held)) keys.emplace_back(name);
  json::object object{{"file", held.file},
                      {"anchors", held.anchors},
                      {"signed_with", std::move(keys)},
                      {"forks_would_show", held.terms_known}};
  object["newest"] = nullptr;
  if (held.newest)
    object["newest"] = json::object{{"time", MinuteOf(held.newest->time_ms)},
                                    {"commit", held.newest->commit},
                                    {"head", "sha256:" + ToHex(held.newest->head)}};
  return object;
}

void AddLedgerSign(CLI::App* ledger, Action* chosen) {
  auto* command =
      ledger->add_subcommand("sign", "Write the ledger's head into a file of anchors, signed");
  auto options = std::make_shared<SignOptions>();
  AddLedgerPlace(command, options->place, kOperatorListener);
  command->add_option("--key", options->key, "Private key of Ed25519 in PEM, closed to others")
      ->required();
  command
      ->add_option("--anchors", options->anchors,
                   "File to add the anchor to; made where there is none")
      ->required();
  command->footer(
      "The chain is verified first, and held against the anchors that the file has. An anchor "
      "names "
      "the one before by\nits digest. Keep the file where whoever could change the ledger cannot.\n"
      "Examples:\n  openssl genpkey -algorithm ed25519 -out ledger.key\n"
      "  openssl pkey -in ledger.key -pubout -out ledger.pub\n"
      "  tacit ledger sign --store demo-data/store --key ledger.key --anchors anchors.jsonl\n"
      "  tacit ledger verify --store demo-data/store --anchors anchors.jsonl --public-key "
      "ledger.pub");
  command->callback([options, chosen] { *chosen = [options] { return SignLedger(*options); }; });
}

}  // namespace tacit::cli
