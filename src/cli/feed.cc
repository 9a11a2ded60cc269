#include "wiring/plans/feed.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>

#include "base/text.h"
#include "cli/parts/command.h"
#include "config/config.h"
#include "console/exit_code.h"
#include "console/text_table.h"
#include "feed/inspection.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct FeedOptions {
  std::string config, topic;
  std::vector<std::string> overrides;
  uint32_t wait_s = 10;
  bool json = false;
};

int64_t NowMillis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Shows on a terminal how many records are read.
void TellRecordsRead(uint64_t records) {
  if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r{} records", WithThousands(records));
}

struct ReadFeed {
  std::string topic;
  feed::Inspection found;
};

Result<ReadFeed> ReadConfigured(const FeedOptions& options) {
  TACIT_ASSIGN(const config::Config config,
               config::Load(options.config, options.overrides, config::LogFiles::kUnread));
  ReadFeed read;
  read.topic = config.feed.topic;
  if (read.topic.empty())
    return BadUsage(fmt::format("{}: feed.topic is empty: nothing is published", options.config));
  TACIT_ASSIGN(const stream::KafkaProperties properties, wiring::FeedProperties(config));
  auto found = feed::InspectFeed(properties, read.topic, std::chrono::seconds(options.wait_s),
                                 options.json ? std::function<void(uint64_t)>() : TellRecordsRead);
  if (!found) return console::FailOfBrokers(std::move(found.error()));
  read.found = *std::move(found);
  return read;
}

json::object VersionJson(const feed::FoundVersion& version, int64_t now_ms) {
  const feed::VersionEnd& end = version.end;
  json::array learners;
  for (const privacy::LedgerTotal& learner : end.tip.learners)
    learners.push_back(json::object{{"learner", learner.learner},
                                    {"epsilon", learner.epsilon},
                                    {"delta", learner.delta},
                                    {"steps", learner.steps}});
  return {{"version", version.origin.version.value},
          {"lineage", ToHex(version.origin.lineage)},
          {"head", ToHex(end.tip.head)},
          {"whole", version.whole()},
          {"marks", version.ends},
          {"partitions", end.partitions},
          {"records", end.all_records},
          {"records_there", version.records},
          {"bytes", end.all_bytes},
          {"whole_since", end.whole_since.value},
          {"previous", end.previous.value},
          {"time_ms", end.time_ms},
          {"age_ms", now_ms - end.time_ms},
          {"learners", std::move(learners)}};
}

json::object FeedJson(const ReadFeed& read) {
  const int64_t now = NowMillis();
  json::array versions, faults;
  for (const feed::FoundVersion& version : read.found.versions)
    versions.push_back(VersionJson(version, now));
  for (const std::string& fault : read.found.faults) faults.emplace_back(fault);
  return {{"topic", read.topic},           {"partitions", read.found.partitions},
          {"records", read.found.records}, {"rows", read.found.rows},
          {"bytes", read.found.bytes},     {"versions", std::move(versions)},
          {"faults", std::move(faults)}};
}

// Compaction takes from older versions what newer ones have again.
std::string_view StateOf(const feed::FoundVersion& version, bool newest) {
  if (version.whole()) return "whole";
  return newest ? "not whole" : "in part, replaced by newer";
}

void PrintVersions(const ReadFeed& read) {
  const feed::Inspection& found = read.found;
  fmt::print("topic {}: {}, {} with {}, {} bytes\n", read.topic,
             Counted(found.partitions, "partition"), Counted(found.records, "record"),
             Counted(found.rows, "row"), WithThousands(found.bytes));
  console::TextLines lines = {{"version", "records", "bytes", "age s", "all since", "state"}};
  for (const feed::FoundVersion& version : found.versions)
    lines.push_back(
        {std::to_string(version.origin.version.value), WithThousands(version.end.all_records),
         WithThousands(version.end.all_bytes),
         fmt::format("{:.1f}", static_cast<double>(NowMillis() - version.end.time_ms) / 1e3),
         std::to_string(version.end.whole_since.value),
         std::string(StateOf(version, &version == &found.versions.back()))});
  if (found.versions.empty()) {
    fmt::print("no version is published\n");
  } else {
    fmt::print("{}", console::LayOut(lines, {5}));
  }
}

Result<int> ShowFeed(const FeedOptions& options) {
  TACIT_ASSIGN(const ReadFeed read, ReadConfigured(options));
  if (options.json) {
    fmt::print("{}\n", json::serialize(FeedJson(read)));
  } else {
    PrintVersions(read);
  }
  return int{console::kExitDone};
}

Result<int> VerifyFeed(const FeedOptions& options) {
  TACIT_ASSIGN(const ReadFeed read, ReadConfigured(options));
  const feed::Inspection& found = read.found;
  if (options.json) fmt::print("{}\n", json::serialize(FeedJson(read)));
  for (const std::string& fault : found.faults) fmt::print(stderr, "tacit: {}\n", Printable(fault));
  if (!found.faults.empty()) return int{console::kExitStoreRefused};
  if (found.versions.empty())
    return Fail(ErrorCode::kNotFound,
                fmt::format("topic '{}': no version is published", read.topic));
  if (options.json) return int{console::kExitDone};
  const feed::FoundVersion& newest = found.versions.back();
  fmt::print("topic {}: version {} is whole, and its ledger of {} leads to head {}\n", read.topic,
             newest.origin.version.value,
             newest.end.tip.ledger_entries == 1
                 ? "1 entry"
                 : WithThousands(newest.end.tip.ledger_entries) + " entries",
             ToHex(newest.end.tip.head));
  for (const privacy::LedgerTotal& learner : newest.end.tip.learners)
    fmt::print("  {}: epsilon {:.6g} at delta {:.3g}\n", learner.learner, learner.epsilon,
               learner.delta);
  return int{console::kExitDone};
}

void AddWhere(CLI::App* command, const std::shared_ptr<FeedOptions>& options) {
  command->add_option("--config", options->config, "Has feed.topic, and the brokers in kafka")
      ->required();
  command->add_option("--set", options->overrides, "KEY=VALUE over the configuration")
      ->allow_extra_args(false);
  command->add_option("--wait", options->wait_s, "Seconds to wait for brokers that are silent")
      ->check(CLI::Range(1, 3600));
  command->add_flag("--json", options->json, "Print JSON");
}

}  // namespace

void AddFeed(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("feed", "Read the topic that a daemon publishes its model to");
  command->require_subcommand(1);
  const auto options = std::make_shared<FeedOptions>();

  auto* show = command->add_subcommand("show", "List the versions: how large, how old, how whole");
  AddWhere(show, options);
  show->footer("Reads the whole topic.\nExample:\n  tacit feed show --config config/feed.yaml");
  show->callback([options, chosen] { *chosen = [options] { return ShowFeed(*options); }; });

  auto* verify =
      command->add_subcommand("verify", "Check every record, and that the newest version is whole");
  AddWhere(verify, options);
  verify->footer(
      "Checksums, marks, chunks, lengths of rows, and the ledger's chain up to the head that the\n"
      "marks have. Ends with 3 where something is wrong.\nExample:\n  tacit feed verify --config "
      "config/feed.yaml");
  verify->callback([options, chosen] { *chosen = [options] { return VerifyFeed(*options); }; });
}

}  // namespace tacit::cli
