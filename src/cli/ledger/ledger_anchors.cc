#include "cli/ledger/ledger_anchors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json.hpp>
#include <chrono>

#include "base/clock.h"
#include "base/text.h"
#include "cli/ledger/anchor_topic.h"
#include "cli/ledger/ledger.h"
#include "cli/ledger/statement.h"
#include "console/exit_code.h"
#include "wiring/plans/kafka.h"
#include "wiring/restore/anchor_file.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

std::vector<std::string> NamesOfKeys(const AnchorsHeld& held) {
  std::vector<std::string> names;
  for (const privacy::AnchorKeyId& key : held.keys) names.push_back(privacy::NameOf(key));
  return names;
}

constexpr std::string_view kAnchorTopic = "topic:";

bool IsTopic(const AnchorPlace& place) { return place.anchors.starts_with(kAnchorTopic); }

Result<AnchorTopic> TopicOf(const AnchorPlace& place) {
  AnchorTopic topic{.topic = place.anchors.substr(kAnchorTopic.size()),
                    .timeout = std::chrono::seconds(place.wait_s)};
  if (topic.topic.empty()) return BadUsage("--anchors topic: names no topic");
  TACIT_ASSIGN(const config::Kafka kafka, config::LoadKafka(place.kafka, place.bootstrap));
  TACIT_ASSIGN(topic.properties, wiring::KafkaPropertiesOf(kafka));
  if (topic.properties.Find("bootstrap.servers") == nullptr &&
      topic.properties.Find("metadata.broker.list") == nullptr)
    return BadUsage(
        fmt::format("--anchors {}: say which brokers: --bootstrap HOST:PORT, or --kafka "
                    "FILE with a section kafka",
                    place.anchors));
  return topic;
}

Result<std::vector<privacy::Anchor>> ReadPlace(const AnchorPlace& place) {
  if (!IsTopic(place)) return wiring::ReadWholeAnchorFile(place.anchors);
  TACIT_ASSIGN(const AnchorTopic topic, TopicOf(place));
  auto anchors = ReadAnchorTopic(topic);
  if (!anchors) return console::FailOfBrokers(std::move(anchors.error()));
  return *std::move(anchors);
}

// Adds --anchors, and what a topic needs.
CLI::Option* AddAnchorPlace(CLI::App* command, AnchorPlace* place, const std::string& what) {
  auto* anchors = command->add_option("--anchors", place->anchors, what);
  command
      ->add_option("--kafka", place->kafka,
                   "With topic:NAME: a file with a section kafka, as a configuration has it")
      ->needs(anchors);
  command->add_option("--bootstrap", place->bootstrap, "With topic:NAME: the brokers, HOST:PORT")
      ->needs(anchors);
  command->add_option("--wait", place->wait_s, "Seconds to wait for brokers that are silent")
      ->needs(anchors)
      ->check(CLI::Range(1, 3600));
  return anchors;
}

struct SignOptions {
  std::shared_ptr<LedgerOptions> place = std::make_shared<LedgerOptions>();
  AnchorPlace anchors;
  std::string key;
};

// Holds what is there against the ledger, and adds the anchor.
Result<privacy::Anchor> AddToFile(const std::string& path, privacy::Anchor anchor,
                                  const privacy::AnchorSigner& signer,
                                  const privacy::AnchoredLedger& ledger) {
  const auto before = wiring::ReadWholeAnchorFile(path);
  if (!before && before.error().code != ErrorCode::kNotFound) return Fail(before.error());
  if (before) TACIT_RETURN_IF_ERROR(privacy::CheckAnchors(*before, ledger));
  return wiring::AppendAnchor(path, std::move(anchor), &signer, before ? before->size() : 0);
}

Result<int> SignLedger(const SignOptions& options) {
  TACIT_ASSIGN(const privacy::AnchorSigner signer, wiring::ReadAnchorSigner("--key", options.key));
  TACIT_ASSIGN(const LedgerCopy ledger, CopyLedger(*options.place));
  TACIT_RETURN_IF_ERROR(privacy::VerifyChain(ledger.entries, {.epsilons_max = 1000}));
  privacy::Anchor anchor = privacy::AnchorOf(ledger.ForAnchors(), ledger.term);
  anchor.time_ms = SystemClock().UnixMillis();
  if (IsTopic(options.anchors)) {
    TACIT_ASSIGN(const AnchorTopic topic, TopicOf(options.anchors));
    auto added = AppendAnchorToTopic(topic, std::move(anchor), signer, [&](const auto& before) {
      return privacy::CheckAnchors(before, ledger.ForAnchors());
    });
    if (!added) return console::FailOfBrokers(std::move(added.error()));
    anchor = *std::move(added);
  } else {
    TACIT_ASSIGN(
        anchor, AddToFile(options.anchors.anchors, std::move(anchor), signer, ledger.ForAnchors()));
  }
  if (options.place->json)
    fmt::print("{}\n", anchor.Line());
  else
    fmt::print("{}: anchor {}{}, commit {}, head {}, signed with {}\n", options.anchors.anchors,
               anchor.number, IsTopic(options.anchors) ? " at " + anchor.place : "", anchor.commit,
               ledger.HeadName(), privacy::NameOf(signer.id()));
  return int{console::kExitDone};
}

}  // namespace

void AddAnchorOptions(CLI::App* command, const std::shared_ptr<AnchorOptions>& options) {
  auto* anchors = AddAnchorPlace(
      command, &options->place,
      "Anchors (store.anchors, or `tacit ledger sign`) that the ledger must agree with: a file, or "
      "topic:NAME");
  command
      ->add_option("--public-key", options->public_keys,
                   "Public key of Ed25519 in PEM (repeatable): each anchor must be signed with one")
      ->needs(anchors)
      ->allow_extra_args(false);
}

Result<std::optional<AnchorsHeld>> HoldAnchors(const AnchorOptions& options,
                                               const LedgerCopy& ledger) {
  if (options.place.anchors.empty()) return std::optional<AnchorsHeld>();
  AnchorsHeld held;
  held.file = options.place.anchors;
  held.terms_known = ledger.terms.has_value();
  for (const std::string& path : options.public_keys) {
    TACIT_ASSIGN(const privacy::AnchorKeyId key, wiring::ReadAnchorKeyFile("--public-key", path));
    held.keys.push_back(key);
  }
  TACIT_ASSIGN(const auto anchors, ReadPlace(options.place));
  const auto check = [&]() -> Status {
    if (!held.keys.empty()) TACIT_RETURN_IF_ERROR(privacy::CheckSignatures(anchors, held.keys));
    return privacy::CheckAnchors(anchors, ledger.ForAnchors());
  };
  if (Status good = check(); !good)
    return Fail(std::move(good.error()).Context("anchors " + held.file));
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
      ledger->add_subcommand("sign", "Write the ledger's head into a file or topic, signed");
  auto options = std::make_shared<SignOptions>();
  AddLedgerPlace(command, options->place, kOperatorListener);
  command->add_option("--key", options->key, "Private key of Ed25519 in PEM, closed to others")
      ->required();
  AddAnchorPlace(command, &options->anchors,
                 "File to add the anchor to, made where there is none, or topic:NAME")
      ->required();
  command->footer(
      "The chain is verified first, and held against the anchors that the file has. An anchor "
      "names "
      "the one before by\nits digest. Keep the file where those who could change the ledger "
      "cannot.\nA topic has one partition, and "
      "keeps its records for good.\n"
      "Examples:\n  openssl genpkey -algorithm ed25519 -out ledger.key\n"
      "  openssl pkey -in ledger.key -pubout -out ledger.pub\n"
      "  tacit ledger sign --store demo-data/store --key ledger.key --anchors anchors.jsonl\n"
      "  tacit ledger verify --store demo-data/store --anchors anchors.jsonl --public-key "
      "ledger.pub\n"
      "  tacit ledger sign --store demo-data/store --key ledger.key --anchors topic:heads \\\n"
      "      --kafka config/kafka.yaml");
  command->callback([options, chosen] { *chosen = [options] { return SignLedger(*options); }; });
}

}  // namespace tacit::cli
